// Products of bytes become products of int16 (cast_products.h).
//
// Machines without an instruction for sums of products of bytes (AVX-512's and AVX's VNNI) have one for pairs of int16
// (vpmaddwd), or one for a product of int16, which it widens (NEON's smlal, RISC-V's vwmacc). Widening bytes takes the
// port that shuffles, for every vector that is loaded, and a product loads each operand many times: what makes an
// operand had better write it wide. Not for a convolution by minimal filtering, whose transform widens, and which is
// exact for bytes alone.
#include <algorithm>

#include "compiler/graph/passes.h"
#include "compiler/graph/passes/cast_products.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

constexpr DType kInt16 = DType::Int(16);

// As they lie in memory.
bool MultipliesBytes(const ProductShape& shape, const std::set<std::string>& features) {
  const std::optional<DotProduct> dot = FindDotProduct(shape, features);
  if (!dot.has_value()) return false;
  const std::vector<TileInstruction::Operand>& operands = dot->instruction->operands;
  return std::none_of(operands.begin(), operands.end(), [](const auto& operand) { return operand.widens; });
}

}  // namespace

absl::Status Int16Products(Graph& graph, const std::set<std::string>& features) {
  return CastProducts(graph, kInt16, [&](const ProductNode& product) {
    const ProductShape& shape = product.shape;
    if (shape.left.bits != 8 || shape.right.bits != 8 || product.has_minimal_filter || MultipliesBytes(shape, features))
      return false;
    ProductShape wide = shape;
    wide.left = wide.right = kInt16;
    return FindDotProduct(wide, features).has_value();
  });
}

}  // namespace hone
