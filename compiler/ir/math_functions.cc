#include "compiler/ir/math_functions.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

namespace hone {
namespace {

Expr Real(double value) { return FloatConst(value, DType::Float(64)); }
Expr Infinity() { return Real(std::numeric_limits<double>::infinity()); }
Expr Call1(const char* name, const Expr& x) { return MakeCall(name, {x}); }
Expr Atan2(const Expr& y, const Expr& x) { return MakeCall("atan2", {y, x}); }
Expr Magnitude(const Expr& x) { return Call1("abs", x); }
Expr Like(double value, const Expr& x) { return FloatConst(value, x.type()); }

// ---- Errors: for |k| <= most, |f(x + k e) - f(x)| / |k| is at most this, for an argument x with error e.

// How small the argument may be.
Expr Least(const ErrorPoint& p) { return p.bind(p.args[0] - Real(p.most) * p.errors[0]); }

// `slope` where the argument is surely `inside` the domain, which starts at `from`: nothing where it is surely outside,
// for the value is surely no number; anything on the border.
Expr InDomain(const ErrorPoint& p, double from, const Expr& inside, const Expr& slope) {
  const Expr outside = MakeNot(p.args[0] + Real(p.most) * p.errors[0] >= Real(from));
  return MakeSelect(inside, slope, MakeSelect(outside, Real(0), Infinity()));
}

// The same for the domain [-1, 1], `depth` the least distance of the argument from the nearer end.
Expr InUnit(const ErrorPoint& p, const Expr& depth, const Expr& slope) {
  const Expr outside = MakeNot(Magnitude(p.args[0]) - Real(p.most) * p.errors[0] <= Real(1));
  return MakeSelect(depth > Real(0), slope, MakeSelect(outside, Real(0), Infinity()));
}

// The function's slope is at most 1.
Expr AtMostOne(const ErrorPoint& p) { return p.errors[0]; }

// (exp(x + k e) - exp(x)) / k is at most exp(x) e exp(k e). Where exp(x) is infinite in double, it is further beyond
// the largest float than errors below 100 reach.
Expr OfExponential(const ErrorPoint& p, const Expr& exponential, const Expr& off) {
  const Expr error = exponential * off * Call1("exp", Min(Real(p.most) * off, Real(700)));
  return MakeSelect(p.size < Infinity(), error, MakeSelect(off < Real(100), Real(0), Infinity()));
}

Expr ExpErrors(const ErrorPoint& p) { return p.errors[0] ? OfExponential(p, p.size, p.errors[0]) : Expr(); }
Expr Exp2Errors(const ErrorPoint& p) {
  return p.errors[0] ? OfExponential(p, p.size, p.bind(p.errors[0] * Real(std::numbers::ln2))) : Expr();
}

Expr Expm1Errors(const ErrorPoint& p) {
  return p.errors[0] ? OfExponential(p, p.bind(Magnitude(p.value + Real(1))), p.errors[0]) : Expr();
}

Expr LogErrors(const ErrorPoint& p) {
  if (!p.errors[0]) return Expr();
  const Expr least = Least(p);
  return InDomain(p, 0, least > Real(0), p.errors[0] / least);
}
Expr Log2Errors(const ErrorPoint& p) {
  if (!p.errors[0]) return Expr();
  const Expr least = Least(p);
  return InDomain(p, 0, least > Real(0), p.errors[0] / least * Real(std::numbers::log2e));
}

Expr Log1pErrors(const ErrorPoint& p) {
  if (!p.errors[0]) return Expr();
  const Expr least = p.bind(Real(1) + Least(p));
  return InDomain(p, -1, least > Real(0), p.errors[0] / least);
}

Expr SqrtErrors(const ErrorPoint& p) {
  if (!p.errors[0]) return Expr();
  const Expr& off = p.errors[0];
  const Expr slope = MakeSelect(off > Real(0), Min(off / p.value, Call1("sqrt", off)), Real(0));
  return InDomain(p, 0, Least(p) >= Real(0), slope);
}
Expr RsqrtErrors(const ErrorPoint& p) {
  if (!p.errors[0]) return Expr();
  const Expr least = Least(p);
  return InDomain(p, 0, least > Real(0), Real(0.5) * p.size * p.errors[0] / least);
}

Expr SigmoidErrors(const ErrorPoint& p) {
  if (!p.errors[0]) return Expr();
  const Expr& off = p.errors[0];
  return off * Min(Real(0.25), p.size * Call1("exp", Min(Real(p.most) * off, Real(700))));
}
Expr ErfErrors(const ErrorPoint& p) { return p.errors[0] ? p.errors[0] * Real(2 * std::numbers::inv_sqrtpi) : Expr(); }

Expr TanErrors(const ErrorPoint& p) {
  const Expr own = Real(4 * p.roundoff);
  return (p.errors[0] ? own + p.errors[0] : own) * Real(2) * (Real(1) + p.value * p.value);
}

// The slope of asin and acos is 1 / sqrt(1 - x^2) in magnitude, that of atanh 1 / (1 - x^2).
Expr AsinErrors(const ErrorPoint& p) {
  if (!p.errors[0]) return Expr();
  const Expr most = p.bind(Magnitude(p.args[0]) + Real(p.most) * p.errors[0]), depth = p.bind(Real(1) - most);
  return InUnit(p, depth, p.errors[0] / Call1("sqrt", depth * (Real(1) + most)));
}
Expr AtanhErrors(const ErrorPoint& p) {
  if (!p.errors[0]) return Expr();
  const Expr most = p.bind(Magnitude(p.args[0]) + Real(p.most) * p.errors[0]), depth = p.bind(Real(1) - most);
  return InUnit(p, depth, p.errors[0] / (depth * (Real(1) + most)));
}

// The slope is 1 / sqrt(x^2 + 1), below both 1 and 1 / |x|.
Expr AsinhErrors(const ErrorPoint& p) {
  if (!p.errors[0]) return Expr();
  return p.errors[0] / Max(Real(1), Magnitude(p.args[0]) - Real(p.most) * p.errors[0]);
}

// The slope is 1 / sqrt(x^2 - 1).
Expr AcoshErrors(const ErrorPoint& p) {
  if (!p.errors[0]) return Expr();
  const Expr least = p.bind(Least(p));
  const Expr slope = p.errors[0] / (Call1("sqrt", least - Real(1)) * Call1("sqrt", least + Real(1)));
  return InDomain(p, 1, least > Real(1), slope);
}

// The slopes are cosh(x), at most 1 + |sinh(x)|, and sinh(x), at most cosh(x).
Expr SinhErrors(const ErrorPoint& p) {
  return p.errors[0] ? OfExponential(p, p.bind(p.size + Real(1)), p.errors[0]) : Expr();
}
Expr CoshErrors(const ErrorPoint& p) { return p.errors[0] ? OfExponential(p, p.size, p.errors[0]) : Expr(); }

// Of y and x: the slopes are x / (x^2 + y^2) and -y / (x^2 + y^2), and the value jumps by a turn where y changes its
// sign and x is negative.
Expr Atan2Errors(const ErrorPoint& p) {
  if (!p.errors[0] && !p.errors[1]) return Expr();
  const auto reach = [&](size_t i) { return p.errors[i] ? Real(p.most) * p.errors[i] : Real(0); };
  const Expr of_y = p.bind(reach(0)), of_x = p.bind(reach(1));
  const Expr y = p.bind(Magnitude(p.args[0])), x = p.bind(Magnitude(p.args[1]));
  const Expr rest = p.bind(Max(y, x) - (of_y + of_x));  // from the origin at least
  Expr part = Real(0);
  if (p.errors[0]) part = part + (x + of_x) / rest * (p.errors[0] / rest);
  if (p.errors[1]) part = part + (y + of_y) / rest * (p.errors[1] / rest);
  Expr known = And(rest > Real(0), rest < Infinity());
  if (p.errors[0]) known = And(known, Or(y > of_y, p.args[1] - of_x > Real(0)));
  return MakeSelect(known, part, Infinity());
}

// By way of exp(y log(x)) the exponent's own rounding counts.
Expr PowErrors(const ErrorPoint& p) {
  const Expr base = p.bind(Magnitude(p.args[0])), exponent = Magnitude(p.args[1]);
  const Expr logarithm = p.bind(MakeSelect(base > Real(0), Magnitude(Call1("log", base)), Real(0)));
  Expr part = Real(2 * p.roundoff) * exponent * logarithm;
  if (p.errors[1]) part = part + p.errors[1] * logarithm;
  if (const Expr& off = p.errors[0]) {
    const Expr rest = p.bind(base - Real(p.most) * off);
    const Expr carried = MakeSelect(rest > Real(0), exponent * off / rest, Infinity());
    part = part + MakeSelect(off > Real(0), carried, Real(0));
  }
  part = p.bind(part);
  return MakeSelect(part < Real(0.1), MakeSelect(p.size < Infinity(), Real(2) * p.size * part, Real(0)), Infinity());
}

// ---- Values in double, where the C library has none

double Rsqrt(double x) { return 1 / std::sqrt(x); }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Power(double x, double y) { return std::pow(x, y); }
double Arctangent(double y, double x) { return std::atan2(y, x); }

// ---- Expansions

Expr RsqrtOf(const Expr& x) { return Like(1, x) / Call1("sqrt", x); }

// With e = exp(-|x|), which cannot overflow: 1 / (1 + e), or e / (1 + e) for negative x.
Expr SigmoidOf(const Expr& x) {
  const Var e("e", x.type());
  const Expr quotient = MakeSelect(x < Like(0, x), e, Like(1, x)) / (Like(1, x) + Expr(e));
  return Expr::Make(LetExpr{e, Call1("exp", -Magnitude(x)), quotient}, x.type());
}

// log(1 + x) and exp(x) - 1 without the loss of digits near 0: what rounding does to w = 1 + x, or to u = exp(x), is
// divided out again (W. Kahan; N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 1.14.1).
Expr Log1pOf(const Expr& x) {
  const Var w("w", x.type());
  const Expr quotient = x * (Call1("log", w) / (Expr(w) - Like(1, x)));
  const Expr infinite = Eq(w, Like(std::numeric_limits<double>::infinity(), x));
  const Expr value = MakeSelect(Or(Eq(w, Like(1, x)), infinite), x, quotient);
  return Expr::Make(LetExpr{w, Like(1, x) + x, value}, x.type());
}
Expr Expm1Of(const Expr& x) {
  const Var u("u", x.type());
  const Expr less = Expr(u) - Like(1, x);
  const Expr value = MakeSelect(Magnitude(x) > Like(1, x), less, less * (x / Call1("log", u)));
  return Expr::Make(LetExpr{u, Call1("exp", x), MakeSelect(Eq(u, Like(1, x)), x, value)}, x.type());
}

Expr TanOf(const Expr& x) { return Call1("sin", x) / Call1("cos", x); }

// With t = tan(pi / 8): atan(a) = pi/4 + atan((a - 1) / (a + 1)) above t, and pi/2 - atan(1 / a) beyond 1 / t. What is
// left is at most t, and its power series, r - r^3/3 + r^5/5 - ..., gains a factor of 5.8 a term.
Expr AtanOf(const Expr& x) {
  const double turn = std::numbers::sqrt2 - 1;
  const Var a("a", x.type()), r("r", x.type()), square("s", x.type());
  const Expr one = Like(1, x), high = a > Like(1 / turn, x), middle = a > Like(turn, x);
  Expr series = Like(0, x);
  for (int k = (x.type().bits == 64 ? 22 : 10) - 1; k >= 0; --k)
    series = series * Expr(square) + Like((k % 2 == 0 ? 1.0 : -1.0) / (2 * k + 1), x);
  const Expr from =
      MakeSelect(high, Like(std::numbers::pi / 2, x), MakeSelect(middle, Like(std::numbers::pi / 4, x), Like(0, x)));
  Expr value = Expr::Make(LetExpr{square, Expr(r) * Expr(r), from + Expr(r) * series}, x.type());
  const Expr reduced = MakeSelect(high, Like(-1, x) / a, MakeSelect(middle, (Expr(a) - one) / (Expr(a) + one), a));
  value = Expr::Make(LetExpr{r, reduced, std::move(value)}, x.type());
  value = Expr::Make(LetExpr{a, Magnitude(x), std::move(value)}, x.type());
  return MakeSelect(x < Like(0, x), -value, value);
}

// The other leg of a right triangle with the hypotenuse 1 and the leg x: no digits are lost where it is short, and
// there is none for |x| > 1. The angle is atan2 of the legs (Abramowitz and Stegun, Handbook of Mathematical
// Functions, 4.4).
Expr OtherLeg(const Expr& x) { return Call1("sqrt", (Like(1, x) - x) * (Like(1, x) + x)); }
Expr AsinOf(const Expr& x) { return Atan2(x, OtherLeg(x)); }
Expr AcosOf(const Expr& x) { return Atan2(OtherLeg(x), x); }

// An odd function whose series begins with x and has no x^2: of |x|, with the sign of x. Below 2^-13, or 2^-27 in
// double, it is x to the last place; so zeros keep their signs.
Expr OddOf(const Expr& x, Expr (*of_magnitude)(const Expr&)) {
  const Var a("a", x.type()), f("f", x.type());
  const Expr tiny = Like(x.type().bits == 64 ? 0x1p-27 : 0x1p-13, x);
  const Expr signed_value = MakeSelect(a < tiny, x, MakeSelect(x < Like(0, x), -Expr(f), f));
  const Expr value = Expr::Make(LetExpr{f, of_magnitude(a), signed_value}, x.type());
  return Expr::Make(LetExpr{a, Magnitude(x), value}, x.type());
}

// The inverses of the hyperbolic functions, by log(1 + t), which loses no digits near 0 (Abramowitz and Stegun, 4.6).
// Beyond 2^60 those of sinh and cosh are log(2) + log(1 + x) to the last place, and the square of x may be infinite.
constexpr double kOnlyLogarithm = 0x1p60;

// log(1 + t), or log(2) + log(1 + far) where the argument is that.
Expr LogarithmOf(const Expr& is_far, const Expr& far, const Expr& t) {
  const Expr more = MakeSelect(is_far, Like(std::numbers::ln2, t), Like(0, t));
  return Call1("log1p", MakeSelect(is_far, far, t)) + more;
}

// sqrt(a^2 + 1) - 1 = a^2 / (1 + sqrt(a^2 + 1)).
Expr AsinhOf(const Expr& x) {
  return OddOf(x, [](const Expr& a) {
    const Expr one = Like(1, a);
    return LogarithmOf(a > Like(kOnlyLogarithm, a), a, a + a * (a / (one + Call1("sqrt", a * a + one))));
  });
}

// t = x - 1 is exact below 2. The magnitude under the root makes it no number for x < -1 too.
Expr AcoshOf(const Expr& x) {
  const Var t("t", x.type());
  const Expr root = Call1("sqrt", Expr(t) * (Magnitude(t) + Like(2, x)));
  const Expr value = LogarithmOf(t > Like(kOnlyLogarithm, x), t, Expr(t) + root);
  return Expr::Make(LetExpr{t, x - Like(1, x), value}, x.type());
}

// log((1 + a) / (1 - a)) / 2.
Expr AtanhOf(const Expr& x) {
  return OddOf(x, [](const Expr& a) { return Like(0.5, a) * Call1("log1p", (a + a) / (Like(1, a) - a)); });
}

// ---- The table

constexpr DeviceNames Both(std::string_view name) { return {name, name}; }

constexpr MathFunction kFunctions[] = {
    {.name = "exp",
     .of_one = std::exp,
     .errors = {.carried = ExpErrors, .may_flush = true, .may_overflow = true},
     .device = Both("exp")},
    {.name = "exp2",
     .of_one = std::exp2,
     .errors = {.carried = Exp2Errors, .may_flush = true, .may_overflow = true},
     .device = Both("exp2")},
    {.name = "expm1",
     .of_one = std::expm1,
     .errors = {.carried = Expm1Errors, .relative = 8, .may_overflow = true},
     .expand = Expm1Of,
     .device = Both("expm1")},
    {.name = "log", .of_one = std::log, .errors = {.carried = LogErrors, .absolute = 1}, .device = Both("log")},
    {.name = "log2", .of_one = std::log2, .errors = {.carried = Log2Errors, .absolute = 1}, .device = Both("log2")},
    {.name = "log1p",
     .of_one = std::log1p,
     .errors = {.carried = Log1pErrors, .relative = 8},
     .expand = Log1pOf,
     .device = Both("log1p")},
    {.name = "sqrt", .of_one = std::sqrt, .errors = {.carried = SqrtErrors, .relative = 2}, .device = Both("sqrt")},
    {.name = "rsqrt", .of_one = Rsqrt, .errors = {.carried = RsqrtErrors}, .expand = RsqrtOf, .device = Both("rsqrt")},
    {.name = "tanh", .of_one = std::tanh, .errors = {.carried = AtMostOne}, .device = Both("tanh")},
    {.name = "erf", .of_one = std::erf, .errors = {.carried = ErfErrors}, .device = Both("erf")},
    {.name = "sigmoid",
     .of_one = Sigmoid,
     .errors = {.carried = SigmoidErrors, .may_flush = true},
     .expand = SigmoidOf},
    {.name = "sin",
     .of_one = std::sin,
     .errors = {.carried = AtMostOne, .relative = 0, .absolute = 4},
     .device = Both("sin")},
    {.name = "cos",
     .of_one = std::cos,
     .errors = {.carried = AtMostOne, .relative = 0, .absolute = 4},
     .device = Both("cos")},
    {.name = "tan",
     .of_one = std::tan,
     .errors = {.carried = TanErrors},
     .expand = TanOf,
     .in_double = true,
     .device = Both("tan")},
    {.name = "atan",
     .of_one = std::atan,
     .errors = {.carried = AtMostOne, .relative = 8},
     .expand = AtanOf,
     .device = Both("atan")},
    {.name = "atan2",
     .of_two = Arctangent,
     .errors = {.carried = Atan2Errors, .relative = 12},
     .device = Both("atan2")},
    {.name = "asin",
     .of_one = std::asin,
     .errors = {.carried = AsinErrors, .relative = 8},
     .expand = AsinOf,
     .device = Both("asin")},
    {.name = "acos",
     .of_one = std::acos,
     .errors = {.carried = AsinErrors, .relative = 8},
     .expand = AcosOf,
     .device = Both("acos")},
    {.name = "sinh",
     .of_one = std::sinh,
     .errors = {.carried = SinhErrors, .relative = 8, .may_overflow = true},
     .device = Both("sinh")},
    {.name = "cosh",
     .of_one = std::cosh,
     .errors = {.carried = CoshErrors, .relative = 8, .may_overflow = true},
     .device = Both("cosh")},
    {.name = "asinh",
     .of_one = std::asinh,
     .errors = {.carried = AsinhErrors, .relative = 8},
     .expand = AsinhOf,
     .device = Both("asinh")},
    {.name = "acosh",
     .of_one = std::acosh,
     .errors = {.carried = AcoshErrors, .relative = 8},
     .expand = AcoshOf,
     .device = Both("acosh")},
    {.name = "atanh",
     .of_one = std::atanh,
     .errors = {.carried = AtanhErrors, .relative = 10},
     .expand = AtanhOf,
     .device = Both("atanh")},
    {.name = "pow",
     .of_two = Power,
     .errors = {.carried = PowErrors, .relative = 16, .may_flush = true, .may_overflow = true},
     .device = Both("pow")},
    {.name = "floor", .of_one = std::floor, .device = Both("floor")},
    {.name = "ceil", .of_one = std::ceil, .device = Both("ceil")},
    {.name = "round", .of_one = std::nearbyint, .device = Both("rint")},  // halves to even
    {.name = "trunc", .of_one = std::trunc, .device = Both("trunc")},
    {.name = "abs", .of_one = std::fabs, .device = Both("fabs")},
};

}  // namespace

std::span<const MathFunction> MathFunctions() { return kFunctions; }

const MathFunction* FindMathFunction(std::string_view name) {
  const auto* found = std::ranges::find(kFunctions, name, &MathFunction::name);
  return found == std::end(kFunctions) ? nullptr : found;
}

std::optional<Expr> ExpandMath(const Call& call, bool precise) {
  const MathFunction* function = FindMathFunction(call.name);
  if (function == nullptr || function->expand == nullptr) return std::nullopt;
  const DType type = call.args[0].type();
  const bool wide = type.bits == 64 || function->in_double || precise;
  const DType working = DType::Float(wide ? 64 : 32).with_lanes(type.lanes);
  const Var x("x", working);
  return MakeCast(type, Expr::Make(LetExpr{x, MakeCast(working, call.args[0]), function->expand(x)}, working));
}

}  // namespace hone
