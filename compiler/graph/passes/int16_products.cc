// Products of bytes become products of int16:
//
//   product(x, w)  =>  product(cast(x, int16), cast(w, int16))
//
// Machines without an instruction for sums of products of bytes (AVX-512's and AVX's VNNI) have one for pairs of int16
// (vpmaddwd). Widening takes the port that shuffles, for every vector that is loaded, and a product loads each operand
// many times: what makes an operand had better write it wide.
#include <algorithm>

#include "compiler/graph/passes.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"
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
  const auto widen = [&](Rewriting& r, const Node& node) -> absl::StatusOr<std::optional<int>> {
    const std::optional<ProductShape> shape = r.ShapeOfProduct(node);
    if (!shape.has_value() || shape->left.bits != 8 || shape->right.bits != 8) return std::nullopt;
    ProductShape wide = *shape;
    wide.left = wide.right = kInt16;
    if (MultipliesBytes(*shape, features) || !FindDotProduct(wide, features).has_value()) return std::nullopt;
    HONE_ASSIGN_OR_RETURN(const int x, r.Cast(node, node.inputs[0], kInt16));
    HONE_ASSIGN_OR_RETURN(const int w, r.Cast(node, node.inputs[1], kInt16));
    return r.Add(node.op, node, {x, w}, node.attrs);
  };
  HONE_RETURN_IF_ERROR(RewriteNodes(graph, widen).status());
  return RemoveNoOps(graph);  // readers of one value share its cast
}

}  // namespace hone
