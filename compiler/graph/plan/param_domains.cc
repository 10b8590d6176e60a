#include "compiler/graph/plan/param_domains.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/graph/op.h"

namespace hone {
namespace {

std::string IndexDomain(int64_t extent) { return absl::StrCat("int[0,", extent, ")"); }

// The inputs of the group that a value is computed from by operators that keep what is positive positive.
void MarkPositive(const Graph& graph, const std::map<int, int>& producer, int value,
                  std::map<int, std::string>& domains, std::set<int>& seen) {
  if (!seen.insert(value).second) return;
  const auto found = producer.find(value);
  if (found == producer.end()) {
    if (graph.type(value).dtype.is_float() && !graph.values[value].is_constant()) domains.emplace(value, "positive");
    return;
  }
  const Node& node = graph.nodes[found->second];
  if (FindOp(node.op)->kind == OpKind::kElementwise || FindOp(node.op)->kind == OpKind::kInjective) {
    for (const int input : node.inputs) MarkPositive(graph, producer, input, domains, seen);
  }
}

}  // namespace

std::vector<std::string> ParamDomains(const Graph& graph, const Group& group, const std::vector<int>& inputs) {
  std::map<int, int> producer;
  for (const int n : group.nodes) {
    for (const int output : graph.nodes[n].outputs) producer[output] = n;
  }
  std::map<int, std::string> domains;
  std::set<int> seen;
  for (const int n : group.nodes) {
    const Node& node = graph.nodes[n];
    const auto shape = [&](int i) -> const std::vector<int64_t>& { return graph.type(node.inputs[i]).shape; };
    if (node.op == "gather" || node.op == "gather_elements" || node.op == "scatter_elements") {
      domains[node.inputs[1]] = IndexDomain(shape(0)[IntAttr(node.attrs, "axis")]);
    }
    if (node.op == "gather_nd" || node.op == "scatter_nd") {  // every part within the smallest dimension it may index
      int64_t least = INT64_MAX;
      const int64_t batch = IntAttr(node.attrs, "batch_dims");
      for (int64_t d = batch; d < batch + shape(1).back(); ++d) least = std::min(least, shape(0)[d]);
      domains[node.inputs[1]] = IndexDomain(least);
    }
    if (node.op == "one_hot") domains[node.inputs[0]] = IndexDomain(IntAttr(node.attrs, "depth"));
    if (node.op == "sqrt" || node.op == "rsqrt" || node.op == "log" || node.op == "reciprocal" || node.op == "power" ||
        node.op == "pow_scalar") {
      MarkPositive(graph, producer, node.inputs[0], domains, seen);
    }
    if (node.op == "divide" || node.op == "mod" || node.op == "fmod") {
      if (graph.type(node.inputs[1]).dtype.is_int()) domains.emplace(node.inputs[1], "int[1,64)");
      MarkPositive(graph, producer, node.inputs[1], domains, seen);
    }
  }
  std::map<int, int> viewed;  // what reshapes take
  for (const Node& node : graph.nodes) {
    if (FindOp(node.op)->kind == OpKind::kView) viewed[node.outputs[0]] = node.inputs[0];
  }
  for (const int input : inputs) {
    int source = input;
    for (auto view = viewed.find(source); view != viewed.end(); view = viewed.find(source)) source = view->second;
    if (!graph.values[source].domain.empty()) domains.emplace(input, graph.values[source].domain);
  }
  std::vector<std::string> result;
  for (const int input : inputs) {
    const auto found = domains.find(input);
    result.push_back(found == domains.end() || graph.values[input].is_constant() ? "" : found->second);
  }
  return result;
}

}  // namespace hone
