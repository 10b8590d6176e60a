// Transposes become the order in which a product reads.
//
//   batch_matmul(T(a), b)  =>  batch_matmul(a, b) with T's permutation as "a_order"
//
// Attention splits and moves heads before its products. The kernel of a product touches every element of an operand
// many times and keeps what it needs close, so that elements found elsewhere cost it little; a transpose of its own is
// a pass over memory. Where the transposed value has another reader it is there anyway, and is read as it is.
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

absl::StatusOr<std::optional<int>> Fold(Rewriting& r, const Node& node) {
  if (node.op != "batch_matmul") return std::nullopt;
  std::vector<int> inputs = node.inputs;
  Attrs attrs = node.attrs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const char* order = i == 0 ? "a_order" : "b_order";
    const Node* transpose = r.Producer(inputs[i], "transpose");
    if (transpose == nullptr || r.uses(inputs[i]) > 1 || attrs.count(order) > 0) continue;
    attrs[order] = IntsAttr(transpose->attrs, "perm");
    inputs[i] = transpose->inputs[0];
  }
  if (inputs == node.inputs) return std::nullopt;
  return r.Add(node.op, node, inputs, attrs);
}

}  // namespace

absl::Status FoldTransposes(Graph& graph) { return RewriteNodes(graph, Fold).status(); }

}  // namespace hone
