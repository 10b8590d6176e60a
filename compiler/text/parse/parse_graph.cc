// @R.function: a graph function's parameters, bindings and dataflow blocks.
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {

absl::StatusOr<GraphFunc> Parser::GraphFunction() {
  HONE_RETURN_IF_ERROR(Expect("def"));
  GraphFunc f;
  HONE_ASSIGN_OR_RETURN(f.name, ExpectFunctionName());
  const size_t mark = Mark();
  aliases_.clear();
  graph_dims_ = &f.dims;
  HONE_RETURN_IF_ERROR(GraphParameters(f));
  if (TakeIf("->")) { HONE_ASSIGN_OR_RETURN(f.returns, TypeOfGraph()); }
  graph_dims_ = nullptr;
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_RETURN_IF_ERROR(GraphBody(f));
  RollBack(mark);
  return f;
}

absl::Status Parser::GraphParameters(GraphFunc& f) {
  HONE_RETURN_IF_ERROR(Expect("("));
  while (!TakeIf(")")) {
    const Token at = Peek();
    HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a parameter's name"));
    if (Find(name) != nullptr) return ErrorAt(at, absl::StrCat("`", name, "` is there twice"));
    std::optional<GraphType> type;
    if (TakeIf(":")) { HONE_ASSIGN_OR_RETURN(type, TypeOfGraph()); }
    const GraphVar var(name, std::move(type));
    f.params.push_back(var);
    Define(name, {.value = var});
    if (!At(")")) HONE_RETURN_IF_ERROR(Expect(","));
  }
  return absl::OkStatus();
}

absl::Status Parser::GraphBody(GraphFunc& f) {
  if (Peek().kind != TokenKind::kNewline) return Unexpected("the end of the line, then the function's statements");
  Take();
  if (Peek().kind != TokenKind::kIndent) return Unexpected("an indented block of statements");
  Take();
  while (!f.result) {
    if (Peek().kind == TokenKind::kDedent || Peek().kind == TokenKind::kEnd) {
      return Unexpected("`return` and the function's value");
    }
    HONE_RETURN_IF_ERROR(GraphStatement(f));
  }
  while (Peek().kind == TokenKind::kNewline) Take();
  if (Peek().kind != TokenKind::kDedent && Peek().kind != TokenKind::kEnd) {
    return Unexpected("the end of the function after its `return`");
  }
  if (Peek().kind == TokenKind::kDedent) Take();
  return absl::OkStatus();
}

absl::Status Parser::GraphStatement(GraphFunc& f) {
  const Token at = Peek();
  if (at.kind == TokenKind::kNewline) {
    Take();
    return absl::OkStatus();
  }
  if (at.kind == TokenKind::kString) {  // a comment in the form of a text
    SkipLine();
    return absl::OkStatus();
  }
  if (TakeIf("pass")) return ExpectEndOfLine();
  if (TakeIf("return")) {
    HONE_ASSIGN_OR_RETURN(f.result, GraphValues());
    return ExpectEndOfLine();
  }
  if (At("with")) return DataflowBlock(f);
  if (At("if") || At("for") || At("while") || At("def") || At("@")) {
    return ErrorAt(at, absl::StrCat("found ", Describe(at),
                                    " in a graph function, which is a line of bindings; expected an assignment, "
                                    "`with R.dataflow():` or `return`"));
  }
  if (At("R") && Peek(2).text == "func_attr") {
    for (int i = 0; i < 3; ++i) Take();
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(f.attrs, AttrDict());
    HONE_RETURN_IF_ERROR(Expect(")"));
    f.attrs.erase("global_symbol");  // says nothing that def does not
    return ExpectEndOfLine();
  }
  HONE_ASSIGN_OR_RETURN(const bool declared, GraphDeclaration(f));
  if (declared) return absl::OkStatus();
  if (f.blocks.empty() || f.blocks.back().is_dataflow) f.blocks.emplace_back();
  return Bind(f.blocks.back());
}

// `n = T.int64()` and `cls = Module`.
absl::StatusOr<bool> Parser::GraphDeclaration(GraphFunc& f) {
  if (!AtName() || Peek(1).text != "=" || Peek(1).kind != TokenKind::kPunct) return false;
  const Token at = Peek();
  const Token value = Peek(2);
  if (value.kind == TokenKind::kName && !class_name_.empty() && value.text == class_name_ &&
      Peek(3).kind == TokenKind::kNewline) {
    for (int i = 0; i < 3; ++i) Take();
    aliases_.insert(at.text);
    HONE_RETURN_IF_ERROR(ExpectEndOfLine());
    return true;
  }
  const bool is_size = value.kind == TokenKind::kName && value.text == "T" && Peek(3).text == "." &&
                       (Peek(4).text == "int64" || Peek(4).text == "var") && Peek(5).text == "(";
  if (!is_size) return false;
  for (int i = 0; i < 6; ++i) Take();
  if (Peek().kind == TokenKind::kString) {  // T.var("int64")
    HONE_ASSIGN_OR_RETURN(const DType type, TypeText("a type"));
    if (type != kInt64) return ErrorAt(at, "a symbolic size of a graph is a T.int64()");
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  const Symbol* known = Find(at.text);
  if (known != nullptr && known->var) return true;  // the signature mentioned it already
  const Var dim(at.text, kInt64, SizeRange{});
  f.dims.push_back(dim);
  Define(at.text, {.var = dim});
  return true;
}

absl::Status Parser::DataflowBlock(GraphFunc& f) {
  Take();
  HONE_RETURN_IF_ERROR(Expect("R"));
  HONE_RETURN_IF_ERROR(Expect("."));
  HONE_RETURN_IF_ERROR(Expect("dataflow"));
  for (const absl::string_view text : {"(", ")", ":"}) HONE_RETURN_IF_ERROR(Expect(text));
  if (Peek().kind != TokenKind::kNewline || Peek(1).kind != TokenKind::kIndent) {
    return Unexpected("an indented block of bindings");
  }
  Take();
  Take();
  BindingBlock block;
  block.is_dataflow = true;
  const size_t mark = Mark();
  bool is_closed = false;
  while (Peek().kind != TokenKind::kDedent && Peek().kind != TokenKind::kEnd) {
    if (Peek().kind == TokenKind::kNewline) {
      Take();
      continue;
    }
    if (is_closed) return Unexpected("the end of the dataflow block after R.output");
    if (At("R") && Peek(2).text == "output") {
      for (int i = 0; i < 3; ++i) Take();
      HONE_RETURN_IF_ERROR(Expect("("));
      while (!At(")")) {
        if (!block.outputs.empty()) HONE_RETURN_IF_ERROR(Expect(","));
        if (At(")")) break;
        const Token at = Peek();
        HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a value of the block"));
        const Symbol* symbol = Find(name);
        bool is_ours = false;
        for (const GraphBinding& binding : block.bindings) {
          is_ours = is_ours || (symbol != nullptr && binding.var == symbol->value);
        }
        if (!is_ours) return ErrorAt(at, absl::StrCat("`", name, "` is no value of this dataflow block"));
        block.outputs.push_back(symbol->value);
      }
      Take();
      HONE_RETURN_IF_ERROR(ExpectEndOfLine());
      is_closed = true;
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const bool declared, GraphDeclaration(f));
    if (!declared) HONE_RETURN_IF_ERROR(Bind(block));
  }
  if (!is_closed) return Unexpected("R.output(...) with what the rest of the function may use");
  if (Peek().kind == TokenKind::kDedent) Take();
  RollBack(mark);
  for (const GraphVar& var : block.outputs) Define(var.name(), {.value = var});
  f.blocks.push_back(std::move(block));
  return absl::OkStatus();
}

// `x: R.Tensor(...) = value`, or an operator for its effect alone.
absl::Status Parser::Bind(BindingBlock& block) {
  const Token at = Peek();
  if (!AtName()) return Unexpected("a binding such as `y = R.add(x, x)`");
  std::string name = "_";
  std::optional<GraphType> type;
  const bool is_named = (Peek(1).text == "=" || Peek(1).text == ":") && Peek(1).kind == TokenKind::kPunct;
  if (is_named) {
    name = Take().text;
    if (name == "T" || name == "R" || name == "I") {
      return ErrorAt(at, absl::StrCat("`", name, "` names a part of the language; expected another name"));
    }
    if (TakeIf(":")) { HONE_ASSIGN_OR_RETURN(type, TypeOfGraph()); }
    HONE_RETURN_IF_ERROR(Expect("="));
  }
  HONE_ASSIGN_OR_RETURN(GraphExpr value, GraphValues());
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  const GraphVar var(name, std::move(type));
  Define(name, {.value = var});
  block.bindings.push_back({var, std::move(value)});
  return absl::OkStatus();
}

bool Parser::AtModule() const {
  if (!AtName() || Peek(1).text != "." || Peek(1).kind != TokenKind::kPunct) return false;
  return aliases_.count(Peek().text) != 0 || (!class_name_.empty() && Peek().text == class_name_) ||
         (Peek().text == "cls" && Find("cls") == nullptr);
}

}  // namespace hone
