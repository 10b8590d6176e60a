// Powers and roots.
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

// x ^ y: a constant exponent is the attribute "exponent" and is expanded into products where it is a small integer.
OpInfo PowScalarOp() {
  return UnaryFunction("pow_scalar", Accepts::kFloat, [](const te::Tensor& x, const Attrs& attrs) {
    return topi::PowerScalar(x, FloatAttr(attrs, "exponent"), "power");
  });
}

// A constant exponent is kept apart: x^2 is x * x.
Outputs Pow(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const GraphValue& exponent = c.graph().values[c.input(1)];
  const DType dtype = c.type(c.input(0)).dtype;
  if (exponent.is_constant() && NumElements(exponent.type.shape) == 1 && dtype.is_float() &&
      exponent.type.rank() <= c.rank(c.input(0))) {
    return One(c.Emit("pow_scalar", {c.input(0)}, {{"exponent", exponent.data->Get(0)}}));
  }
  if (!dtype.is_float()) {  // of integers: shapes, so small that float64 is exact
    HONE_ASSIGN_OR_RETURN(const int a, c.Emit("cast", {c.input(0)}, {{"to", std::string("float64")}}));
    HONE_ASSIGN_OR_RETURN(const int b, c.Emit("cast", {c.input(1)}, {{"to", std::string("float64")}}));
    HONE_ASSIGN_OR_RETURN(const int y, c.Emit("power", {a, b}));
    return One(c.Emit("cast", {y}, {{"to", ToText(dtype)}}));
  }
  HONE_ASSIGN_OR_RETURN(const int b, c.Emit("cast", {c.input(1)}, {{"to", ToText(dtype)}}));
  return One(c.Emit("power", {c.input(0), b}));
}

}  // namespace

HONE_OPERATORS(powers) {
  constexpr Accepts kFloat = Accepts::kFloat;
  return {
      {.graph = {BinaryFunction("power", kFloat, topi::Power), PowScalarOp(), UnaryFunction("sqrt", kFloat, topi::Sqrt),
                 UnaryFunction("rsqrt", kFloat, topi::Rsqrt), UnaryFunction("reciprocal", kFloat, topi::Reciprocal)},
       .onnx = {
           {"Pow", 7, Pow, "", true},
           {"Sqrt", 6, [](NodeContext& c) { return ImportAs(c, 1, "sqrt"); }, "", true, NarrowElements::kRefuses, true},
           {"Reciprocal", 6, [](NodeContext& c) { return ImportAs(c, 1, "reciprocal"); }},
       }}};
}

}  // namespace hone
