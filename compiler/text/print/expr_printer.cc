#include "compiler/text/print/expr_printer.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/structural.h"
#include "compiler/text/literals.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

struct BinarySpelling {
  absl::string_view symbol;    // an operator, or
  absl::string_view function;  // a function
  int level = kAtom;
};
BinarySpelling SpellingOf(BinaryOp op, DType operand) {
  switch (op) {
    case BinaryOp::kAdd: return {"+", "", kAddLevel};
    case BinaryOp::kSub: return {"-", "", kAddLevel};
    case BinaryOp::kMul: return {"*", "", kMulLevel};
    case BinaryOp::kDiv: return operand.is_float() ? BinarySpelling{"/", "", kMulLevel} : BinarySpelling{"", "T.Div"};
    case BinaryOp::kMod: return {"", "T.truncmod"};
    case BinaryOp::kFloorDiv: return {"//", "", kMulLevel};
    case BinaryOp::kFloorMod: return {"%", "", kMulLevel};
    case BinaryOp::kMin: return {"", "T.min"};
    case BinaryOp::kMax: return {"", "T.max"};
    case BinaryOp::kEq: return {"==", "", kCompareLevel};
    case BinaryOp::kNe: return {"!=", "", kCompareLevel};
    case BinaryOp::kLt: return {"<", "", kCompareLevel};
    case BinaryOp::kLe: return {"<=", "", kCompareLevel};
    case BinaryOp::kGt: return {">", "", kCompareLevel};
    case BinaryOp::kGe: return {">=", "", kCompareLevel};
    case BinaryOp::kAnd: return {"and", "", kAndLevel};
    case BinaryOp::kOr: return {"or", "", kOrLevel};
    case BinaryOp::kBitAnd: return {"", "T.bitwise_and"};
    case BinaryOp::kBitOr: return {"", "T.bitwise_or"};
    case BinaryOp::kBitXor: return {"", "T.bitwise_xor"};
    case BinaryOp::kShiftLeft: return {"", "T.shift_left"};
    case BinaryOp::kShiftRight: return {"", "T.shift_right"};
  }
  return {};
}

bool IsKnownCall(const Call& call, DType type) {
  const IntrinsicInfo* info = FindIntrinsic(call.name);
  if (info == nullptr || static_cast<int>(call.args.size()) != info->arity) return false;
  for (const Expr& arg : call.args) {
    if (arg.type() != call.args[0].type()) return false;
  }
  return type == (info->returns_bool ? DType::Bool(type.lanes) : call.args[0].type());
}

}  // namespace

std::string ExprPrinter::CallText(absl::string_view function, const std::vector<Expr>& args) {
  std::vector<std::string> texts;
  for (const Expr& arg : args) texts.push_back(Print(arg));
  return absl::StrCat(function, "(", absl::StrJoin(texts, ", "), ")");
}

std::string ExprPrinter::BinaryText(const Binary& node, const Expr& e, int context) {
  const BinarySpelling spelling = SpellingOf(node.op, node.a.type());
  if (spelling.symbol.empty()) return CallText(spelling.function, {node.a, node.b});
  // Left-associative, except that a comparison of comparisons would be a chain.
  const int left = spelling.level == kCompareLevel ? spelling.level + 1 : spelling.level;
  const std::string text =
      absl::StrCat(Print(node.a, left), " ", spelling.symbol, " ", Print(node.b, spelling.level + 1));
  return spelling.level < context ? absl::StrCat("(", text, ")") : text;
}

std::string ExprPrinter::Print(const Expr& e, int context) {
  if (!e) return "None";
  const DType type = e.type();
  struct Visitor {
    ExprPrinter& p;
    const Expr& e;
    DType type;
    int context;
    std::string operator()(const IntImm& n) {
      if (type == kInt32) return absl::StrCat(n.value);
      if (type.is_bool()) return n.value != 0 ? "T.bool(True)" : "T.bool(False)";
      return absl::StrCat("T.", ToText(type), "(", n.value, ")");
    }
    std::string operator()(const FloatImm& n) {
      return absl::StrCat("T.", ToText(type), "(", FloatDigits(n.value, type), ")");
    }
    std::string operator()(const VarRef& n) { return p.Name(n.var); }
    std::string operator()(const Binary& n) { return p.BinaryText(n, e, context); }
    std::string operator()(const Not& n) {
      const std::string text = absl::StrCat("not ", p.Print(n.a, kNotLevel));
      return kNotLevel < context ? absl::StrCat("(", text, ")") : text;
    }
    std::string operator()(const Cast& n) { return absl::StrCat("T.Cast(\"", ToText(type), "\", ", p.Print(n.a), ")"); }
    std::string operator()(const Select& n) { return p.CallText("T.Select", {n.condition, n.yes, n.no}); }
    std::string operator()(const IfThenElseExpr& n) { return p.CallText("T.if_then_else", {n.condition, n.yes, n.no}); }
    std::string operator()(const LetExpr& n) {
      const std::string value = p.Print(n.value);
      const size_t mark = p.names_->Mark();
      const std::string name = p.Define(n.var);
      std::string text = absl::StrCat("T.let(", name, ", ", value, ", ", p.Print(n.body), ")");
      p.names_->RollBack(mark);
      return text;
    }
    std::string operator()(const Load& n) {
      const std::string name = p.Name(n.buffer);
      if (!n.mask) return absl::StrCat(name, "[", p.Indices(n.indices), "]");
      std::vector<std::string> indices;
      for (const Expr& index : n.indices) indices.push_back(p.Print(index));
      return absl::StrCat(name, ".vload([", absl::StrJoin(indices, ", "), "], predicate=", p.Print(n.mask), ")");
    }
    std::string operator()(const Call& n) {
      if (IsKnownCall(n, type)) return p.CallText(absl::StrCat("T.", n.name), n.args);
      std::string text = absl::StrCat("T.call_extern(\"", ToText(type), "\", ", QuotedText(n.name));
      for (const Expr& arg : n.args) absl::StrAppend(&text, ", ", p.Print(arg));
      return absl::StrCat(text, ")");
    }
    std::string operator()(const Ramp& n) {
      return absl::StrCat("T.Ramp(", p.Print(n.base), ", ", p.Print(n.stride), ", ", type.lanes, ")");
    }
    std::string operator()(const Broadcast& n) {
      return absl::StrCat("T.Broadcast(", p.Print(n.value), ", ", type.lanes, ")");
    }
  };
  return std::visit(Visitor{*this, e, type, context}, e.node().kind);
}

std::string ExprPrinter::Indices(const std::vector<Expr>& indices) {
  if (indices.empty()) return "()";
  std::vector<std::string> texts;
  for (const Expr& index : indices) texts.push_back(Print(index));
  return absl::StrJoin(texts, ", ");
}

std::string ExprPrinter::End(const Range& range) {
  const std::optional<int64_t> min = ConstantValue(range.min), extent = ConstantValue(range.extent);
  if (min == 0) return Print(range.extent);
  if (min.has_value() && extent.has_value()) {
    const uint64_t end = static_cast<uint64_t>(*min) + static_cast<uint64_t>(*extent);
    return Print(IntConst(static_cast<int64_t>(end), range.extent.type()));
  }
  return absl::StrCat(Print(range.min, kAddLevel), " + ", Print(range.extent, kAddLevel + 1));
}

std::string ExprPrinter::Region(const BufferRegion& region) {
  std::vector<std::string> texts;
  for (const Range& range : region.region) {
    const bool point = IsConst(range.extent, 1) && range.extent.type() == range.min.type();
    texts.push_back(point ? Print(range.min) : absl::StrCat(Print(range.min), ":", End(range)));
  }
  return absl::StrCat(Name(region.buffer), "[", texts.empty() ? "()" : absl::StrJoin(texts, ", "), "]");
}

std::string ExprPrinter::Shape(const std::vector<Expr>& shape) {
  if (shape.size() == 1) return absl::StrCat("(", Print(shape[0]), ",)");
  return absl::StrCat("(", shape.empty() ? "" : Indices(shape), ")");
}

std::string ToText(const Expr& e) {
  NameTable names;
  return ExprPrinter(&names).Print(e);
}

}  // namespace hone
