// Trigonometric and hyperbolic functions, and their inverses.
#include <cmath>

#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

Expr Num(double value, const Expr& like) { return Const(value, like.type()); }

Expr Atan(const Expr& x) { return MakeCall("atan", {x}); }
Expr Asin(const Expr& x) {
  const Expr one = Num(1, x);
  return Atan(x / MakeCall("sqrt", {(one - x) * (one + x)}));
}
Expr Acos(const Expr& x) {
  const Expr one = Num(1, x);
  return Num(2, x) * Atan(MakeCall("sqrt", {(one - x) / (one + x)}));
}

Expr Log1p(const Expr& x) { return MakeCall("log1p", {x}); }
Expr Expm1(const Expr& x) { return MakeCall("expm1", {x}); }

Expr WithSignOf(const Expr& x, const Expr& magnitude) {
  return MakeSelect(x < Num(0, x), Num(0, x) - magnitude, magnitude);
}

Expr Asinh(const Expr& x) {
  const Expr a = MakeCall("abs", {x}), one = Num(1, x);
  return WithSignOf(x, Log1p(a + a * a / (one + MakeCall("sqrt", {a * a + one}))));
}
Expr Acosh(const Expr& x) {
  const Expr above = x - Num(1, x);
  return Log1p(above + MakeCall("sqrt", {above * (x + Num(1, x))}));
}
Expr Atanh(const Expr& x) { return Num(0.5, x) * Log1p(Num(2, x) * x / (Num(1, x) - x)); }
Expr Sinh(const Expr& x) {
  const Expr e = Expm1(MakeCall("abs", {x}));
  return WithSignOf(x, Num(0.5, x) * (e + e / (e + Num(1, x))));
}
Expr Cosh(const Expr& x) {
  const Expr e = MakeCall("exp", {MakeCall("abs", {x})});
  return Num(0.5, x) * (e + Num(1, x) / e);
}

template <const std::string_view& kOp>
Outputs Import(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  return Results({Apply(kOp, {Input(c, 0)})});
}

Outputs Tan(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_ASSIGN_OR_RETURN(const int sin, c.Emit("sin", {c.input(0)}));
  HONE_ASSIGN_OR_RETURN(const int cos, c.Emit("cos", {c.input(0)}));
  return One(c.Emit("divide", {sin, cos}));
}

constexpr std::string_view kAcos = "acos", kAcosh = "acosh", kAsin = "asin", kAsinh = "asinh", kAtan = "atan",
                           kAtanh = "atanh", kCosh = "cosh", kSinh = "sinh";

}  // namespace

HONE_OPERATORS(trigonometry) {
  constexpr Accepts kFloat = Accepts::kFloat;
  return {
      {.graph = {UnaryFunction("sin", kFloat, topi::Sin), UnaryFunction("cos", kFloat, topi::Cos),
                 UnaryFunction("tanh", kFloat, topi::Tanh)},
       .onnx =
           {
               {"Sin", 7, [](NodeContext& c) { return ImportAs(c, 1, "sin"); }},
               {"Cos", 7, [](NodeContext& c) { return ImportAs(c, 1, "cos"); }},
               {"Tan", 7, Tan, "", true},
               {"Tanh", 6, [](NodeContext& c) { return ImportAs(c, 1, "tanh"); }, "", true},
           }},
      {{FloatFunction(kAcos, Acos)}, {{.name = "Acos", .since = 7, .import = Import<kAcos>, .in_float32 = true}}},
      {{FloatFunction(kAcosh, Acosh)}, {{.name = "Acosh", .since = 9, .import = Import<kAcosh>, .in_float32 = true}}},
      {{FloatFunction(kAsin, Asin)}, {{.name = "Asin", .since = 7, .import = Import<kAsin>, .in_float32 = true}}},
      {{FloatFunction(kAsinh, Asinh)}, {{.name = "Asinh", .since = 9, .import = Import<kAsinh>, .in_float32 = true}}},
      {{FloatFunction(kAtan, Atan)}, {{.name = "Atan", .since = 7, .import = Import<kAtan>, .in_float32 = true}}},
      {{FloatFunction(kAtanh, Atanh)}, {{.name = "Atanh", .since = 9, .import = Import<kAtanh>, .in_float32 = true}}},
      {{FloatFunction(kCosh, Cosh)}, {{.name = "Cosh", .since = 9, .import = Import<kCosh>, .in_float32 = true}}},
      {{FloatFunction(kSinh, Sinh)}, {{.name = "Sinh", .since = 9, .import = Import<kSinh>, .in_float32 = true}}},
  };
}

}  // namespace hone
