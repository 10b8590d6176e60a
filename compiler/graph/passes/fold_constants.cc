#include "compiler/graph/evaluate.h"
#include "compiler/graph/passes.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status FoldConstants(Graph& graph) {
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  for (Node& node : nodes) {
    std::vector<TensorType> inputs, outputs;
    std::vector<std::shared_ptr<const NdArray>> data;
    for (const int input : node.inputs) {
      if (!graph.values[input].is_constant()) break;
      inputs.push_back(graph.type(input));
      data.push_back(graph.values[input].data);
    }
    for (const int output : node.outputs) outputs.push_back(graph.type(output));
    const bool known = data.size() == node.inputs.size();
    const std::optional<int64_t> cost = known ? EvaluationCost(node.op, node.attrs, inputs, outputs) : std::nullopt;
    if (cost.has_value() && *cost <= graph.fold_budget) {
      graph.fold_budget -= *cost;
      absl::StatusOr<std::vector<NdArray>> results = EvaluateOp(node.op, node.attrs, data);
      if (results.ok()) {
        for (size_t i = 0; i < node.outputs.size(); ++i) {
          graph.values[node.outputs[i]].data = std::make_shared<const NdArray>(std::move((*results)[i]));
        }
        continue;
      }
      if (!absl::IsUnimplemented(results.status()))
        return Annotate(results.status(), absl::StrCat("node \"", node.name, "\""));
    }
    graph.nodes.push_back(std::move(node));
  }
  return graph.Compact();
}

}  // namespace hone
