// Inverse trigonometric and hyperbolic functions.
#include <cmath>

#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

Expr Num(double value, const Expr& like) { return Const(value, like.type()); }

// With t = tan(pi / 8) as the turning point, atan(x) = pi/4 + atan((x - 1) / (x + 1)) above it, and beyond 1 / t
// atan(x) = pi/2 - atan(1 / x); what is left is at most t and its power series, x - x^3/3 + x^5/5 - ..., gains a factor
// of 5.8 a term: ten for float32, 22 for float64.
Expr Atan(const Expr& x) {
  const double turn = std::tan(M_PI / 8);
  const Expr a = MakeCall("abs", {x}), one = Num(1, x);
  const Expr high = a > Num(1 / turn, x), middle = a > Num(turn, x);
  const Expr reduced = MakeSelect(high, Num(-1, x) / a, MakeSelect(middle, (a - one) / (a + one), a));
  const Expr square = reduced * reduced;
  const int terms = x.type().bits == 64 ? 22 : 10;
  Expr series = Num(0, x);
  for (int k = terms - 1; k >= 0; --k) series = series * square + Num((k % 2 == 0 ? 1.0 : -1.0) / (2 * k + 1), x);
  const Expr from = MakeSelect(high, Num(M_PI / 2, x), MakeSelect(middle, Num(M_PI / 4, x), Num(0, x)));
  const Expr result = from + reduced * series;
  return MakeSelect(x < Num(0, x), Num(0, x) - result, result);
}

Expr Asin(const Expr& x) {
  const Expr one = Num(1, x);
  return Atan(x / MakeCall("sqrt", {(one - x) * (one + x)}));
}
Expr Acos(const Expr& x) {
  const Expr one = Num(1, x);
  return Num(2, x) * Atan(MakeCall("sqrt", {(one - x) / (one + x)}));
}

// log(1 + x) and exp(x) - 1 without the loss of digits near 0: what rounding does to 1 + x (to exp(x)) is divided out
// again (W. Kahan; N. Higham, Accuracy and Stability of Numerical Algorithms, 1.14.1).
Expr Log1p(const Expr& x) {
  const Expr one = Num(1, x), w = one + x;
  return MakeSelect(Eq(w, one), x, x * (MakeCall("log", {w}) / (w - one)));
}
Expr Expm1(const Expr& x) {
  const Expr one = Num(1, x), u = MakeCall("exp", {x}), near = (u - one) * (x / MakeCall("log", {u}));
  const Expr large = MakeCall("abs", {x}) > one;
  return MakeSelect(Eq(u, one), x, MakeSelect(large, u - one, near));
}

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
constexpr std::string_view kAcos = "acos", kAcosh = "acosh", kAsin = "asin", kAsinh = "asinh", kAtan = "atan",
                           kAtanh = "atanh", kCosh = "cosh", kSinh = "sinh";

}  // namespace

HONE_OPERATORS(trigonometry) {
  return {
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
