#include "compiler/graph/passes/rewrite.h"

#include <algorithm>
#include <numeric>

#include "compiler/graph/evaluate.h"
#include "compiler/support/status_macros.h"

namespace hone {

Rewriting::Rewriting(Graph& g) : graph_(g), uses_(g.values.size(), 0) {
  for (const Node& node : g.nodes) {
    for (const int input : node.inputs) ++uses_[input];
  }
  for (const int output : g.outputs) ++uses_[output];
}

const Node* Rewriting::Producer(int value) {
  for (; synced_ < graph_.nodes.size(); ++synced_) {
    for (const int output : graph_.nodes[synced_].outputs) {
      if (output >= static_cast<int>(producer_.size())) producer_.resize(output + 1, -1);
      producer_[output] = static_cast<int>(synced_);
    }
  }
  if (value >= static_cast<int>(producer_.size()) || producer_[value] < 0) return nullptr;
  return &graph_.nodes[producer_[value]];
}

const Node* Rewriting::Producer(int value, std::string_view op) {
  const Node* node = Producer(value);
  return node != nullptr && node->op == op ? node : nullptr;
}

std::optional<double> Rewriting::Splat(int value) const {
  const GraphValue& v = graph_.values[value];
  if (!v.is_constant() || !v.type.dtype.is_float() || v.data->NumElements() == 0) return std::nullopt;
  const double first = v.data->Get(0);
  for (int64_t i = 1; i < v.data->NumElements(); ++i) {
    if (v.data->Get(i) != first) return std::nullopt;
  }
  return first;
}

absl::StatusOr<int> Rewriting::Add(std::string_view op, const Node& origin, std::vector<int> inputs, Attrs attrs) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int> outputs,
                        AddFolded(graph_, op, origin.name, std::move(inputs), std::move(attrs)));
  return outputs[0];
}

absl::StatusOr<int> Rewriting::Reshape(const Node& origin, int value, std::vector<int64_t> new_shape) {
  if (shape(value) == new_shape) return value;
  return Add("reshape", origin, {value}, {{"shape", std::move(new_shape)}});
}

absl::StatusOr<int> Rewriting::Transpose(const Node& origin, int value, std::vector<int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end())) return value;
  return Add("transpose", origin, {value}, {{"perm", std::move(perm)}});
}

absl::StatusOr<bool> RewriteNodes(Graph& graph, const NodeRewrite& rewrite) {
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  std::vector<int> now(graph.values.size());
  std::iota(now.begin(), now.end(), 0);
  graph.nodes = nodes;  // for counting
  Rewriting context(graph);
  graph.nodes.clear();
  bool changed = false;
  for (Node& node : nodes) {
    for (int& input : node.inputs) input = now[input];
    std::optional<int> replacement;
    if (node.outputs.size() == 1) { HONE_ASSIGN_OR_RETURN(replacement, rewrite(context, node)); }
    if (!replacement.has_value()) {
      graph.nodes.push_back(node);
      continue;
    }
    changed = true;
    const int before = node.outputs[0];
    now[before] = *replacement;
    if (*replacement >= static_cast<int>(context.uses_.size())) context.uses_.resize(*replacement + 1, 1);
    context.uses_[*replacement] = std::max(context.uses_[*replacement], context.uses_[before]);
    GraphValue& value = graph.values[*replacement];
    if (value.name == node.name) value.name = graph.values[before].name;
  }
  for (int& output : graph.outputs) output = now[output];
  HONE_RETURN_IF_ERROR(graph.Compact());
  return changed;
}

}  // namespace hone
