#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// x / sqrt(mean(x^2) + epsilon) * scale, the mean over the dimensions from `axis` on.
Outputs RmsNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Value x = Input(c, 0);
  const int64_t stash_type = c.IntAttr("stash_type", 1);  // of the mean: it is computed in float32 at least
  if (stash_type != 1 && stash_type != 10 && stash_type != 16)
    return Unsupported(absl::StrCat("stash_type is ", OnnxDTypeName(stash_type)));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -1), x.rank()));
  const std::vector<int64_t> normal(x.shape().begin() + axis, x.shape().end());
  const Value scale = Expand(Cast(Input(c, 1), x.dtype()), normal);
  return Results({Apply("rms_norm", {x, scale}, {{"axis", axis}, {"epsilon", c.FloatAttr("epsilon", 1e-5)}})});
}

}  // namespace

HONE_OPERATORS(rms_normalization) {
  return {{.onnx = {{.name = "RMSNormalization", .since = 23, .import = RmsNormalization, .in_float32 = true}}}};
}

}  // namespace hone
