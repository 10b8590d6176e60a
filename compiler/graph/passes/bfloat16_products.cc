// Products of what varies and a constant round both to bfloat16 (cast_products.h), and are summed in float32. A kernel
// that makes an operand writes half the bytes.
//
// Only where the target has an instruction that fits the sizes: without one the operands would be widened again, and
// the product be slower than in float32. Everything else (softmax, norms, reductions, sums, products of two values that
// vary, whose errors the network may grow) stays float32.
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/cast_products.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

constexpr DType kBFloat16 = DType::BFloat16();

// Machines with tile registers multiply bfloat16 in vectors no faster than float32: on a Sapphire Rapids at 0.6 of its
// rate (a convolution of 3x3 and stride 2, 378 against 634 GFLOP/s).
bool Gains(const ProductShape& shape, const std::set<std::string>& features) {
  const std::optional<DotProduct> dot = FindDotProduct(shape, features);
  return dot.has_value() && (dot->in_tiles() || features.count("amx-bf16") == 0);
}

}  // namespace

absl::Status Bfloat16Products(Graph& graph, const std::set<std::string>& features) {
  return CastProducts(graph, kBFloat16, [&](const ProductShape& product, bool right_is_constant) {
    if (product.left != kFloat32 || !right_is_constant) return false;
    ProductShape rounded = product;
    rounded.left = rounded.right = kBFloat16;
    return Gains(rounded, features);
  });
}

bool MultipliesBfloat16(const std::set<std::string>& features) {
  constexpr int64_t kAny = 64;
  return FindDotProduct({kFloat32, kBFloat16, kBFloat16, kAny, kAny, kAny}, features).has_value();
}

}  // namespace hone
