// Operators with Python's binding, and what stands between them.
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {
namespace {

// Operators written between their operands, with Python's binding strengths (higher binds more).
struct Infix {
  absl::string_view symbol;
  BinaryOp op;
  int level;
};
constexpr int kCompare = 4, kLevelOfNot = 3, kUnary = 11;
constexpr Infix kInfix[] = {
    {"or", BinaryOp::kOr, 1},         {"and", BinaryOp::kAnd, 2},      {"==", BinaryOp::kEq, kCompare},
    {"!=", BinaryOp::kNe, kCompare},  {"<", BinaryOp::kLt, kCompare},  {"<=", BinaryOp::kLe, kCompare},
    {">", BinaryOp::kGt, kCompare},   {">=", BinaryOp::kGe, kCompare}, {"|", BinaryOp::kBitOr, 5},
    {"^", BinaryOp::kBitXor, 6},      {"&", BinaryOp::kBitAnd, 7},     {"<<", BinaryOp::kShiftLeft, 8},
    {">>", BinaryOp::kShiftRight, 8}, {"+", BinaryOp::kAdd, 9},        {"-", BinaryOp::kSub, 9},
    {"*", BinaryOp::kMul, 10},        {"/", BinaryOp::kDiv, 10},       {"//", BinaryOp::kFloorDiv, 10},
    {"%", BinaryOp::kFloorMod, 10},
};

}  // namespace

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
    HONE_ASSIGN_OR_RETURN(const Parsed a, Expression(kLevelOfNot + 1));
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
  if (symbol->meaning) return Meaning(at, symbol->meaning);
  if (symbol->is_scalar) return Parsed{MakeLoad(symbol->buffer, {})};
  if (symbol->value) {
    return ErrorAt(at, absl::StrCat("`", name, "` is a value of the graph; expected a number or a symbolic size"));
  }
  if (!symbol->thread.empty())
    return ErrorAt(at, absl::StrCat("thread `", name, "` is not launched here; expected T.launch_thread of it before"));
  if (!symbol->buffer)
    return ErrorAt(
        at, absl::StrCat("handle `", name, "` is no value; expected the buffer that T.match_buffer makes of it"));
  const Buffer buffer = symbol->buffer;
  if (At(".") && (Peek(1).text == "elem_offset" || Peek(1).text == "strides")) return PlaceOf(buffer);
  return LoadFrom(at, buffer);
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

}  // namespace hone
