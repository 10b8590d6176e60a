#include "compiler/oracle/error_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/ir/float_format.h"
#include "compiler/ir/math_functions.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/oracle/oracle.h"
#include "compiler/support/status_macros.h"

namespace hone::error_analysis {
namespace {

constexpr DType kF64 = DType::Float(64);
// Errors are in units that the loosest level multiplies by this: decisions are uncertain up to there.
const double kMost = LevelConstant(NumericLevel::kDefault);

Expr Real(double value) { return FloatConst(value, kF64); }
Expr Infinity() { return Real(std::numeric_limits<double>::infinity()); }
Expr Magnitude(const Expr& e) { return MakeCall("abs", {e}); }
Expr AsReal(const Expr& e) { return MakeCast(kF64, e); }
Expr Call1(const char* name, const Expr& e) { return MakeCall(name, {e}); }

bool IsZero(const Expr& e) {
  const FloatImm* imm = e.As<FloatImm>();
  return imm != nullptr && imm->value == 0;
}
Expr AddErrors(const Expr& a, const Expr& b) {
  if (!a || IsZero(a)) return b;
  if (!b || IsZero(b)) return a;
  return a + b;
}
Expr Larger(const Expr& a, const Expr& b) {
  if (!a) return b;
  if (!b) return a;
  return Max(a, b);
}
Expr OrZero(const Expr& e) { return e ? e : Real(0); }
// Whether a value with that error is surely not 0; true of NaN, which no error changes.
Expr SurelyNotZero(const Expr& value, const Expr& error) { return MakeNot(Magnitude(value) <= Real(kMost) * error); }

// Where integers are not all exact any more.
double ExactIntegers(DType type) { return std::ldexp(1, FormatOf(type).mantissa_bits + 1); }

}  // namespace

double UnitRoundoff(DType type) { return type.bits == 64 ? 0x1p-52 : FormatOf(type).UnitRoundoff(); }

double SmallestNormal(DType type) {
  if (type.bits == 64) return FormatOf(type).SmallestNormal();
  // What is narrower than float32 is computed in float32, which underflows gradually where the type does.
  return std::max(FormatOf(type).SmallestSubnormal(), FormatOf(kFloat32).SmallestNormal());
}

Expr SumGrowth(const Expr& terms, DType type) {
  const Expr n = AsReal(terms);
  const bool is_short = type.bits <= 16;
  const double factor = is_short ? 2 : 4, bias = is_short ? 4 * UnitRoundoff(type) : 0;
  if (const FloatImm* imm = n.As<FloatImm>()) {
    return Real(std::min(imm->value, factor * std::sqrt(imm->value) * (1 + bias * imm->value)));
  }
  const Expr walk = Real(factor) * Call1("sqrt", n);
  return Min(n, is_short ? walk * (Real(1) + Real(bias) * n) : walk);
}

// ---- names

Expr ErrorRules::Bind(const Expr& e) {
  if (!e || e.As<VarRef>() != nullptr || e.As<FloatImm>() != nullptr || e.As<IntImm>() != nullptr) return e;
  const Var var("t", e.type());
  names_.emplace_back(var, e);
  return var;
}

namespace {

// The names a body needs, directly or through others.
ErrorRules::Names Needed(const ErrorRules::Names& names, std::set<Var> used) {
  ErrorRules::Names needed;
  for (size_t i = names.size(); i-- > 0;) {
    if (!used.contains(names[i].first)) continue;
    needed.push_back(names[i]);
    used.merge(FreeVars(names[i].second));
  }
  return needed;  // innermost first
}

}  // namespace

Stmt ErrorRules::Wrap(const Names& names, Stmt body) {
  std::set<Var> used;
  ForEachExpr(body, [&](const Expr& e) {
    if (const VarRef* ref = e.As<VarRef>()) used.insert(ref->var);
    return true;
  });
  for (const auto& [var, value] : Needed(names, std::move(used))) body = Stmt::Make(Let{var, value, std::move(body)});
  return body;
}

Expr ErrorRules::Wrap(const Names& names, Expr body) {
  for (const auto& [var, value] : Needed(names, FreeVars(body))) {
    const DType type = body.type();
    body = Expr::Make(LetExpr{var, value, std::move(body)}, type);
  }
  return body;
}

Expr ErrorRules::Absolute(const Estimate& a) {
  if (a.relative == 0) return a.error;
  const Expr size = Bind(Magnitude(a.value));
  // An infinite value is exact: it came from an infinite operand.
  return Bind(AddErrors(a.error, MakeSelect(size < Infinity(), size * Real(a.relative), Real(0))));
}

// ---- arithmetic

Estimate ErrorRules::Sum(const Estimate& a, const Estimate& b, bool minus, double u) {
  const Expr value = Bind(minus ? a.value - b.value : a.value + b.value);
  return {value, AddErrors(Absolute(a), Absolute(b)), u};
}

Estimate ErrorRules::Product(const Estimate& a, const Estimate& b, double u) {
  Expr error;
  if (a.error) error = a.error * Magnitude(b.value);
  if (b.error) error = AddErrors(error, b.error * Magnitude(a.value));
  if (a.error && b.error) error = error + Real(kMost) * a.error * b.error;
  const Expr value = Bind(a.value * b.value);
  if (error) {
    // An infinity or a NaN stays one whatever the other operand's error, unless that may be 0.
    Expr sure = True();
    for (const Estimate* operand : {&a, &b}) {
      if (!operand->error) continue;
      sure = And(sure, And(operand->error < Infinity(), SurelyNotZero(operand->value, operand->error)));
    }
    error = MakeSelect(Magnitude(value) < Infinity(), error, MakeSelect(sure, Real(0), Infinity()));
  }
  return {value, Bind(error), a.relative + b.relative + u};
}

Estimate ErrorRules::Quotient(const Estimate& a, const Estimate& b, double u) {
  const Expr value = Bind(a.value / b.value);
  if (!b.error) {
    Expr error;
    if (a.error) {  // what is surely not 0, divided by 0, is surely infinite
      const Expr sure = And(a.error < Infinity(), SurelyNotZero(a.value, a.error));
      error = MakeSelect(Magnitude(value) < Infinity(), a.error / Magnitude(b.value),
                         MakeSelect(sure, Real(0), Infinity()));
    }
    return {value, Bind(error), a.relative + b.relative + u};
  }
  const Expr divisor = Bind(Magnitude(b.value)), off = Absolute(b);
  const Expr rest = Bind(divisor - Real(kMost) * off);  // how small the divisor may be
  const Expr reach = AddErrors(a.error, Magnitude(value) * off) / rest;
  return {value, Bind(MakeSelect(rest > Real(0), reach, Infinity())), a.relative + u};
}

Estimate ErrorRules::Extremum(BinaryOp op, const Estimate& a, const Estimate& b) {
  if (a.exact() && b.exact()) {
    const Expr value = MakeBinary(op, a.value, b.value);
    return {value.type().is_float() ? Bind(value) : value};
  }
  const Expr value = Bind(MakeBinary(op, a.value, b.value));
  const Expr ea = OrZero(Absolute(a)), eb = OrZero(Absolute(b));
  const bool real = a.value.type().is_float();
  const Expr apart = AsReal(a.value) - AsReal(b.value);
  if (!real) return {value, Bind(Max(ea, eb))};
  const Expr gap = Bind(op == BinaryOp::kMax ? apart : -apart);  // positive: a is the one
  const Expr doubt = Bind(Real(kMost) * (ea + eb));
  return {value, Bind(MakeSelect(gap > doubt, ea, MakeSelect(-gap > doubt, eb, Max(ea, eb))))};
}

Estimate ErrorRules::Comparison(BinaryOp op, const Estimate& a, const Estimate& b) {
  if (a.exact() && b.exact()) return {MakeBinary(op, a.value, b.value)};
  const Expr value = Bind(MakeBinary(op, a.value, b.value));
  const Expr doubt = Real(kMost) * AddErrors(Absolute(a), Absolute(b));
  const Expr gap = Magnitude(AsReal(a.value) - AsReal(b.value));
  const Expr some = Bind(doubt);
  return {value, Bind(MakeSelect(And(gap <= some, some > Real(0)), Real(1), Real(0)))};
}

// floor, ceil, round and trunc: one off where the error reaches over a step.
Estimate ErrorRules::Step(const std::string& function, const Estimate& a) {
  const Expr value = Bind(MakeCall(function, {a.value}));
  if (a.exact()) return {value};
  const Expr reach = Bind(Real(kMost) * Absolute(a));
  const Expr same = Eq(MakeCall(function, {a.value - reach}), MakeCall(function, {a.value + reach}));
  return {value, Bind(MakeSelect(same, Real(0), Real(1) + reach))};
}

absl::StatusOr<Estimate> ErrorRules::OfIntBinary(const Binary& n, const Estimate& a, const Estimate& b) {
  // Index arithmetic stays where it is used: the regions of blocks are read off it.
  if (a.exact() && b.exact()) return Estimate{MakeBinary(n.op, a.value, b.value)};
  const Expr value = Bind(MakeBinary(n.op, a.value, b.value));
  const Expr ea = OrZero(Absolute(a)), eb = OrZero(Absolute(b));
  const Expr size_a = Magnitude(AsReal(a.value)), size_b = Bind(Magnitude(AsReal(b.value)));
  const auto unless = [](const Expr& exact, const Expr& error, const Expr& otherwise) {
    return MakeSelect(exact > Real(0), otherwise, error);
  };
  Expr error;
  switch (n.op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: error = ea + eb; break;
    case BinaryOp::kMul: error = ea * size_b + eb * size_a + ea * eb; break;
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
      error = unless(eb, MakeSelect(ea > Real(0), ea / size_b + Real(1), Real(0)), Infinity());
      break;
    case BinaryOp::kMod:
    case BinaryOp::kFloorMod: error = unless(eb, MakeSelect(ea > Real(0), size_b, Real(0)), Infinity()); break;
    case BinaryOp::kAnd:
    case BinaryOp::kOr: error = Max(ea, eb); break;
    default: error = unless(ea + eb, Real(0), Infinity());
  }
  return Estimate{value, Bind(error)};
}

absl::StatusOr<Estimate> ErrorRules::OfBinary(const Binary& n, DType type) {
  HONE_ASSIGN_OR_RETURN(const Estimate a, Of(n.a));
  HONE_ASSIGN_OR_RETURN(const Estimate b, Of(n.b));
  if (IsComparison(n.op)) return Comparison(n.op, a, b);
  if (n.op == BinaryOp::kMin || n.op == BinaryOp::kMax) return Extremum(n.op, a, b);
  if (!type.is_float()) return OfIntBinary(n, a, b);
  const double u = UnitRoundoff(type);
  switch (n.op) {
    case BinaryOp::kAdd: return Sum(a, b, false, u);
    case BinaryOp::kSub: return Sum(a, b, true, u);
    case BinaryOp::kMul: return Product(a, b, u);
    case BinaryOp::kDiv: return Quotient(a, b, u);
    case BinaryOp::kFloorDiv: return Step("floor", Quotient(a, b, u));
    default: break;
  }
  // A remainder is exact; the error may put the dividend on the other side of a multiple of the divisor.
  const Expr value = Bind(MakeBinary(n.op, a.value, b.value));
  if (a.exact() && b.exact()) return Estimate{value};
  const Expr ea = OrZero(Absolute(a)), eb = OrZero(Absolute(b));
  const Expr reach = Bind(Real(kMost) * ea), size = Bind(Magnitude(b.value));
  const Expr same = Eq(Call1("floor", (a.value - reach) / size), Call1("floor", (a.value + reach) / size));
  return Estimate{value, Bind(MakeSelect(eb > Real(0), Infinity(), MakeSelect(same, ea, size + ea))),
                  UnitRoundoff(type)};
}

absl::StatusOr<Estimate> ErrorRules::OfCast(const Cast& n, DType to) {
  HONE_ASSIGN_OR_RETURN(Estimate a, Of(n.a));
  const DType from = n.a.type();
  if (from.is_float() && to.is_float()) {
    if (to.bits > from.bits || to == from) return a;
    // What is exact is rounded as the workload says; of what is not, the rounding may go either way.
    if (a.exact()) return Estimate{Bind(AsReal(MakeCast(to, a.value)))};
    a.relative += UnitRoundoff(to);
    return a;
  }
  if (to.is_float()) {
    const Expr value = Bind(AsReal(a.value));
    const bool narrow = from.is_bool() || std::ldexp(1.0, from.bits) <= ExactIntegers(to);
    if (narrow || to.bits == 64) return Estimate{value, a.error};
    const Expr size = Bind(Magnitude(value));
    const Expr rounding = MakeSelect(size > Real(ExactIntegers(to)), size * Real(UnitRoundoff(to)), Real(0));
    return Estimate{value, Bind(AddErrors(a.error, rounding))};
  }
  if (a.exact()) {
    const Expr value = MakeCast(to, a.value);
    return Estimate{from.is_float() ? Bind(value) : value};
  }
  const Expr value = Bind(MakeCast(to, a.value));
  const Expr off = Absolute(a);
  if (to.is_bool()) {
    return Estimate{
        value, Bind(MakeSelect(And(off > Real(0), Magnitude(AsReal(a.value)) <= Real(kMost) * off), Real(1), Real(0)))};
  }
  if (!from.is_float()) return Estimate{value, off};
  return Estimate{value, Step("trunc", a).error};
}

absl::StatusOr<Estimate> ErrorRules::OfChoice(const Expr& condition, const Expr& yes, const Expr& no, bool lazy) {
  HONE_ASSIGN_OR_RETURN(const Estimate c, Of(condition));
  if (!lazy) {
    HONE_ASSIGN_OR_RETURN(const Estimate y, Of(yes));
    HONE_ASSIGN_OR_RETURN(const Estimate n, Of(no));
    const Expr value = Bind(MakeSelect(c.value, y.value, n.value));
    const double relative = std::max(y.relative, n.relative);
    Expr error;
    if (y.error || n.error) error = MakeSelect(c.value, OrZero(y.error), OrZero(n.error));
    if (c.error) {
      const Expr either = OrZero(Larger(y.error, n.error)) + Magnitude(AsReal(y.value) - AsReal(n.value));
      error = MakeSelect(c.error > Real(0), either, OrZero(error));
    }
    return Estimate{value, Bind(error), relative};
  }
  // Each side is computed where it is chosen alone: what is named in it stays in it.
  Names outer = TakeNames();
  absl::StatusOr<Estimate> y = Of(yes);
  const Names y_names = TakeNames();
  absl::StatusOr<Estimate> n = Of(no);
  const Names n_names = TakeNames();
  names_ = std::move(outer);
  if (!y.ok()) return y.status();
  if (!n.ok()) return n.status();
  const Expr value = Bind(IfThenElse(c.value, Wrap(y_names, y->value), Wrap(n_names, n->value)));
  Expr error;
  if (y->error || n->error)
    error = IfThenElse(c.value, Wrap(y_names, OrZero(y->error)), Wrap(n_names, OrZero(n->error)));
  if (c.error) error = MakeSelect(c.error > Real(0), Infinity(), OrZero(error));
  return Estimate{value, Bind(error), std::max(y->relative, n->relative)};
}

// ---- functions

absl::StatusOr<Estimate> ErrorRules::OfCall(const Call& n, DType type) {
  std::vector<Estimate> args;
  std::vector<Expr> values;
  for (const Expr& arg : n.args) {
    HONE_ASSIGN_OR_RETURN(Estimate estimate, Of(arg));
    values.push_back(estimate.value);
    args.push_back(std::move(estimate));
  }
  if (args.empty()) return absl::UnimplementedError(absl::StrCat("an oracle of ", n.name));
  const Estimate& a = args[0];
  if (n.name == "isnan" || n.name == "isinf") return Estimate{Bind(MakeCall(n.name, values))};
  if (!n.args[0].type().is_float()) {
    const Expr value = Bind(MakeCall(n.name, values));
    if (a.exact()) return Estimate{value};
    return Estimate{value, n.name == "abs" ? a.error : Bind(MakeSelect(a.error > Real(0), Infinity(), Real(0)))};
  }
  const double u = UnitRoundoff(type);
  if (n.name == "fma") return Sum(Product(a, args[1], u), args[2], false, u);
  if (n.name == "floor" || n.name == "ceil" || n.name == "round" || n.name == "trunc") return Step(n.name, a);
  const Expr value = Bind(MakeCall(n.name, values));
  if (n.name == "abs") return Estimate{value, a.error, a.relative};
  const FunctionErrors& function = FindMathFunction(n.name)->errors;
  const Expr size = Bind(Magnitude(value));
  Expr error;
  if (function.carried != nullptr) {
    std::vector<Expr> errors;
    for (const Estimate& arg : args) errors.push_back(Absolute(arg));
    error = function.carried({values, errors, value, size, kMost, u, [this](const Expr& e) { return Bind(e); }});
  }
  if (function.absolute > 0) error = AddErrors(error, Real(function.absolute * u));
  if (function.may_flush) error = AddErrors(error, Real(SmallestNormal(type)));
  if (function.may_overflow) {
    const Expr overflows = And(size > Real(FormatOf(type).largest), size < Infinity());
    error = MakeSelect(overflows, Infinity(), error);
  }
  return Estimate{value, Bind(error), function.relative * u};
}

absl::StatusOr<Estimate> ErrorRules::Of(const Expr& e) {
  if (!e.type().is_scalar())
    return absl::UnimplementedError("an oracle of a program with vectors; it is made from the workload");
  if (e.As<IntImm>() != nullptr) return Estimate{e};
  if (const FloatImm* n = e.As<FloatImm>()) return Estimate{Real(RoundToType(n->value, e.type()))};
  if (const VarRef* n = e.As<VarRef>()) {
    const auto found = vars_.find(n->var.id());
    return found == vars_.end() ? Estimate{e} : found->second;
  }
  if (const Binary* n = e.As<Binary>()) return OfBinary(*n, e.type());
  if (const Not* n = e.As<Not>()) {
    HONE_ASSIGN_OR_RETURN(Estimate a, Of(n->a));
    a.value = MakeNot(a.value);
    return a;
  }
  if (const Cast* n = e.As<Cast>()) return OfCast(*n, e.type());
  if (const Select* n = e.As<Select>()) return OfChoice(n->condition, n->yes, n->no, false);
  if (const IfThenElseExpr* n = e.As<IfThenElseExpr>()) return OfChoice(n->condition, n->yes, n->no, true);
  if (const LetExpr* n = e.As<LetExpr>()) {
    HONE_ASSIGN_OR_RETURN(Estimate value, Of(n->value));
    value.value = Bind(value.value);
    value.error = Bind(value.error);
    Define(n->var, std::move(value));
    return Of(n->body);
  }
  if (const Load* n = e.As<Load>()) {
    if (n->mask) return absl::UnimplementedError("an oracle of masked loads; it is made from the workload");
    std::vector<Expr> indices;
    Expr doubt;
    for (const Expr& index : n->indices) {
      HONE_ASSIGN_OR_RETURN(const Estimate i, Of(index));
      indices.push_back(i.value);
      doubt = AddErrors(doubt, i.error);
    }
    HONE_ASSIGN_OR_RETURN(Estimate element, load_(n->buffer, std::move(indices)));
    element.value = Bind(element.value);
    element.error = Bind(element.error);
    if (doubt) element.error = Bind(MakeSelect(doubt > Real(0), Infinity(), OrZero(element.error)));
    return element;
  }
  if (const Call* n = e.As<Call>()) return OfCall(*n, e.type());
  return absl::UnimplementedError("an oracle of a program with vectors; it is made from the workload");
}

}  // namespace hone::error_analysis
