// What a graph function binds: operators, calls of functions, tuples and constants.
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/names.h"
#include "compiler/text/parse/parser.h"

namespace hone {

absl::StatusOr<GraphExpr> Parser::GraphValues() {
  HONE_ASSIGN_OR_RETURN(GraphExpr first, GraphValue());
  if (!At(",")) return first;
  GraphTuple tuple;
  tuple.items.push_back(std::move(first));
  while (TakeIf(",")) {
    if (Peek().kind == TokenKind::kNewline) break;
    HONE_ASSIGN_OR_RETURN(GraphExpr next, GraphValue());
    tuple.items.push_back(std::move(next));
  }
  return GraphExpr::Make(std::move(tuple));
}

absl::StatusOr<GraphExpr> Parser::GraphValue() {
  const Token at = Peek();
  if (++nesting_ > kMaxNesting) return ErrorAt(at, absl::StrCat("brackets nest deeper than ", kMaxNesting));
  HONE_ASSIGN_OR_RETURN(GraphExpr value, GraphPrimary());
  for (int items = 0; At("[") || At("("); ++items) {
    if (items > kMaxNesting) return ErrorAt(at, absl::StrCat("more than ", kMaxNesting, " items of items"));
    if (TakeIf("[")) {
      const Token index_at = Peek();
      HONE_ASSIGN_OR_RETURN(const Expr index, IntExpression("the number of a tuple's item"));
      const std::optional<int64_t> n = ConstantValue(index);
      if (!n.has_value() || *n < 0) return ErrorAt(index_at, "the number of a tuple's item is a constant from 0");
      HONE_RETURN_IF_ERROR(Expect("]"));
      value = GraphExpr::Make(TupleItem{std::move(value), *n});
    } else {
      const bool callable = value.As<FunctionRef>() != nullptr || value.As<GraphVarRef>() != nullptr;
      if (!callable) return Unexpected("a function before `(`");
      Take();
      GraphCall call;
      call.callee = std::move(value);
      HONE_RETURN_IF_ERROR(GraphArguments(call));
      value = GraphExpr::Make(std::move(call));
    }
  }
  --nesting_;
  return value;
}

absl::StatusOr<std::vector<GraphExpr>> Parser::GraphItems(absl::string_view closing) {
  std::vector<GraphExpr> items;
  while (!At(closing)) {
    if (!items.empty()) HONE_RETURN_IF_ERROR(Expect(","));
    if (At(closing)) break;
    HONE_ASSIGN_OR_RETURN(GraphExpr item, GraphValue());
    items.push_back(std::move(item));
  }
  Take();
  return items;
}

absl::StatusOr<GraphExpr> Parser::GraphPrimary() {
  const Token at = Peek();
  if (at.kind == TokenKind::kInt || at.kind == TokenKind::kFloat || at.kind == TokenKind::kString || At("-") ||
      At("None") || At("True") || At("False") || (At("float") && Peek(1).text == "(")) {
    return GraphLiteral();
  }
  if (At("(") || At("[")) {
    GraphTuple tuple;
    tuple.is_list = At("[");
    Take();
    HONE_ASSIGN_OR_RETURN(tuple.items, GraphItems(tuple.is_list ? "]" : ")"));
    const Token& last = tokens_[pos_ - 2];
    if (!tuple.is_list && tuple.items.size() == 1 && last.text != ",") return tuple.items[0];  // (x) is x
    return GraphExpr::Make(std::move(tuple));
  }
  if (AtMetadata()) {
    HONE_ASSIGN_OR_RETURN(const StoredConstant constant, GraphStoredConstant());
    return GraphExpr::Make(constant);
  }
  if (AtModule()) {
    Take();
    Take();
    HONE_ASSIGN_OR_RETURN(std::string name, ExpectFunctionName());
    return GraphExpr::Make(FunctionRef{std::move(name)});
  }
  if (AtGraphType()) {
    HONE_ASSIGN_OR_RETURN(GraphType type, TypeOfGraph());
    return GraphExpr::Make(TypeLiteral{std::move(type)});
  }
  if (At("R") && Peek(1).text == ".") return GraphOperator();
  const Symbol* symbol = AtName() ? Find(at.text) : nullptr;
  if (symbol != nullptr && symbol->value) {
    Take();
    return GraphExpr::Make(GraphVarRef{symbol->value});
  }
  if (At("T") || (symbol != nullptr && symbol->var)) {  // a number, or an expression of sizes
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    return GraphExpr::Make(ScalarValue{value.e});
  }
  if (AtName()) {
    return ErrorAt(at, absl::StrCat("`", at.text.substr(0, 40),
                                    "` is not defined here; expected a parameter or an earlier value"));
  }
  return Unexpected("a value: a name, an operator such as R.add, a tuple or a constant");
}

absl::StatusOr<GraphExpr> Parser::GraphLiteral() {
  Literal literal;
  if (Peek().kind == TokenKind::kString) {
    literal.value = Take().text;
  } else if (At("True") || At("False")) {
    literal.value = Take().text == "True";
  } else if (TakeIf("None")) {
    literal.value = std::monostate();
  } else if (TakeIf("float")) {  // float("inf")
    Take();
    const Token at = Peek();
    HONE_ASSIGN_OR_RETURN(const std::string text, ExpectString("\"inf\", \"-inf\" or \"nan\""));
    if (text != "inf" && text != "-inf" && text != "nan") {
      return ErrorAt(at, "expected \"inf\", \"-inf\" or \"nan\"");
    }
    literal.value = std::strtod(text.c_str(), nullptr);
    HONE_RETURN_IF_ERROR(Expect(")"));
  } else {
    const bool negative = TakeIf("-");
    const Token number = Peek();
    if (number.kind == TokenKind::kFloat) {
      const double value = std::strtod(Take().text.c_str(), nullptr);
      literal.value = negative ? -value : value;
    } else if (number.kind == TokenKind::kInt) {
      Take();
      HONE_ASSIGN_OR_RETURN(const int64_t value, IntegerText(number, negative, false));
      literal.value = value;
    } else {
      return Unexpected("a number");
    }
  }
  return GraphExpr::Make(std::move(literal));
}

// At metadata["relax.expr.Constant"][3], and meta[relay.Constant][3] of 2022.
bool Parser::AtMetadata() const {
  return (At("metadata") || At("meta")) && Find(Peek().text) == nullptr && Peek(1).text == "[";
}

absl::StatusOr<StoredConstant> Parser::GraphStoredConstant() {
  const Token at = Take();
  Take();
  std::string kind = Peek().kind == TokenKind::kString ? Take().text : "";
  while (!At("]") && Peek().kind != TokenKind::kNewline && Peek().kind != TokenKind::kEnd) kind += Take().text;
  if (kind != "relax.expr.Constant" && kind != "relay.Constant" && kind != "R.expr.Constant" && kind != "ffi.Tensor" &&
      kind != "runtime.NDArray") {
    return ErrorAt(
        at, absl::StrCat("`", kind.substr(0, 40), "` is kept outside of the text; expected relax.expr.Constant"));
  }
  HONE_RETURN_IF_ERROR(Expect("]"));
  HONE_RETURN_IF_ERROR(Expect("["));
  const Token number = Peek();
  if (number.kind != TokenKind::kInt) return Unexpected("the number of a constant");
  Take();
  HONE_ASSIGN_OR_RETURN(const int64_t index, IntegerText(number, false, false));
  HONE_RETURN_IF_ERROR(Expect("]"));
  return StoredConstant{index};
}

// R.const(value, "float32")
absl::StatusOr<GraphExpr> Parser::GraphConstant() {
  TensorConstant constant;
  HONE_ASSIGN_OR_RETURN(constant.value, GraphValue());
  const Literal* literal = constant.value.As<Literal>();
  const bool is_list = constant.value.As<GraphTuple>() != nullptr;
  if (literal == nullptr && !is_list) return Unexpected("a number or a list of numbers before");
  constant.dtype = literal == nullptr || std::holds_alternative<double>(literal->value) ? kFloat32
                   : std::holds_alternative<bool>(literal->value)                       ? kBool
                                                                                        : kInt32;
  if (TakeIf(",")) {
    if (TakeIf("dtype")) HONE_RETURN_IF_ERROR(Expect("="));
    HONE_ASSIGN_OR_RETURN(constant.dtype, TypeText("a type"));
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  return GraphExpr::Make(std::move(constant));
}

absl::StatusOr<GraphExpr> Parser::GraphOperator() {
  const Token at = Peek();
  Take();
  GraphCall call;
  while (TakeIf(".")) {
    HONE_ASSIGN_OR_RETURN(const std::string part, ExpectName("an operator's name"));
    absl::StrAppend(&call.op, call.op.empty() ? "" : ".", part);
  }
  HONE_RETURN_IF_ERROR(Expect("("));
  if (call.op == "call_tir" || call.op == "call_dps_packed") return CallTirValue(call.op == "call_dps_packed");
  if (call.op == "const") return GraphConstant();
  if (call.op == "shape") {
    HONE_ASSIGN_OR_RETURN(std::vector<Expr> extents, Extents());
    HONE_RETURN_IF_ERROR(Expect(")"));
    return GraphExpr::Make(ShapeValue{std::move(extents)});
  }
  if (call.op == "prim_value") {
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    HONE_RETURN_IF_ERROR(Expect(")"));
    return GraphExpr::Make(ScalarValue{value.e});
  }
  if (call.op == "dtype") {
    GraphType type;
    type.kind = GraphType::Kind::kScalar;
    HONE_ASSIGN_OR_RETURN(type.dtype, TypeText("a type"));
    HONE_RETURN_IF_ERROR(Expect(")"));
    return GraphExpr::Make(TypeLiteral{std::move(type)});
  }
  if (call.op == "str") {
    HONE_ASSIGN_OR_RETURN(std::string text, ExpectString("a text"));
    HONE_RETURN_IF_ERROR(Expect(")"));
    return GraphExpr::Make(Literal{std::move(text)});
  }
  if (call.op == "tuple") {
    HONE_ASSIGN_OR_RETURN(std::vector<GraphExpr> items, GraphItems(")"));
    return GraphExpr::Make(GraphTuple{false, std::move(items)});
  }
  if (call.op == "output" || call.op == "dataflow" || call.op == "func_attr") {
    return ErrorAt(at, absl::StrCat("R.", call.op, " is no value"));
  }
  HONE_RETURN_IF_ERROR(GraphArguments(call));
  return GraphExpr::Make(std::move(call));
}

absl::Status Parser::GraphArguments(GraphCall& call) {
  const bool takes_function = call.op.starts_with("call_");
  while (!At(")")) {
    const Token at = Peek();
    if (AtName() && Peek(1).text == "=" && Peek(1).kind == TokenKind::kPunct) {
      Take();
      Take();
      HONE_ASSIGN_OR_RETURN(GraphExpr value, GraphValue());
      call.named.emplace_back(at.text, std::move(value));
    } else if (takes_function && call.args.empty() && AtName() && Find(at.text) == nullptr && Peek(1).text == "," &&
               !IsReserved(at.text)) {
      Take();
      call.args.push_back(GraphExpr::Make(FunctionRef{at.text}));
    } else {
      if (!call.named.empty()) return Unexpected("name=value: arguments by position come first");
      HONE_ASSIGN_OR_RETURN(GraphExpr value, GraphValue());
      call.args.push_back(std::move(value));
    }
    if (!At(")")) HONE_RETURN_IF_ERROR(Expect(","));
  }
  Take();
  return absl::OkStatus();
}

// After "R.call_tir(": the function, its arguments, and what it gives back. A function of the environment may be called
// so too: its name is a text.
absl::StatusOr<GraphExpr> Parser::CallTirValue(bool packed) {
  CallTir call;
  const Token at = Peek();
  call.packed = packed || at.kind == TokenKind::kString;
  if (at.kind == TokenKind::kString) {
    call.function = Take().text;
  } else if (At("R") && Peek(2).text == "ExternFunc") {
    call.packed = true;
    for (int i = 0; i < 3; ++i) Take();
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(call.function, ExpectString("a function's name"));
    HONE_RETURN_IF_ERROR(Expect(")"));
  } else if (packed) {
    return Unexpected("the name of a function of the environment, in quotes");
  } else {
    if (AtModule()) {
      Take();
      Take();
    }
    HONE_ASSIGN_OR_RETURN(call.function, ExpectFunctionName());
  }
  HONE_RETURN_IF_ERROR(Expect(","));
  HONE_ASSIGN_OR_RETURN(GraphExpr args, GraphValue());
  if (const GraphTuple* tuple = args.As<GraphTuple>()) {
    call.args = tuple->items;
  } else {
    call.args.push_back(std::move(args));
  }
  HONE_RETURN_IF_ERROR(CallTirOutput(call));
  return GraphExpr::Make(std::move(call));
}

// `, out_sinfo=R.Tensor((1, 128), "float32"))`, several of them in a list, or `, (1, 128), dtype="float32")`.
absl::Status Parser::CallTirOutput(CallTir& call) {
  const Token at = Peek();
  std::optional<std::vector<Expr>> shape;
  std::optional<DType> dtype;
  while (TakeIf(",")) {
    if (At(")")) break;
    std::string key;
    if (AtName() && Peek(1).text == "=" && Peek(1).kind == TokenKind::kPunct) {
      key = Take().text;
      Take();
    }
    if (key == "dtype") {
      HONE_ASSIGN_OR_RETURN(dtype, TypeText("a type"));
    } else if (key == "tir_vars") {
      const bool wrapped = At("R") && Peek(2).text == "shape";
      for (int i = 0; wrapped && i < 3; ++i) Take();
      if (wrapped) HONE_RETURN_IF_ERROR(Expect("("));
      HONE_ASSIGN_OR_RETURN(call.sizes, Extents());
      if (wrapped) HONE_RETURN_IF_ERROR(Expect(")"));
    } else if (!key.empty() && key != "out_sinfo" && key != "out_ty" && key != "shape") {
      return ErrorAt(at, absl::StrCat("R.call_tir has no argument `", key, "`; expected out_sinfo, dtype or tir_vars"));
    } else if (AtGraphType()) {
      HONE_ASSIGN_OR_RETURN(GraphType type, TypeOfGraph());
      call.outputs.push_back(std::move(type));
    } else if (At("[") && Peek(1).kind == TokenKind::kName && (Peek(1).text == "R" || Peek(1).text == "Tensor")) {
      Take();
      while (!At("]")) {
        HONE_ASSIGN_OR_RETURN(GraphType type, TypeOfGraph());
        call.outputs.push_back(std::move(type));
        if (!At("]")) HONE_RETURN_IF_ERROR(Expect(","));
      }
      Take();
    } else {
      HONE_ASSIGN_OR_RETURN(shape, Extents());
    }
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  if (shape.has_value() && call.outputs.empty()) {
    GraphType type;
    type.kind = GraphType::Kind::kTensor;
    type.shape = std::move(shape);
    type.dtype = dtype;
    call.outputs.push_back(std::move(type));
  }
  if (call.outputs.empty())
    return ErrorAt(at, "this call says nothing of its result; expected out_sinfo=R.Tensor(...)");
  return absl::OkStatus();
}

}  // namespace hone
