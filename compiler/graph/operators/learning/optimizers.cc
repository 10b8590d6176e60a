// The steps of training's optimizers (ai.onnx.preview.training). Inputs: the rate R, how many updates came before T,
// then for each of n tensors X its value, its gradient and what the optimizer keeps, all of one kind after the other.
// Outputs in the same order without gradients. Formulas: the operators' specification.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int kMostTensors = 1 << 12;

// What one tensor's step gives: its new value, then what is kept of it.
using Step = std::vector<Value>;

// `kinds` inputs for each tensor: value, gradient, kept.
template <class Formula>
Outputs EachTensor(NodeContext& c, int kinds, Formula formula) {
  const int n = (c.num_inputs() - 2) / kinds;
  if (n < 1 || n > kMostTensors || c.num_inputs() != 2 + n * kinds)
    return Unsupported(absl::StrCat(c.num_inputs(), " inputs are not two and ", kinds, " for each tensor"));
  HONE_RETURN_IF_ERROR(c.NeedInputs(c.num_inputs(), c.num_inputs()));
  const Value rate = Reshape(Input(c, 0), {}), updates = Reshape(Cast(Input(c, 1), kInt64), {});
  std::vector<std::vector<int>> by_kind(static_cast<size_t>(kinds - 1));
  for (int i = 0; i < n; ++i) {
    std::vector<Value> of;
    for (int kind = 0; kind < kinds; ++kind) of.push_back(Input(c, 2 + kind * n + i));
    const Step step = formula(Cast(rate, of[0].dtype()), updates, of);
    HONE_RETURN_IF_ERROR(c.status());
    for (size_t k = 0; k < by_kind.size(); ++k) by_kind[k].push_back(step[k].id());
  }
  std::vector<int> outputs;
  for (const std::vector<int>& values : by_kind) outputs.insert(outputs.end(), values.begin(), values.end());
  return outputs;
}

Outputs Adagrad(NodeContext& c) {
  const double decay = c.FloatAttr("decay_factor", 0), epsilon = c.FloatAttr("epsilon", 1e-6),
               norm = c.FloatAttr("norm_coefficient", 0);
  return EachTensor(c, 3, [&](const Value& rate, const Value& updates, const std::vector<Value>& of) -> Step {
    const Value gradient = of[0] * norm + of[1], squares = of[2] + gradient * gradient;
    const Value r = rate / (Cast(updates, of[0].dtype()) * decay + 1);
    return {of[0] - r * gradient / (Sqrt(squares) + epsilon), squares};
  });
}

Outputs Adam(NodeContext& c) {
  const double alpha = c.FloatAttr("alpha", 0.9), beta = c.FloatAttr("beta", 0.999),
               epsilon = c.FloatAttr("epsilon", 1e-6), norm = c.FloatAttr("norm_coefficient", 0),
               after = c.FloatAttr("norm_coefficient_post", 0);
  return EachTensor(c, 4, [&](const Value& rate, const Value& updates, const std::vector<Value>& of) -> Step {
    const Value gradient = of[0] * norm + of[1];
    const Value mean = of[2] * alpha + gradient * (1 - alpha),
                squares = of[3] * beta + gradient * gradient * (1 - beta);
    // Both averages started at 0, which the first steps make good for.
    const Value t = Cast(updates, of[0].dtype()), first = t <= Number(t, 0), one = Number(t, 1), count = Max(t, one);
    const auto rest = [&](double factor) { return one - Apply("power", {Number(t, factor), count}); };
    const Value r = Where(first, rate, rate * Sqrt(rest(beta)) / rest(alpha));
    const Value x = of[0] - r * mean / (Sqrt(squares) + epsilon);
    return {after == 0 ? x : x * (1 - after), mean, squares};
  });
}

Outputs Momentum(NodeContext& c) {
  const double alpha = c.FloatAttr("alpha", 0), beta = c.FloatAttr("beta", 0),
               norm = c.FloatAttr("norm_coefficient", 0);
  const std::string mode = c.StringAttr("mode", "");
  if (mode != "standard" && mode != "nesterov") return Unsupported(absl::StrCat("mode is \"", mode, "\""));
  return EachTensor(c, 3, [&](const Value& rate, const Value& updates, const std::vector<Value>& of) -> Step {
    const Value gradient = of[0] * norm + of[1];
    const Value weight = Where(updates > Number(updates, 0), Number(gradient, beta), Number(gradient, 1));
    const Value velocity = of[2] * alpha + weight * gradient;
    return {of[0] - rate * (mode == "standard" ? velocity : gradient + velocity * alpha), velocity};
  });
}

}  // namespace

HONE_OPERATORS(optimizers) {
  constexpr std::string_view kDomain = "ai.onnx.preview.training";
  return {{.onnx = {{"Adagrad", 1, Adagrad, kDomain}, {"Adam", 1, Adam, kDomain}, {"Momentum", 1, Momentum, kDomain}}}};
}

}  // namespace hone
