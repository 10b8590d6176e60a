// Products of what varies and a constant round both to bfloat16 (cast_products.h), and are summed in float32. A kernel
// that makes an operand writes half the bytes.
//
// Only where the target has an instruction that fits the sizes and is faster than those of float32: without one the
// operands would be widened again. Everything else (softmax, norms, reductions, sums, products of two values that vary,
// whose errors the network may grow) stays float32.
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/cast_products.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

constexpr DType kBFloat16 = DType::BFloat16();

// Intel's cores multiply bfloat16 in vectors no faster than float32: a Sapphire Rapids at 0.56 of its rate (squares of
// 512 and 1024). Those that have the instruction have AVX512_FP16 too, whether or not their tile registers may be used;
// AMD's up to Zen 5, which multiply at twice the rate of float32, do not.
bool Gains(const ProductShape& shape, const std::set<std::string>& features) {
  if (FindWarpProduct(shape.left, shape.right, shape.sum, features) != nullptr) return true;
  const std::optional<DotProduct> dot = FindDotProduct(shape, features);
  return dot.has_value() && (dot->in_tiles() || features.count("avx512fp16") == 0);
}

}  // namespace

absl::Status Bfloat16Products(Graph& graph, const std::set<std::string>& features) {
  return CastProducts(graph, kBFloat16, [&](const ProductNode& product) {
    if (product.shape.left != kFloat32 || !product.right_is_constant) return false;
    ProductShape rounded = product.shape;
    rounded.left = rounded.right = kBFloat16;
    return Gains(rounded, features);
  });
}

bool MultipliesBfloat16(const std::set<std::string>& features) {
  constexpr int64_t kAny = 64;
  return Gains({kFloat32, kBFloat16, kBFloat16, kAny, kAny, kAny}, features);
}

}  // namespace hone
