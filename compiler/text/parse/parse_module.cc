// A whole text: imports, classes, and the functions in them.
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"
#include "compiler/text/text.h"

namespace hone {

struct Parser::Decoration {
  bool is_tensor = false, is_graph = false;
  bool wrap_root = true, is_private = false, is_pure = true;
};

absl::StatusOr<IrModule> Parser::Module() {
  IrModule module;
  while (Peek().kind != TokenKind::kEnd) HONE_RETURN_IF_ERROR(TopLevel(module));
  return module;
}

// "@T.prim_func(private=True)", "@R.function", "@I.ir_module": what it says about what follows.
Parser::Decoration Parser::Decorations() {
  Decoration said;
  while (TakeIf("@")) {
    while (Peek().kind != TokenKind::kNewline && Peek().kind != TokenKind::kEnd) {
      const std::string word = Take().text;
      const bool has_value = At("=");
      if (word == "prim_func") said.is_tensor = true;
      if (word == "function") said.is_graph = true;
      if (!has_value) continue;
      Take();
      if (word == "root") said.wrap_root = !At("False");
      if (word == "private") said.is_private = At("True");
      if (word == "pure") said.is_pure = !At("False");
    }
    Take();
  }
  return said;
}

absl::Status Parser::TopLevel(IrModule& module) {
  if (Peek().kind == TokenKind::kNewline || Peek().kind == TokenKind::kDedent) {
    Take();
    return absl::OkStatus();
  }
  if (At("from") || At("import") || At("pass") || Peek().kind == TokenKind::kString) {
    SkipLine();
    return absl::OkStatus();
  }
  if (At("metadata")) {  // metadata = tvm.ir.load_json("""..."""): the constants themselves
    SkipLine();
    return absl::OkStatus();
  }
  if (TakeIf("class")) {  // its functions follow, one indentation deeper
    if (!class_name_.empty() || !module.functions.empty()) {
      return ErrorAt(Peek(), "a class after other functions or a second class; expected one module in a text");
    }
    HONE_ASSIGN_OR_RETURN(module.name, ExpectFunctionName());
    class_name_ = module.name;
    SkipLine();
    if (Peek().kind != TokenKind::kIndent) return Unexpected("the functions of the class, indented");
    Take();
    return absl::OkStatus();
  }
  const Decoration said = Decorations();
  if (At("class")) return absl::OkStatus();
  if (At("def")) return Definition(said, module);
  if (said.is_tensor || said.is_graph) {
    return Unexpected(said.is_tensor ? "`def` after @T.prim_func" : "`def` after @R.function");
  }
  if (At("I") && Peek(1).text == ".") return ModuleStatement(module);
  return Unexpected("a function (@T.prim_func or @R.function, then `def`), a class of functions, or an import");
}

absl::Status Parser::Definition(const Decoration& said, IrModule& module) {
  if (!said.is_tensor && !said.is_graph) {  // plain python beside the programs
    SkipSuite();
    return absl::OkStatus();
  }
  const Token at = Peek(1);
  if (said.is_tensor) {
    HONE_ASSIGN_OR_RETURN(PrimFunc f, Function(said.wrap_root));
    module.functions.emplace_back(std::move(f));
  } else {
    HONE_ASSIGN_OR_RETURN(GraphFunc f, GraphFunction());
    f.is_private = said.is_private;
    f.is_pure = said.is_pure;
    module.functions.emplace_back(std::move(f));
  }
  if (!class_name_.empty() && !function_names_.insert(at.text).second) {
    return ErrorAt(at, absl::StrCat("class ", class_name_, " has a second function `", at.text, "`"));
  }
  return absl::OkStatus();
}

absl::Status Parser::ModuleStatement(IrModule& module) {
  if (Peek(2).text != "module_attrs" || class_name_.empty()) {  // module_global_infos(...): devices, known otherwise
    SkipLine();
    return absl::OkStatus();
  }
  for (int i = 0; i < 3; ++i) Take();
  HONE_RETURN_IF_ERROR(Expect("("));
  HONE_ASSIGN_OR_RETURN(module.attrs, AttrDict());
  HONE_RETURN_IF_ERROR(Expect(")"));
  return ExpectEndOfLine();
}

absl::StatusOr<IrModule> ParseIrModule(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens)).Module();
}

absl::StatusOr<std::vector<PrimFunc>> ParseModule(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(IrModule module, ParseIrModule(text));
  std::vector<PrimFunc> functions;
  for (auto& function : module.functions) {
    if (PrimFunc* f = std::get_if<PrimFunc>(&function)) functions.push_back(std::move(*f));
  }
  return functions;
}

absl::StatusOr<PrimFunc> ParsePrimFunc(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(std::vector<PrimFunc> functions, ParseModule(text));
  if (functions.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("line 1, column 1: found ", functions.size(), " functions with @T.prim_func; expected one"));
  }
  return std::move(functions[0]);
}

}  // namespace hone
