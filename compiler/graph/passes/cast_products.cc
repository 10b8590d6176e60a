#include "compiler/graph/passes/cast_products.h"

#include <optional>

#include "compiler/graph/op.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/axes.h"

namespace hone {
namespace {

// The cast stands in front of transposes and reshapes that lead to this value alone, next to what makes it.
absl::StatusOr<int> CastTo(Rewriting& r, const Node& origin, int value, DType to) {
  const Node* found = r.Producer(value);
  const bool moves = found != nullptr && FindOp(found->op)->rearranges && r.uses(value) == 1;
  if (!moves) return r.Add("cast", origin, {value}, {{"to", ToText(to)}});
  const Node move = *found;  // a copy: nodes are added below
  HONE_ASSIGN_OR_RETURN(const int cast, CastTo(r, move, move.inputs[0], to));
  return r.Add(move.op, move, {cast}, move.attrs);
}

}  // namespace

std::optional<ProductNode> MatchProduct(const Graph& graph, const Node& node) {
  if (!FindOp(node.op)->is_matrix_product || IntAttr(node.attrs, "groups", 1) != 1) return std::nullopt;
  const TensorType &out = graph.type(node.outputs[0]), &left = graph.type(node.inputs[0]),
                   &right = graph.type(node.inputs[1]);
  const std::vector<int64_t> order = IntsAttr(node.attrs, "b_order");
  const int64_t depth_at = order.empty() ? right.rank() - 2 : order.end()[-2];
  const std::vector<int64_t> strides = IntsAttr(node.attrs, "strides");
  const int64_t step = strides.empty() ? 1 : strides.back();  // rows that are not neighbours make no tile
  ProductNode product;
  product.shape = {.sum = out.dtype,
                   .left = left.dtype,
                   .right = right.dtype,
                   .rows = out.rank() < 2 || step != 1 ? 1 : out.shape.end()[-2],
                   .columns = out.shape.back(),
                   .depth = right.shape[static_cast<size_t>(depth_at)]};
  product.right_is_constant = graph.values[node.inputs[1]].is_constant();
  product.has_minimal_filter = node.op == "conv" && right.rank() == 4 &&
                               topi::AllAre({right.shape.begin(), right.shape.end() - 2}, 3) &&
                               topi::AllAre(strides, 1) && product.right_is_constant;
  return product;
}

absl::Status CastProducts(Graph& graph, DType type, const GainsByCast& gains) {
  const auto rewrite = [&](Rewriting& r, const Node& node) -> absl::StatusOr<std::optional<int>> {
    const std::optional<ProductNode> product = MatchProduct(r.graph(), node);
    if (!product.has_value() || !gains(*product)) return std::nullopt;
    HONE_ASSIGN_OR_RETURN(const int x, CastTo(r, node, node.inputs[0], type));
    HONE_ASSIGN_OR_RETURN(const int w, CastTo(r, node, node.inputs[1], type));
    return r.Add(node.op, node, {x, w}, node.attrs);
  };
  HONE_RETURN_IF_ERROR(RewriteNodes(graph, rewrite).status());
  return RemoveNoOps(graph);
}

}  // namespace hone
