#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// x * sigmoid(alpha * x)
Outputs Swish(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value x = Input(c, 0);
  const double alpha = c.FloatAttr("alpha", 1);
  if (alpha == 1) return Results({Apply("silu", {x})});
  return Results({x * Sigmoid(x * alpha)});
}

// swish(a) * b
Outputs SwiGlu(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Value a = Input(c, 0), b = Input(c, 1);
  if (a.shape() != b.shape()) return Unsupported("gate and value have different shapes");
  return Results({a * Sigmoid(a * c.FloatAttr("alpha", 1)) * b});
}

}  // namespace

HONE_OPERATORS(swish) {
  return {{.onnx = {{.name = "Swish", .since = 24, .import = Swish, .in_float32 = true}}},
          {.onnx = {{.name = "SwiGLU", .since = 28, .import = SwiGlu, .in_float32 = true}}}};
}

}  // namespace hone
