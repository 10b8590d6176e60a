// Products of what varies and a constant round both to bfloat16:
//
//   product(x, w)  =>  product(cast(x, bfloat16), cast(w, bfloat16))          summed in float32, as products of
//   bfloat16 product(reshape(x), w)  =>  product(reshape(cast(x, bfloat16)), w')       and so through transposes
//
// The cast of a constant is made now. That of x is elementwise: where the product alone reads x, it is the end of the
// kernel that makes x, which then writes half the bytes.
//
// Only where the target has an instruction that fits the sizes: without one the operands would be widened again, and
// the product be slower than in float32. Everything else (softmax, norms, reductions, sums, products of two values that
// vary, whose errors the network may grow) stays float32.
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"
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
  const auto round = [&](Rewriting& r, const Node& node) -> absl::StatusOr<std::optional<int>> {
    std::optional<ProductShape> shape = r.ShapeOfProduct(node);
    if (!shape.has_value() || shape->left != kFloat32 || !r.IsConstant(node.inputs[1])) return std::nullopt;
    shape->left = shape->right = kBFloat16;
    if (!Gains(*shape, features)) return std::nullopt;
    HONE_ASSIGN_OR_RETURN(const int x, r.Cast(node, node.inputs[0], kBFloat16));
    HONE_ASSIGN_OR_RETURN(const int w, r.Cast(node, node.inputs[1], kBFloat16));
    return r.Add(node.op, node, {x, w}, node.attrs);
  };
  HONE_RETURN_IF_ERROR(RewriteNodes(graph, round).status());
  return RemoveNoOps(graph);  // readers of one value share its cast
}

bool MultipliesBfloat16(const std::set<std::string>& features) {
  constexpr int64_t kAny = 64;
  return FindDotProduct({kFloat32, kBFloat16, kBFloat16, kAny, kAny, kAny}, features).has_value();
}

}  // namespace hone
