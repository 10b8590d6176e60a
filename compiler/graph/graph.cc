#include "compiler/graph/graph.h"

#include <algorithm>
#include <queue>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/op.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

template <class T>
const T* Find(const Attrs& attrs, std::string_view name) {
  const auto found = attrs.find(std::string(name));
  return found == attrs.end() ? nullptr : std::get_if<T>(&found->second);
}

struct AttrText {
  std::string operator()(int64_t v) const { return absl::StrCat(v); }
  std::string operator()(double v) const { return absl::StrCat(v); }
  std::string operator()(const std::string& v) const { return absl::StrCat("\"", v, "\""); }
  std::string operator()(const std::vector<int64_t>& v) const { return absl::StrCat("[", absl::StrJoin(v, ", "), "]"); }
  std::string operator()(const std::vector<std::string>& v) const {
    return absl::StrCat("[", absl::StrJoin(v, ", "), "]");
  }
};

// For each node whether an output of the graph needs it. `producer`: of each value the node that makes it, or -1.
std::vector<bool> NeededNodes(const Graph& graph, const std::vector<int>& producer) {
  std::vector<bool> needed(graph.nodes.size(), false);
  std::vector<int> stack;
  const auto need = [&](int value) {
    const int node = producer[value];
    if (node >= 0 && !needed[node]) {
      needed[node] = true;
      stack.push_back(node);
    }
  };
  for (const int output : graph.outputs) need(output);
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    for (const int input : graph.nodes[node].inputs) need(input);
  }
  return needed;
}

// The needed nodes in topological order (Kahn 1962), of those that are ready always the one that was first before.
// InvalidArgument names nodes that a cycle keeps from being ready.
absl::StatusOr<std::vector<Node>> SortedNodes(const std::vector<Node>& nodes, const std::vector<int>& producer,
                                              const std::vector<bool>& needed) {
  std::vector<int> waiting(nodes.size(), 0);  // for so many inputs
  std::vector<std::vector<int>> dependents(nodes.size());
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (!needed[n]) continue;
    for (const int input : nodes[n].inputs) {
      if (producer[input] < 0) continue;
      ++waiting[n];
      dependents[producer[input]].push_back(static_cast<int>(n));
    }
    if (waiting[n] == 0) ready.push(static_cast<int>(n));
  }
  std::vector<Node> sorted;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    sorted.push_back(nodes[node]);
    for (const int dependent : dependents[node]) {
      if (--waiting[dependent] == 0) ready.push(dependent);
    }
  }
  std::vector<std::string> cycle;
  for (size_t n = 0; n < nodes.size() && cycle.size() < 8; ++n) {
    if (needed[n] && waiting[n] > 0) cycle.push_back(nodes[n].name);
  }
  if (cycle.empty()) return sorted;
  return absl::InvalidArgumentError(
      absl::StrCat("the graph has a cycle through or before: ", absl::StrJoin(cycle, ", ")));
}

}  // namespace

std::string ToText(const TensorType& type) {
  return absl::StrCat(ToText(type.dtype), "[", absl::StrJoin(type.shape, ", "), "]");
}

std::optional<int64_t> NumElements(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

absl::Status CheckSize(const TensorType& type) {
  const std::optional<int64_t> elements = NumElements(type.shape);
  if (!elements.has_value() || *elements > kMostElements) {
    return absl::InvalidArgumentError(absl::StrCat("the tensor ", ToText(type), " is too large"));
  }
  if (type.rank() > kMostDimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", type.rank(), " dimensions; at most ", kMostDimensions, " are supported"));
  }
  return absl::OkStatus();
}

int Graph::AddValue(std::string value_name, TensorType type) {
  values.push_back({std::move(value_name), std::move(type), nullptr, ""});
  return static_cast<int>(values.size()) - 1;
}

int Graph::AddConstant(std::string value_name, NdArray data) {
  return AddConstant(std::move(value_name), std::make_shared<const NdArray>(std::move(data)));
}

int Graph::AddConstant(std::string value_name, std::shared_ptr<const NdArray> data) {
  TensorType type{data->dtype, data->shape};
  values.push_back({std::move(value_name), std::move(type), std::move(data), ""});
  return static_cast<int>(values.size()) - 1;
}

absl::StatusOr<std::vector<int>> Graph::AddNode(std::string_view op, std::string node_name,
                                                std::vector<int> node_inputs, Attrs attrs) {
  const OpInfo* info = FindOp(op);
  HONE_CHECK(info != nullptr) << "no operator is called " << op;
  std::vector<TensorType> types;
  for (const int input : node_inputs) types.push_back(values[input].type);
  HONE_ASSIGN_OR_RETURN(std::vector<TensorType> results, info->infer(types, attrs));
  for (const TensorType& type : results) { HONE_RETURN_IF_ERROR(Annotate(CheckSize(type), std::string(op))); }
  Node node{std::string(op), std::move(node_name), std::move(node_inputs), {}, std::move(attrs)};
  for (size_t i = 0; i < results.size(); ++i) {
    node.outputs.push_back(AddValue(i == 0 ? node.name : absl::StrCat(node.name, ":", i), std::move(results[i])));
  }
  nodes.push_back(node);
  return node.outputs;
}

absl::StatusOr<int> Graph::Add(std::string_view op, std::string node_name, std::vector<int> node_inputs, Attrs attrs) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int> results,
                        AddNode(op, std::move(node_name), std::move(node_inputs), std::move(attrs)));
  HONE_CHECK(results.size() == 1) << op << " has " << results.size() << " outputs";
  return results[0];
}

void Graph::ReplaceUses(int from, int to) {
  HONE_CHECK(values[from].type == values[to].type)
      << "replacing " << ToText(values[from].type) << " by " << ToText(values[to].type);
  for (Node& node : nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  std::replace(outputs.begin(), outputs.end(), from, to);
}

absl::Status Graph::Compact() {
  std::vector<int> producer(values.size(), -1);
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const int output : nodes[n].outputs) producer[output] = static_cast<int>(n);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<Node> sorted, SortedNodes(nodes, producer, NeededNodes(*this, producer)));
  // Renumber the values that are left.
  std::vector<int> renumbered(values.size(), -1);
  std::vector<GraphValue> kept;
  const auto keep = [&](int& value) {
    if (renumbered[value] < 0) {
      renumbered[value] = static_cast<int>(kept.size());
      kept.push_back(std::move(values[value]));
    }
    value = renumbered[value];
  };
  for (int& input : inputs) keep(input);
  for (Node& node : sorted) {
    for (int& input : node.inputs) keep(input);
    for (int& output : node.outputs) keep(output);
  }
  for (int& output : outputs) keep(output);
  nodes = std::move(sorted);
  values = std::move(kept);
  return absl::OkStatus();
}

Uses::Uses(const Graph& graph)
    : producer(graph.values.size(), -1), consumers(graph.values.size()), is_output(graph.values.size(), false) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int output : graph.nodes[n].outputs) producer[output] = static_cast<int>(n);
    for (const int input : graph.nodes[n].inputs) {
      std::vector<int>& list = consumers[input];
      if (list.empty() || list.back() != static_cast<int>(n)) list.push_back(static_cast<int>(n));
    }
  }
  for (const int output : graph.outputs) is_output[output] = true;
}

int64_t IntAttr(const Attrs& attrs, std::string_view name, int64_t fallback) {
  const int64_t* found = Find<int64_t>(attrs, name);
  return found == nullptr ? fallback : *found;
}
double FloatAttr(const Attrs& attrs, std::string_view name, double fallback) {
  const double* found = Find<double>(attrs, name);
  return found == nullptr ? fallback : *found;
}
std::string StringAttr(const Attrs& attrs, std::string_view name, std::string_view fallback) {
  const std::string* found = Find<std::string>(attrs, name);
  return found == nullptr ? std::string(fallback) : *found;
}
std::vector<int64_t> IntsAttr(const Attrs& attrs, std::string_view name, std::vector<int64_t> fallback) {
  const std::vector<int64_t>* found = Find<std::vector<int64_t>>(attrs, name);
  return found == nullptr ? std::move(fallback) : *found;
}

std::string ToText(const Graph& graph) {
  const auto value_text = [&](int value) {
    return graph.values[value].is_constant() ? absl::StrCat("c", value) : absl::StrCat("v", value);
  };
  const auto list_text = [&](const std::vector<int>& list) {
    return absl::StrJoin(list, ", ", [&](std::string* out, int value) { absl::StrAppend(out, value_text(value)); });
  };
  std::string text = absl::StrCat("graph ", graph.name, "\n");
  for (const int input : graph.inputs) {
    absl::StrAppend(&text, "  input ", value_text(input), ": ", ToText(graph.type(input)), "  # ",
                    graph.values[input].name, "\n");
  }
  for (const Node& node : graph.nodes) {
    absl::StrAppend(&text, "  ", list_text(node.outputs), " = ", node.op, "(", list_text(node.inputs));
    for (const auto& [name, attr] : node.attrs) absl::StrAppend(&text, ", ", name, "=", std::visit(AttrText(), attr));
    absl::StrAppend(&text, ")  # ", ToText(graph.type(node.outputs[0])), " ", node.name, "\n");
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    absl::StrAppend(&text, "  output ", value_text(graph.outputs[i]), ": ", ToText(graph.type(graph.outputs[i])),
                    "  # ", graph.output_names[i], "\n");
  }
  return text;
}

}  // namespace hone
