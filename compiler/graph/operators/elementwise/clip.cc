#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// "min", "max".
OpInfo ClipOp() {
  return UnaryFunction("clip", Accepts::kNumber, [](const te::Tensor& x, const Attrs& a) {
    return topi::Clip(x, FloatAttr(a, "min", -kInfinity), FloatAttr(a, "max", kInfinity), "clip");
  });
}

Outputs Clip(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, c.opset() < 11 ? 1 : 3));
  double bounds[2] = {-kInfinity, kInfinity};
  int result = c.input(0);
  if (c.opset() < 11) {
    bounds[0] = c.FloatAttr("min", -kInfinity);
    bounds[1] = c.FloatAttr("max", kInfinity);
  }
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!c.HasInput(i)) continue;
    if (NumElements(c.shape(c.input(i))) != 1)
      return Unsupported(absl::StrCat("a bound of shape ", ToText(c.type(c.input(i)))));
    if (c.graph().values[c.input(i)].is_constant()) {
      HONE_ASSIGN_OR_RETURN(bounds[i - 1], c.Number(i, "a bound"));
    } else {
      HONE_ASSIGN_OR_RETURN(const int bound, c.Reshape(c.input(i), {}));
      HONE_ASSIGN_OR_RETURN(result, c.Emit(i == 1 ? "maximum" : "minimum", {result, bound}));
    }
  }
  if (bounds[0] == -kInfinity && bounds[1] == kInfinity) return std::vector<int>{result};
  if (bounds[0] == 0 && bounds[1] == kInfinity) return One(c.Emit("relu", {result}));
  return One(c.Emit("clip", {result}, {{"min", bounds[0]}, {"max", bounds[1]}}));
}

}  // namespace

HONE_OPERATORS(clip) { return {{.graph = {ClipOp()}, .onnx = {{"Clip", 6, Clip}}}}; }

}  // namespace hone
