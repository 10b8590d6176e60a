// Losses of classification.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// -weight[t] * p[n, t, d...] with t = target[n, d...]; where t is ignore_index it is 0 and counts nothing. Then the
// sum, or the mean by the weights.
Value LogLikelihood(NodeContext& c, const Value& p, const Value& target, const Value& weight) {
  if (!p) return {};
  const int64_t classes = p.dim(1);
  const std::string reduction = c.StringAttr("reduction", "mean");
  std::vector<int64_t> expected = p.shape();
  expected.erase(expected.begin() + 1);
  if (target.shape() != expected || !target.dtype().is_int())
    return Fail(
        c, Unsupported(absl::StrCat("the target is ", ToText(c.type(target.id())), " for ", ToText(c.type(p.id())))));
  Value index = Cast(target, kInt64), counts;
  if (c.HasAttr("ignore_index")) {
    const Value ignored = index == Number(index, static_cast<double>(c.IntAttr("ignore_index", 0)));
    counts = Where(ignored, Constant(c, p.dtype(), 0), Constant(c, p.dtype(), 1));
    index = Where(ignored, Number(index, 0), index);
  }
  if (!index) return {};
  std::vector<int64_t> with_class = p.shape();
  with_class[1] = 1;
  const Value picked =
      Reshape(Apply("gather_elements", {p, Reshape(index, with_class)}, {{"axis", int64_t{1}}}), expected);
  if (weight) {
    if (weight.shape() != std::vector<int64_t>{classes})
      return Fail(
          c, Unsupported(absl::StrCat("the weight is ", ToText(c.type(weight.id())), " for ", classes, " classes")));
    const Value each = Gather(weight, index, 0);
    counts = counts ? counts * each : each;
  }
  const Value loss = counts ? -(picked * counts) : -picked;
  if (reduction == "none" || !loss) return loss;
  std::vector<int64_t> axes;
  for (int d = 0; d < loss.rank(); ++d) axes.push_back(d);
  if (reduction == "sum") return Reduce("reduce_sum", loss, axes, false);
  if (reduction != "mean") return Fail(c, Unsupported(absl::StrCat("reduction is \"", reduction, "\"")));
  if (!counts) return Reduce("reduce_mean", loss, axes, false);
  return Reduce("reduce_sum", loss, axes, false) / Reduce("reduce_sum", counts, axes, false);
}

absl::Status CheckScores(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  if (c.rank(c.input(0)) >= 2) return absl::OkStatus();
  return Unsupported(absl::StrCat("scores of shape ", ToText(c.type(c.input(0)))));
}

Outputs NegativeLogLikelihoodLoss(NodeContext& c) {
  HONE_RETURN_IF_ERROR(CheckScores(c));
  return Results({LogLikelihood(c, Input(c, 0), Input(c, 1), Input(c, 2))});
}

Outputs SoftmaxCrossEntropyLoss(NodeContext& c) {
  HONE_RETURN_IF_ERROR(CheckScores(c));
  const Value log_prob = Apply("log_softmax", {Input(c, 0)}, {{"axis", int64_t{1}}});
  return Results({LogLikelihood(c, log_prob, Input(c, 1), Input(c, 2)), log_prob});
}

}  // namespace

HONE_OPERATORS(losses) {
  return {
      {.onnx = {{.name = "NegativeLogLikelihoodLoss",
                 .since = 12,
                 .import = NegativeLogLikelihoodLoss,
                 .in_float32 = true}}},
      {.onnx =
           {{.name = "SoftmaxCrossEntropyLoss", .since = 12, .import = SoftmaxCrossEntropyLoss, .in_float32 = true}}},
  };
}

}  // namespace hone
