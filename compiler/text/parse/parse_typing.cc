// Which type an expression has: operands meet in one type, constants take it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {
namespace {

bool IsArithmetic(BinaryOp op) { return op <= BinaryOp::kMax; }

}  // namespace

Expr FoldClosed(const Expr& e) {
  const Binary* node = e.As<Binary>();
  if (node == nullptr || !e.type().is_int() || !e.type().is_scalar()) return e;
  const Expr a = FoldClosed(node->a), b = FoldClosed(node->b);
  const std::optional<int64_t> x = ConstantValue(a), y = ConstantValue(b);
  if (!x.has_value() || !y.has_value()) return e;
  const std::optional<int64_t> value = EvalInt(node->op, *x, *y, e.type());
  return value.has_value() ? IntConst(*value, e.type()) : e;
}

Expr ExtentOf(const Expr& min, const Expr& end) {
  if (IsConst(min, 0)) return end;
  const std::optional<int64_t> low = ConstantValue(min), high = ConstantValue(end);
  if (low.has_value() && high.has_value()) {
    return IntConst(static_cast<int64_t>(static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low)), end.type());
  }
  if (const Binary* sum = end.As<Binary>();
      sum != nullptr && sum->op == BinaryOp::kAdd && StructuralEqual(sum->a, min)) {
    return sum->b;
  }
  return Expr();  // the caller forms end - min, whose types may differ
}

absl::StatusOr<Parsed> Parser::Deeper(const Token& at, Expr e, std::initializer_list<int> depths) const {
  const int depth = std::max(depths) + 1;
  if (depth > kMaxExprDepth)
    return ErrorAt(at, absl::StrCat("this expression is deeper than ", kMaxExprDepth, " operations"));
  return Parsed{std::move(e), depth};
}

absl::StatusOr<Parsed> Parser::Meaning(const Token& at, Expr e) const {
  int nodes = 0;
  ForEachExpr(e, [&](const Expr&) { return ++nodes <= kMaxExprDepth; });
  return Deeper(at, std::move(e), {nodes});
}

// Brings two operands to one type, as far as that loses nothing.
absl::Status Parser::Unify(const Token& at, Parsed& a, Parsed& b) {
  const int lanes = std::max<int>(a.e.type().lanes, b.e.type().lanes);
  const auto element = [](const Parsed& p) { return p.e.type().element(); };
  DType type = element(a);
  if (type != element(b)) {
    const auto wide = [](DType t) { return t.code == TypeCode::kInt && t.bits >= 32; };
    const auto adopts = [](const Parsed& p, DType t) {
      if (p.e.As<IntImm>() != nullptr && p.e.type().is_int()) return !t.is_bool();
      return p.literal && p.e.As<FloatImm>() != nullptr && t.is_float();
    };
    if (wide(type) && wide(element(b))) {
      type = kInt64;
    } else if (adopts(a, element(b))) {
      type = element(b);
    } else if (!adopts(b, type)) {
      return ErrorAt(
          at, absl::StrCat("the operands of ", Describe(at), " are ", ToText(a.e.type()), " and ", ToText(b.e.type()),
                           "; expected one type: write T.Cast(\"", ToText(type), "\", ...)"));
    }
  }
  HONE_ASSIGN_OR_RETURN(a, Coerce(at, std::move(a), type.with_lanes(lanes), "an operand"));
  HONE_ASSIGN_OR_RETURN(b, Coerce(at, std::move(b), type.with_lanes(lanes), "an operand"));
  return absl::OkStatus();
}

// `value` as `type`: constants take it, int32 widens to int64, a scalar spreads over lanes.
absl::StatusOr<Parsed> Parser::Coerce(const Token& at, Parsed value, DType type, absl::string_view what) {
  if (value.e.type() == type) return value;
  const DType from = value.e.type().element(), to = type.element();
  if (from != to) {
    const IntImm* integer = value.e.As<IntImm>();
    const FloatImm* number = value.e.As<FloatImm>();
    if (integer != nullptr && from.is_int() && to.is_int()) {
      value.e = IntConst(integer->value, to);
    } else if (integer != nullptr && from.is_int() && to.is_float()) {
      value.e = FloatConst(static_cast<double>(integer->value), to);
    } else if (number != nullptr && value.literal && to.is_float()) {
      value.e = FloatConst(number->value, to);
    } else if (from == kInt32 && to == kInt64) {
      value.e = Expr::Make(Cast{value.e}, to.with_lanes(value.e.type().lanes));
      ++value.depth;
    } else {
      return ErrorAt(at, absl::StrCat("found ", what, " of type ", ToText(value.e.type()), "; expected ", ToText(type),
                                      ": write T.Cast(\"", ToText(to), "\", ...)"));
    }
  }
  if (value.e.type().lanes != type.lanes) {
    if (!value.e.type().is_scalar()) {
      return ErrorAt(at, absl::StrCat("found ", what, " of ", value.e.type().lanes, " lanes; expected ", type.lanes));
    }
    value.e = Expr::Make(Broadcast{value.e}, type);
    ++value.depth;
  }
  value.literal = false;
  return value;
}

absl::StatusOr<Parsed> Parser::Combine(const Token& at, BinaryOp op, Parsed a, Parsed b) {
  HONE_RETURN_IF_ERROR(Unify(at, a, b));
  const DType type = a.e.type();
  const bool fits = IsLogical(op)      ? type.is_bool()
                    : IsArithmetic(op) ? !type.is_bool() || op == BinaryOp::kMin || op == BinaryOp::kMax
                    : IsComparison(op) ? true
                                       : !type.is_float();
  if (!fits) {
    return ErrorAt(at, absl::StrCat(Describe(at), " does not work on ", ToText(type), "; expected ",
                                    IsLogical(op)      ? "bool"
                                    : IsArithmetic(op) ? "numbers"
                                                       : "integers"));
  }
  return Deeper(at, Expr::Make(Binary{op, a.e, b.e}, ResultType(op, type)), {a.depth, b.depth});
}

absl::StatusOr<Parsed> Parser::Choice(const Token& at, bool lazy, Parsed condition, Parsed yes, Parsed no) {
  if (!condition.e.type().is_bool()) {
    return ErrorAt(at,
                   absl::StrCat("a condition of type ", ToText(condition.e.type()), "; expected bool, a comparison"));
  }
  HONE_RETURN_IF_ERROR(Unify(at, yes, no));
  const int lanes = condition.e.type().lanes;
  if (lanes != 1 && yes.e.type().lanes != lanes) {
    const DType type = yes.e.type().with_lanes(lanes);
    HONE_ASSIGN_OR_RETURN(yes, Coerce(at, std::move(yes), type, "a choice"));
    HONE_ASSIGN_OR_RETURN(no, Coerce(at, std::move(no), type, "a choice"));
  }
  const DType type = yes.e.type();
  Expr e = lazy ? Expr::Make(IfThenElseExpr{condition.e, yes.e, no.e}, type)
                : Expr::Make(Select{condition.e, yes.e, no.e}, type);
  return Deeper(at, std::move(e), {condition.depth, yes.depth, no.depth});
}

}  // namespace hone
