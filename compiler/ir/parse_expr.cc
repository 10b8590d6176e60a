#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/structural.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Operators written between their operands, with Python's binding strengths (higher binds more).
struct Infix {
  absl::string_view symbol;
  BinaryOp op;
  int level;
};
constexpr int kCompare = 4, kNotLevel = 3, kUnary = 11;
constexpr Infix kInfix[] = {
    {"or", BinaryOp::kOr, 1},         {"and", BinaryOp::kAnd, 2},      {"==", BinaryOp::kEq, kCompare},
    {"!=", BinaryOp::kNe, kCompare},  {"<", BinaryOp::kLt, kCompare},  {"<=", BinaryOp::kLe, kCompare},
    {">", BinaryOp::kGt, kCompare},   {">=", BinaryOp::kGe, kCompare}, {"|", BinaryOp::kBitOr, 5},
    {"^", BinaryOp::kBitXor, 6},      {"&", BinaryOp::kBitAnd, 7},     {"<<", BinaryOp::kShiftLeft, 8},
    {">>", BinaryOp::kShiftRight, 8}, {"+", BinaryOp::kAdd, 9},        {"-", BinaryOp::kSub, 9},
    {"*", BinaryOp::kMul, 10},        {"/", BinaryOp::kDiv, 10},       {"//", BinaryOp::kFloorDiv, 10},
    {"%", BinaryOp::kFloorMod, 10},
};

// Operators written as functions of two arguments, in the spellings of all releases.
struct Named {
  absl::string_view name;
  BinaryOp op;
};
constexpr Named kNamed[] = {
    {"min", BinaryOp::kMin},
    {"max", BinaryOp::kMax},
    {"Min", BinaryOp::kMin},
    {"Max", BinaryOp::kMax},
    {"Div", BinaryOp::kDiv},
    {"truncdiv", BinaryOp::kDiv},
    {"truncmod", BinaryOp::kMod},
    {"Mod", BinaryOp::kMod},
    {"floordiv", BinaryOp::kFloorDiv},
    {"FloorDiv", BinaryOp::kFloorDiv},
    {"floormod", BinaryOp::kFloorMod},
    {"FloorMod", BinaryOp::kFloorMod},
    {"Add", BinaryOp::kAdd},
    {"Sub", BinaryOp::kSub},
    {"Mul", BinaryOp::kMul},
    {"EQ", BinaryOp::kEq},
    {"NE", BinaryOp::kNe},
    {"LT", BinaryOp::kLt},
    {"LE", BinaryOp::kLe},
    {"GT", BinaryOp::kGt},
    {"GE", BinaryOp::kGe},
    {"And", BinaryOp::kAnd},
    {"Or", BinaryOp::kOr},
    {"bitwise_and", BinaryOp::kBitAnd},
    {"bitwise_or", BinaryOp::kBitOr},
    {"bitwise_xor", BinaryOp::kBitXor},
    {"shift_left", BinaryOp::kShiftLeft},
    {"shift_right", BinaryOp::kShiftRight},
};

std::string_view IntrinsicAlias(std::string_view name) {
  if (name == "fabs") return "abs";
  if (name == "power") return "pow";
  if (name == "nearbyint") return "round";
  return name;
}

double LargestFinite(DType type) {
  if (type.code == TypeCode::kBFloat) return 0x1.FEp127;
  switch (type.bits) {
    case 16:
      return 65504;
    case 32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}
Expr Extreme(DType type, bool largest) {
  if (type.is_float()) return FloatConst(largest ? LargestFinite(type) : -LargestFinite(type), type);
  if (type.is_bool()) return IntConst(largest, type);
  if (type.code == TypeCode::kUInt) return IntConst(largest ? -1 : 0, type);
  const int64_t low = type.bits >= 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (type.bits - 1));
  return IntConst(largest ? -(low + 1) : low, type);
}

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

absl::StatusOr<Parsed> Parser::Expression(int min_level) {
  if (++nesting_ > kMaxNesting) return ErrorAt(Peek(), absl::StrCat("brackets nest deeper than ", kMaxNesting));
  HONE_ASSIGN_OR_RETURN(Parsed left, Unary());
  while (true) {
    const Token at = Peek();
    const Infix* infix = nullptr;
    for (const Infix& candidate : kInfix) {
      if (At(candidate.symbol)) infix = &candidate;
    }
    if (infix == nullptr || infix->level < min_level || infix->level < 1) break;
    Take();
    HONE_ASSIGN_OR_RETURN(Parsed right, Expression(infix->level + 1));
    Parsed next = right;
    HONE_ASSIGN_OR_RETURN(left, Combine(at, infix->op, std::move(left), std::move(right)));
    // 0 <= i < 4 means 0 <= i and i < 4.
    while (infix->level == kCompare) {
      const Token link = Peek();
      const Infix* chained = nullptr;
      for (const Infix& candidate : kInfix) {
        if (candidate.level == kCompare && At(candidate.symbol)) chained = &candidate;
      }
      if (chained == nullptr) break;
      Take();
      HONE_ASSIGN_OR_RETURN(Parsed last, Expression(kCompare + 1));
      Parsed kept = last;
      HONE_ASSIGN_OR_RETURN(Parsed second, Combine(link, chained->op, std::move(next), std::move(last)));
      HONE_ASSIGN_OR_RETURN(left, Combine(link, BinaryOp::kAnd, std::move(left), std::move(second)));
      next = std::move(kept);
    }
  }
  --nesting_;
  return left;
}

absl::StatusOr<Expr> Parser::IntExpression(absl::string_view what) {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  if (!value.e.type().is_int() || !value.e.type().is_scalar()) {
    return ErrorAt(at, absl::StrCat("found ", what, " of type ", ToText(value.e.type()), "; expected an integer"));
  }
  return FoldClosed(value.e);
}

absl::StatusOr<Expr> Parser::BoolExpression(absl::string_view what) {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  if (!value.e.type().is_bool()) {
    return ErrorAt(at,
                   absl::StrCat("found ", what, " of type ", ToText(value.e.type()), "; expected bool, a comparison"));
  }
  return value.e;
}

absl::StatusOr<Parsed> Parser::Unary() {
  const Token at = Peek();
  if (TakeIf("not")) {
    HONE_ASSIGN_OR_RETURN(const Parsed a, Expression(kNotLevel + 1));
    if (!a.e.type().is_bool()) return ErrorAt(at, absl::StrCat("`not` of ", ToText(a.e.type()), "; expected bool"));
    return Deeper(at, Expr::Make(Not{a.e}, a.e.type()), {a.depth});
  }
  if (TakeIf("+")) return Expression(kUnary);
  if (TakeIf("-")) {
    if (Peek().kind == TokenKind::kInt || Peek().kind == TokenKind::kFloat) {
      HONE_ASSIGN_OR_RETURN(Parsed literal, NumberLiteral(true));
      return Postfix(std::move(literal));
    }
    HONE_ASSIGN_OR_RETURN(const Parsed a, Expression(kUnary));
    const DType type = a.e.type();
    if (!type.is_int() && !type.is_float())
      return ErrorAt(at, absl::StrCat("`-` of ", ToText(type), "; expected a number"));
    // As the builder's: 0 - x for integers, -1 * x for floats, which is right for zeros too.
    Expr negated = type.is_float() ? Expr::Make(Binary{BinaryOp::kMul, FloatConst(-1, type), a.e}, type)
                                   : Expr::Make(Binary{BinaryOp::kSub, IntConst(0, type), a.e}, type);
    return Deeper(at, std::move(negated), {a.depth, 2});
  }
  HONE_ASSIGN_OR_RETURN(Parsed value, Primary());
  return Postfix(std::move(value));
}

absl::StatusOr<Parsed> Parser::Postfix(Parsed value) {
  while (At(".") && Peek(1).text == "astype") {
    const Token at = Take();
    Take();
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(const DType type, TypeText("a type"));
    HONE_RETURN_IF_ERROR(Expect(")"));
    const DType to = type.with_lanes(value.e.type().lanes);
    HONE_ASSIGN_OR_RETURN(value, Deeper(at, Expr::Make(Cast{value.e}, to), {value.depth}));
  }
  return value;
}

absl::StatusOr<int64_t> Parser::IntegerText(const Token& token, bool negative, bool is_unsigned) const {
  absl::string_view digits = token.text;
  const bool hex = digits.size() > 2 && (digits[1] == 'x' || digits[1] == 'X');
  if (hex) digits.remove_prefix(2);
  uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, hex ? 16 : 10);
  const bool whole = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  const uint64_t limit = uint64_t{1} << 63;
  const bool fits = is_unsigned || magnitude < limit || (negative && magnitude == limit);
  if (!whole || !fits) return ErrorAt(token, absl::StrCat("`", token.text.substr(0, 40), "` is no 64-bit integer"));
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

absl::StatusOr<Parsed> Parser::NumberLiteral(bool negative) {
  const Token token = Take();
  Parsed parsed;
  parsed.literal = true;
  if (token.kind == TokenKind::kFloat) {
    const double value = std::strtod(token.text.c_str(), nullptr);
    parsed.e = FloatConst(negative ? -value : value, kFloat32);
    return parsed;
  }
  HONE_ASSIGN_OR_RETURN(const int64_t value, IntegerText(token, negative, false));
  parsed.e = IntConst(value, value == static_cast<int32_t>(value) ? kInt32 : kInt64);
  return parsed;
}

absl::StatusOr<Parsed> Parser::Primary() {
  const Token at = Peek();
  if (at.kind == TokenKind::kInt || at.kind == TokenKind::kFloat) return NumberLiteral(false);
  if (TakeIf("(")) {
    HONE_ASSIGN_OR_RETURN(Parsed inner, Expression());
    HONE_RETURN_IF_ERROR(Expect(")"));
    inner.literal = inner.literal && (inner.e.As<IntImm>() != nullptr || inner.e.As<FloatImm>() != nullptr);
    return inner;
  }
  if (At("True") || At("False")) return Parsed{IntConst(Take().text == "True", kBool)};
  if (At("T")) return ScriptCall();
  if (!AtName())
    return Unexpected("a value: a number, a variable, an element of a buffer, or a function such as T.exp");
  const std::string name = Take().text;
  const Symbol* symbol = Find(name);
  if (symbol == nullptr) {
    return ErrorAt(
        at, absl::StrCat("`", name, "` is not defined here; expected a loop's or block's variable, or a buffer"));
  }
  if (symbol->var) return Parsed{symbol->var};
  if (!symbol->buffer)
    return ErrorAt(
        at, absl::StrCat("handle `", name, "` is no value; expected the buffer that T.match_buffer makes of it"));
  return LoadFrom(at, Buffer(symbol->buffer));
}

// After "[": the indices of one access. A slice such as A[0:16] is a vector of neighbours.
absl::StatusOr<Parser::IndexList> Parser::Indices(const Token& at, const Buffer& buffer) {
  HONE_ASSIGN_OR_RETURN(std::vector<Subscript> parts, Subscripts(at, buffer));
  IndexList list;
  for (Subscript& part : parts) {
    if (part.extent) {
      const std::optional<int64_t> n = ConstantValue(part.extent);
      if (!n.has_value() || *n < 1 || *n > kMaxLanes) {
        return ErrorAt(at, absl::StrCat("a slice of a value needs a constant length from 1 to ", kMaxLanes));
      }
      if (*n > 1) part.min = MakeRamp(part.min, IntConst(1, part.min.type()), static_cast<int>(*n));
    }
    const int lanes = part.min.type().lanes;
    if (lanes != 1 && list.lanes != 1 && lanes != list.lanes) {
      return ErrorAt(at, absl::StrCat("indices of ", list.lanes, " and of ", lanes, " lanes"));
    }
    list.depth = std::max(list.depth, part.depth);
    list.lanes = std::max(list.lanes, lanes);
    list.indices.push_back(part.min);
  }
  return list;
}

// After ".vload(" or ".vstore(" and the indices: `predicate=mask`.
absl::Status Parser::Mask(IndexList& list) {
  if (TakeIf("predicate")) HONE_RETURN_IF_ERROR(Expect("="));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  list.mask = value.e;
  const DType type = list.mask.type();
  if (!type.is_bool()) return ErrorAt(at, absl::StrCat("a mask of type ", ToText(type), "; expected bool"));
  if (list.lanes != type.lanes && list.lanes != 1) {
    return ErrorAt(at, absl::StrCat("a mask of ", type.lanes, " lanes; expected ", list.lanes));
  }
  list.depth = std::max(list.depth, value.depth);
  list.lanes = type.lanes;
  return absl::OkStatus();
}

absl::StatusOr<DType> Parser::AccessType(const Token& at, const Buffer& buffer, const IndexList& list) {
  const int lanes = buffer.type().lanes * list.lanes;
  if (lanes > kMaxLanes) return ErrorAt(at, absl::StrCat("a vector of more than ", kMaxLanes, " lanes"));
  return buffer.type().with_lanes(lanes);
}

absl::StatusOr<Parsed> Parser::LoadFrom(const Token& at, const Buffer& buffer) {
  IndexList list;
  if (TakeIf("[")) {
    HONE_ASSIGN_OR_RETURN(list, Indices(at, buffer));
  } else if (At(".") && Peek(1).text == "vload") {
    Take();
    Take();
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_RETURN_IF_ERROR(Expect("["));
    HONE_ASSIGN_OR_RETURN(list, Indices(at, buffer));
    if (TakeIf(",")) HONE_RETURN_IF_ERROR(Mask(list));
    HONE_RETURN_IF_ERROR(Expect(")"));
  } else {
    return Unexpected(absl::StrCat("`[` after buffer `", buffer.name(), "`"));
  }
  HONE_ASSIGN_OR_RETURN(const DType type, AccessType(at, buffer, list));
  return Deeper(at, Expr::Make(Load{buffer, std::move(list.indices), list.mask}, type), {list.depth});
}

// After "[": up to and with "]". As many as the buffer has dimensions.
absl::StatusOr<std::vector<Parser::Subscript>> Parser::Subscripts(const Token& at, const Buffer& buffer) {
  constexpr absl::string_view closing = "]";
  std::vector<Subscript> parts;
  const bool empty = At("(") && Peek(1).text == ")" && Peek(1).kind == TokenKind::kPunct;
  if (empty) {
    Take();
    Take();
  }
  while (!At(closing)) {
    if (empty || (!parts.empty() && !At(","))) return Unexpected(absl::StrCat("`,` or `", closing, "`"));
    if (!parts.empty()) Take();
    if (At(closing)) break;
    if (static_cast<int>(parts.size()) == buffer.rank()) {
      return ErrorAt(at, absl::StrCat("`", buffer.name(), "` has ", buffer.rank(), " dimensions; found more indices"));
    }
    const Token index_at = Peek();
    Subscript part;
    Expr end;
    if (At(":")) {
      part.min = IntConst(0);
    } else {
      HONE_ASSIGN_OR_RETURN(const Parsed index, Expression());
      if (!index.e.type().is_int()) {
        return ErrorAt(index_at, absl::StrCat("an index of type ", ToText(index.e.type()), "; expected an integer"));
      }
      part.min = index.e;
      part.depth = index.depth;
    }
    if (TakeIf(":")) {
      if (At(",") || At(closing)) {
        end = buffer.shape()[parts.size()];
      } else {
        HONE_ASSIGN_OR_RETURN(end, IntExpression("a slice's end"));
      }
      if (!part.min.type().is_scalar()) return ErrorAt(index_at, "a slice of vectors; expected scalars");
      part.extent = ExtentOf(part.min, end);
      if (!part.extent) {
        HONE_ASSIGN_OR_RETURN(const Parsed length, Combine(index_at, BinaryOp::kSub, {end}, {part.min}));
        part.extent = length.e;
      }
    }
    parts.push_back(std::move(part));
  }
  HONE_RETURN_IF_ERROR(Expect(closing));
  if (static_cast<int>(parts.size()) != buffer.rank()) {
    return ErrorAt(
        at, absl::StrCat("`", buffer.name(), "` has ", buffer.rank(), " dimensions; found ", parts.size(), " indices"));
  }
  return parts;
}

absl::StatusOr<DType> Parser::TypeText(absl::string_view what) {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string text, ExpectString(what));
  const std::optional<DType> type = ParseDType(text);
  if (!type.has_value() || type->lanes > kMaxLanes) {
    return ErrorAt(
        at, absl::StrCat("\"", text.substr(0, 40), "\" names no type; expected one such as \"float32\" or \"int64\""));
  }
  return *type;
}

absl::StatusOr<int> Parser::Lanes() {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const Expr e, IntExpression("a number of lanes"));
  const std::optional<int64_t> lanes = ConstantValue(e);
  if (!lanes.has_value() || *lanes < 2 || *lanes > kMaxLanes) {
    return ErrorAt(at, absl::StrCat("the number of lanes must be a constant from 2 to ", kMaxLanes));
  }
  return static_cast<int>(*lanes);
}

// After "(": `count` values (any number when negative) and ")"; a trailing dtype="..." of old texts is taken and
// ignored.
absl::StatusOr<std::vector<Parsed>> Parser::Arguments(absl::string_view function, int count) {
  const Token at = Peek();
  std::vector<Parsed> args;
  while (!At(")")) {
    if (!args.empty()) {
      HONE_RETURN_IF_ERROR(Expect(","));
      if (At(")")) break;
    }
    if (At("dtype") || At("span")) {
      Take();
      HONE_RETURN_IF_ERROR(Expect("="));
      Take();
      break;
    }
    HONE_ASSIGN_OR_RETURN(Parsed arg, Expression());
    args.push_back(std::move(arg));
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  if (count >= 0 && static_cast<int>(args.size()) != count) {
    return ErrorAt(at, absl::StrCat("T.", function, " takes ", count, " arguments; found ", args.size()));
  }
  return args;
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

// After "(": a number, a text such as "inf", or a value to convert.
absl::StatusOr<Parsed> Parser::TypedConstant(DType type) {
  const Token at = Peek();
  const bool wrapped = At("float") && Peek(1).text == "(";  // float("inf")
  if (wrapped) {
    Take();
    Take();
  }
  Parsed parsed;
  const bool negative = At("-") && (Peek(1).kind == TokenKind::kInt || Peek(1).kind == TokenKind::kFloat);
  const Token number = Peek(negative ? 1 : 0);
  const Token& after = Peek(negative ? 2 : 1);
  const bool alone = after.kind == TokenKind::kPunct && after.text == ")";
  if (number.kind == TokenKind::kString) {
    Take();
    double value = 0;
    if (!type.is_float() || !absl::SimpleAtod(number.text, &value)) {
      return ErrorAt(at, absl::StrCat("\"", number.text.substr(0, 40), "\" is no ", ToText(type)));
    }
    if (std::isnan(value))
      value = std::copysign(std::numeric_limits<double>::quiet_NaN(), number.text[0] == '-' ? -1.0 : 1.0);
    parsed.e = FloatConst(value, type.element());
  } else if (alone && number.kind == TokenKind::kInt && !type.is_float() && !type.is_bool()) {
    if (negative) Take();
    Take();
    HONE_ASSIGN_OR_RETURN(const int64_t value, IntegerText(number, negative, type.code == TypeCode::kUInt));
    parsed.e = IntConst(value, type.element());
    if (ConstantValue(parsed.e) != value) return ErrorAt(at, absl::StrCat(value, " does not fit ", ToText(type)));
  } else if (alone && type.is_float() && (number.kind == TokenKind::kInt || number.kind == TokenKind::kFloat)) {
    if (negative) Take();
    Take();
    const double value = std::strtod(number.text.c_str(), nullptr);
    parsed.e = FloatConst(negative ? -value : value, type.element());
  } else {
    HONE_ASSIGN_OR_RETURN(parsed, Expression());
    if (parsed.e.As<IntImm>() != nullptr && parsed.e.type().is_scalar()) {
      parsed.e = MakeCast(type.element(), parsed.e);
    } else if (parsed.e.type().element() != type.element()) {
      HONE_ASSIGN_OR_RETURN(
          parsed, Deeper(at, Expr::Make(Cast{parsed.e}, type.with_lanes(parsed.e.type().lanes)), {parsed.depth}));
    }
  }
  if (wrapped) HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_RETURN_IF_ERROR(Expect(")"));
  if (!type.is_scalar()) return Coerce(at, std::move(parsed), type, "a value");
  return parsed;
}

// After "T.let(" or "T.Let(".
absl::StatusOr<Parsed> Parser::LetCall() {
  const Token at = Peek();
  const auto bind = [&](const std::string& name, const Parsed& value) {
    const Var var(name, value.e.type());
    Define(name, {.var = var});
    return var;
  };
  const size_t mark = Mark();
  if (AtName() && Peek(1).text == "," && Peek(1).kind == TokenKind::kPunct && !At("T")) {  // T.let(x, value, body)
    const std::string name = Take().text;
    Take();
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    HONE_RETURN_IF_ERROR(Expect(","));
    const Var var = bind(name, value);
    HONE_ASSIGN_OR_RETURN(const Parsed body, Expression());
    HONE_RETURN_IF_ERROR(Expect(")"));
    RollBack(mark);
    return Deeper(at, Expr::Make(LetExpr{var, value.e, body.e}, body.e.type()), {value.depth, body.depth});
  }
  // T.Let(body, where={x: value}): the definitions stand behind their use.
  const size_t body_at = pos_;
  for (int depth = 0; !(depth == 0 && At("where"));) {
    if (Peek().kind == TokenKind::kEnd || Peek().kind == TokenKind::kNewline || (depth == 0 && At(")"))) {
      return Unexpected("where={variable: value}");
    }
    const Token token = Take();
    if (token.kind != TokenKind::kPunct) continue;
    if (token.text == "(" || token.text == "[" || token.text == "{") ++depth;
    if (token.text == ")" || token.text == "]" || token.text == "}") --depth;
  }
  Take();
  HONE_RETURN_IF_ERROR(Expect("="));
  HONE_RETURN_IF_ERROR(Expect("{"));
  HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a variable"));
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  HONE_RETURN_IF_ERROR(Expect("}"));
  HONE_RETURN_IF_ERROR(Expect(")"));
  const size_t end = pos_;
  if (++let_replays_ > kMaxNesting)
    return ErrorAt(at, absl::StrCat("more than ", kMaxNesting, " T.Let in one function"));
  pos_ = body_at;
  const Var var = bind(name, value);
  HONE_ASSIGN_OR_RETURN(const Parsed body, Expression());
  HONE_RETURN_IF_ERROR(Expect(","));
  pos_ = end;
  RollBack(mark);
  return Deeper(at, Expr::Make(LetExpr{var, value.e, body.e}, body.e.type()), {value.depth, body.depth});
}

absl::StatusOr<Parsed> Parser::ScriptCall() {
  Take();
  HONE_RETURN_IF_ERROR(Expect("."));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a function's name"));
  HONE_RETURN_IF_ERROR(Expect("("));
  if (const std::optional<DType> type = ParseDType(name); type.has_value() && type->lanes <= kMaxLanes)
    return TypedConstant(*type);
  if (name == "let" || name == "Let") return LetCall();
  if (name == "Cast" || name == "cast") {
    DType type;
    Parsed value;
    if (Peek().kind == TokenKind::kString) {
      HONE_ASSIGN_OR_RETURN(type, TypeText("a type"));
      HONE_RETURN_IF_ERROR(Expect(","));
      HONE_ASSIGN_OR_RETURN(value, Expression());
    } else {
      HONE_ASSIGN_OR_RETURN(value, Expression());
      HONE_RETURN_IF_ERROR(Expect(","));
      HONE_ASSIGN_OR_RETURN(type, TypeText("a type"));
    }
    HONE_RETURN_IF_ERROR(Expect(")"));
    if (type.is_scalar()) type = type.with_lanes(value.e.type().lanes);
    if (type.lanes != value.e.type().lanes)
      return ErrorAt(at, absl::StrCat("a cast from ", ToText(value.e.type()), " to ", ToText(type)));
    return Deeper(at, Expr::Make(Cast{value.e}, type), {value.depth});
  }
  if (name == "Select" || name == "if_then_else") {
    HONE_ASSIGN_OR_RETURN(std::vector<Parsed> args, Arguments(name, 3));
    return Choice(at, name == "if_then_else", args[0], args[1], args[2]);
  }
  if (name == "Ramp" || name == "ramp") {
    HONE_ASSIGN_OR_RETURN(Parsed base, Expression());
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(Parsed stride, Expression());
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(const int lanes, Lanes());
    HONE_RETURN_IF_ERROR(Expect(")"));
    HONE_RETURN_IF_ERROR(Unify(at, base, stride));
    if (!base.e.type().is_int() || !base.e.type().is_scalar())
      return ErrorAt(at, absl::StrCat("a ramp of ", ToText(base.e.type()), "; expected integers"));
    const DType type = base.e.type().with_lanes(lanes);
    return Deeper(at, Expr::Make(Ramp{base.e, stride.e}, type), {base.depth, stride.depth});
  }
  if (name == "Broadcast" || name == "broadcast") {
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(const int lanes, Lanes());
    HONE_RETURN_IF_ERROR(Expect(")"));
    if (!value.e.type().is_scalar())
      return ErrorAt(at, absl::StrCat("a broadcast of ", ToText(value.e.type()), "; expected a scalar"));
    const DType type = value.e.type().with_lanes(lanes);
    return Deeper(at, Expr::Make(Broadcast{value.e}, type), {value.depth});
  }
  if (name == "min_value" || name == "max_value" || name == "infinity" || name == "inf") {
    HONE_ASSIGN_OR_RETURN(const DType type, TypeText("a type"));
    HONE_RETURN_IF_ERROR(Expect(")"));
    if (!type.is_scalar()) return ErrorAt(at, absl::StrCat("T.", name, " of a vector; expected a scalar type"));
    if (name == "min_value" || name == "max_value") return Parsed{Extreme(type, name == "max_value")};
    if (!type.is_float()) return ErrorAt(at, absl::StrCat("infinity of ", ToText(type), "; expected a floating type"));
    return Parsed{FloatConst(std::numeric_limits<double>::infinity(), type)};
  }
  if (name == "likely") {
    HONE_ASSIGN_OR_RETURN(std::vector<Parsed> args, Arguments(name, 1));
    return args[0];
  }
  if (name == "Not" || name == "bitwise_not") {
    HONE_ASSIGN_OR_RETURN(std::vector<Parsed> args, Arguments(name, 1));
    if (name == "bitwise_not") return Combine(at, BinaryOp::kBitXor, args[0], {IntConst(-1), 1, true});
    if (!args[0].e.type().is_bool())
      return ErrorAt(at, absl::StrCat("T.Not of ", ToText(args[0].e.type()), "; expected bool"));
    return Deeper(at, Expr::Make(Not{args[0].e}, args[0].e.type()), {args[0].depth});
  }
  if (name == "call") {
    HONE_ASSIGN_OR_RETURN(const DType type, TypeText("the type of the call"));
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(std::string callee, ExpectString("the name of the function"));
    std::vector<Parsed> args;
    if (TakeIf(",")) {
      HONE_ASSIGN_OR_RETURN(args, Arguments(name, -1));
    } else {
      HONE_RETURN_IF_ERROR(Expect(")"));
    }
    Call call{std::move(callee), {}};
    int depth = 1;
    for (const Parsed& arg : args) {
      call.args.push_back(arg.e);
      depth = std::max(depth, arg.depth);
    }
    return Deeper(at, Expr::Make(std::move(call), type), {depth});
  }
  for (const Named& named : kNamed) {
    if (named.name != name) continue;
    HONE_ASSIGN_OR_RETURN(std::vector<Parsed> args, Arguments(name, 2));
    return Combine(at, named.op, args[0], args[1]);
  }
  const IntrinsicInfo* info = FindIntrinsic(IntrinsicAlias(name));
  if (info == nullptr)
    return ErrorAt(at, absl::StrCat("`T.", name, "` is not known here; expected a function such as T.exp or T.max"));
  HONE_ASSIGN_OR_RETURN(std::vector<Parsed> args, Arguments(name, info->arity));
  for (size_t i = 1; i < args.size(); ++i) { HONE_RETURN_IF_ERROR(Unify(at, args[0], args[i])); }
  Call call{std::string(info->name), {}};
  int depth = 1;
  const DType type = args.empty() ? kFloat32 : args[0].e.type();
  for (Parsed& arg : args) {
    HONE_ASSIGN_OR_RETURN(arg, Coerce(at, std::move(arg), type, "an argument"));
    call.args.push_back(arg.e);
    depth = std::max(depth, arg.depth);
  }
  return Deeper(at, Expr::Make(std::move(call), info->returns_bool ? DType::Bool(type.lanes) : type), {depth});
}

}  // namespace hone
