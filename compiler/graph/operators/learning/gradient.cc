// Derivatives of a value of the model by others, in reverse mode over the nodes that compute it.
#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The sum over what was broadcast from `shape`.
Value SumTo(const Value& x, const std::vector<int64_t>& shape) {
  if (!x || x.shape() == shape) return x;
  const size_t more = x.shape().size() - shape.size();
  std::vector<int64_t> axes(more);
  std::iota(axes.begin(), axes.end(), 0);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != x.shape()[more + d]) axes.push_back(static_cast<int64_t>(more + d));
  }
  return Reshape(Reduce("reduce_sum", x, axes, true), shape);
}

// What an operator's inputs `in` get, of the derivative `d` by its output `y`; empty where it is not known.
std::vector<Value> Backward(const std::string& op, const std::vector<Value>& in, const Value& y, const Value& d) {
  if (op == "add") return {d, d};
  if (op == "subtract") return {d, -d};
  if (op == "multiply") return {d * in[1], d * in[0]};
  if (op == "divide") return {d / in[1], -(d * y / in[1])};
  if (op == "power") return {d * in[1] * Apply("power", {in[0], in[1] - 1}), d * y * Log(in[0])};
  if (op == "negative") return {-d};
  if (op == "exp") return {d * y};
  if (op == "log") return {d / in[0]};
  if (op == "sqrt") return {d / (y * 2)};
  if (op == "tanh") return {d * (1 - y * y)};
  if (op == "sigmoid") return {d * y * (1 - y)};
  if (op == "relu") return {Where(in[0] > Number(in[0], 0), d, Number(d, 0))};
  if (op == "identity" || op == "reshape") return {Reshape(d, in[0].shape())};
  return {};
}

// The derivatives of `y` by every value on the way to it from values in `needed`.
absl::StatusOr<std::map<int, Value>> Derivatives(NodeContext& c, int y, std::vector<bool> needed) {
  const std::vector<Node> nodes = c.graph().nodes;  // derivatives are appended to it
  for (const Node& node : nodes) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](int input) { return needed[static_cast<size_t>(input)]; });
    for (const int output : node.outputs)
      needed[static_cast<size_t>(output)] = needed[static_cast<size_t>(output)] || any;
  }
  std::map<int, Value> by;
  by[y] = Expand(Constant(c, c.type(y).dtype, 1), c.shape(y));
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const auto found = by.find(node->outputs[0]);
    if (found == by.end() || !needed[static_cast<size_t>(node->outputs[0])]) continue;
    std::vector<Value> inputs;
    for (const int input : node->inputs) inputs.emplace_back(c, input);
    const std::vector<Value> parts = Backward(node->op, inputs, Value(c, node->outputs[0]), found->second);
    if (parts.empty()) return Unsupported(absl::StrCat("the derivative of ", node->op, " (node \"", node->name, "\")"));
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!needed[static_cast<size_t>(node->inputs[i])]) continue;
      Value& sum = by[node->inputs[i]];
      const Value part = SumTo(parts[i], inputs[i].shape());
      sum = sum ? sum + part : part;
    }
    HONE_RETURN_IF_ERROR(c.status());
  }
  return by;
}

// Inputs: the values of `xs` and `zs`, by the first of which the value named `y` is derived.
Outputs Gradient(NodeContext& c) {
  const std::vector<std::string> xs = c.StringsAttr("xs"), zs = c.StringsAttr("zs");
  const std::string name = c.StringAttr("y", "");
  HONE_RETURN_IF_ERROR(c.NeedInputs(static_cast<int>(xs.size() + zs.size()), static_cast<int>(xs.size() + zs.size())));
  const std::optional<int> y = c.ValueNamed(name);
  if (!y.has_value() || *y < 0) return Unsupported(absl::StrCat("\"", name, "\" is not computed before it"));
  std::vector<bool> needed(c.graph().values.size(), false);
  for (size_t i = 0; i < xs.size(); ++i) {
    // Constants are folded away, and nothing is left to derive by.
    if (c.ValueNamed(xs[i]) != c.input(static_cast<int>(i)) || c.IsConstant(static_cast<int>(i)))
      return Unsupported(absl::StrCat("\"", xs[i], "\" is given another value, or a constant one"));
    needed[static_cast<size_t>(c.input(static_cast<int>(i)))] = true;
  }
  HONE_ASSIGN_OR_RETURN(const auto by, Derivatives(c, *y, std::move(needed)));
  std::vector<int> outputs;
  for (size_t i = 0; i < xs.size(); ++i) {
    const int x = c.input(static_cast<int>(i));
    const auto found = by.find(x);
    const Value derivative = found != by.end() ? found->second : Expand(Constant(c, c.type(x).dtype, 0), c.shape(x));
    if (!derivative) return c.status();
    outputs.push_back(derivative.id());
  }
  return outputs;
}

}  // namespace

HONE_OPERATORS(gradient) { return {{.onnx = {{"Gradient", 1, Gradient, "ai.onnx.preview.training"}}}}; }

}  // namespace hone
