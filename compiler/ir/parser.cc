#include "compiler/ir/parser.h"

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/support/status_macros.h"

namespace hone {

const Token& Parser::Peek(int ahead) const {
  const size_t at = pos_ + static_cast<size_t>(ahead);
  return at < tokens_.size() ? tokens_[at] : tokens_.back();
}
Token Parser::Take() {
  Token token = Peek();
  if (pos_ + 1 < tokens_.size()) ++pos_;
  return token;
}
bool Parser::At(absl::string_view text) const {
  const Token& token = Peek();
  return (token.kind == TokenKind::kPunct || token.kind == TokenKind::kName) && token.text == text;
}
bool Parser::TakeIf(absl::string_view text) {
  if (!At(text)) return false;
  Take();
  return true;
}
absl::Status Parser::Unexpected(absl::string_view expected) const {
  return ErrorAt(Peek(), absl::StrCat("found ", Describe(Peek()), "; expected ", expected));
}
absl::Status Parser::Expect(absl::string_view text) {
  if (!TakeIf(text)) return Unexpected(absl::StrCat("`", text, "`"));
  return absl::OkStatus();
}
absl::StatusOr<std::string> Parser::ExpectName(absl::string_view what) {
  if (!AtName()) return Unexpected(what);
  return Take().text;
}
absl::StatusOr<std::string> Parser::ExpectString(absl::string_view what) {
  if (Peek().kind != TokenKind::kString) return Unexpected(absl::StrCat(what, " in quotes"));
  return Take().text;
}
absl::Status Parser::ExpectEndOfLine() {
  TakeIf(";");
  if (Peek().kind == TokenKind::kEnd || Peek().kind == TokenKind::kDedent) return absl::OkStatus();
  if (Peek().kind != TokenKind::kNewline) return Unexpected("the end of the line");
  Take();
  return absl::OkStatus();
}
void Parser::SkipLine() {
  while (Peek().kind != TokenKind::kNewline && Peek().kind != TokenKind::kEnd) Take();
  if (Peek().kind == TokenKind::kNewline) Take();
}
void Parser::SkipSuite() {
  SkipLine();
  if (Peek().kind != TokenKind::kIndent) return;
  int depth = 0;
  do {
    const TokenKind kind = Take().kind;
    depth += kind == TokenKind::kIndent ? 1 : kind == TokenKind::kDedent ? -1 : 0;
  } while (depth > 0 && Peek().kind != TokenKind::kEnd);
}

void Parser::RollBack(size_t mark) {
  while (scope_.size() > mark) {
    const auto found = symbols_.find(scope_.back());
    found->second.pop_back();
    if (found->second.empty()) symbols_.erase(found);
    scope_.pop_back();
  }
}
void Parser::Define(const std::string& name, Symbol symbol) {
  symbols_[name].push_back(std::move(symbol));
  scope_.push_back(name);
}
const Symbol* Parser::Find(const std::string& name) const {
  const auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : &found->second.back();
}

absl::StatusOr<std::vector<PrimFunc>> Parser::Module() {
  std::vector<PrimFunc> functions;
  while (Peek().kind != TokenKind::kEnd) HONE_RETURN_IF_ERROR(TopLevel(functions));
  return functions;
}

absl::Status Parser::TopLevel(std::vector<PrimFunc>& functions) {
  if (Peek().kind == TokenKind::kNewline || Peek().kind == TokenKind::kDedent) {
    Take();
    return absl::OkStatus();
  }
  if (At("from") || At("import") || Peek().kind == TokenKind::kString) {
    SkipLine();
    return absl::OkStatus();
  }
  if (TakeIf("class")) {  // its functions follow, one indentation deeper
    SkipLine();
    if (Peek().kind != TokenKind::kIndent) return Unexpected("the functions of the class, indented");
    Take();
    return absl::OkStatus();
  }
  bool is_prim_func = false, wrap_root = true;
  while (TakeIf("@")) {
    while (Peek().kind != TokenKind::kNewline && Peek().kind != TokenKind::kEnd) {
      const bool root = At("root");
      is_prim_func = is_prim_func || At("prim_func");
      Take();
      if (root && TakeIf("=")) wrap_root = !At("False");
    }
    Take();
  }
  if (At("def")) {
    if (!is_prim_func) {
      SkipSuite();
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(PrimFunc f, Function(wrap_root));
    functions.push_back(std::move(f));
    return absl::OkStatus();
  }
  if (is_prim_func) return Unexpected("`def` after @T.prim_func");
  if (At("class")) return absl::OkStatus();
  if (AtName() && (Peek().text == "I" || Peek().text == "R")) {  // I.module_attrs(...)
    SkipLine();
    return absl::OkStatus();
  }
  return Unexpected("a function (@T.prim_func, then `def`), a class of functions, or an import");
}

// `n: T.int32` anywhere in the list names a symbolic size, which shapes before it may mention.
absl::Status Parser::DimensionNames(PrimFunc& f) {
  int depth = 0;
  for (int i = 0; Peek(i).kind != TokenKind::kEnd && Peek(i).kind != TokenKind::kNewline; ++i) {
    const auto is = [&](int k, absl::string_view text) {
      return Peek(k).kind != TokenKind::kString && Peek(k).text == text;
    };
    if (is(i, "(") || is(i, "[")) ++depth;
    if (is(i, ")") || is(i, "]")) --depth;
    if (depth < 0) break;
    if (depth != 0 || Peek(i).kind != TokenKind::kName || !is(i + 1, ":") || !is(i + 2, "T") || !is(i + 3, "."))
      continue;
    if (!is(i + 4, "int32") && !is(i + 4, "int64")) continue;
    const Var dim(Peek(i).text, is(i + 4, "int32") ? kInt32 : kInt64);
    if (Find(dim.name()) != nullptr) return ErrorAt(Peek(i), absl::StrCat("`", dim.name(), "` is there twice"));
    f.dims.push_back(dim);
    Define(dim.name(), {.var = dim});
  }
  return absl::OkStatus();
}

absl::Status Parser::Parameters(PrimFunc& f) {
  HONE_RETURN_IF_ERROR(Expect("("));
  HONE_RETURN_IF_ERROR(DimensionNames(f));
  while (!TakeIf(")")) {
    const Token at = Peek();
    HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a parameter's name"));
    HONE_RETURN_IF_ERROR(Expect(":"));
    HONE_RETURN_IF_ERROR(Expect("T"));
    HONE_RETURN_IF_ERROR(Expect("."));
    HONE_ASSIGN_OR_RETURN(const std::string type, ExpectName("Buffer, handle, int32 or int64"));
    const Symbol* earlier = Find(name);
    const bool is_dim = type == "int32" || type == "int64";
    if (earlier != nullptr && !is_dim) return ErrorAt(at, absl::StrCat("`", name, "` is there twice"));
    if (type == "handle") {
      Define(name, {.handle = static_cast<int>(params_.size())});
      params_.emplace_back();
    } else if (type == "Buffer") {
      const std::string closing = At("[") ? "]" : ")";
      HONE_RETURN_IF_ERROR(Expect(closing == "]" ? "[" : "("));
      HONE_ASSIGN_OR_RETURN(BufferSpec spec, BufferArguments(true, closing));
      const Buffer buffer(name, spec.type, std::move(spec.shape), spec.scope);
      Define(name, {.buffer = buffer});
      params_.emplace_back(buffer);
    } else if (!is_dim) {
      return ErrorAt(at, absl::StrCat("parameter `", name, "` is a T.", type,
                                      "; expected T.Buffer, T.handle, T.int32 or T.int64"));
    }
    if (!At(")")) HONE_RETURN_IF_ERROR(Expect(","));
  }
  return absl::OkStatus();
}

absl::StatusOr<PrimFunc> Parser::Function(bool wrap_root) {
  HONE_RETURN_IF_ERROR(Expect("def"));
  PrimFunc f;
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(f.name, ExpectName("the function's name"));
  const size_t mark = Mark();
  params_.clear();
  function_ = &f;
  HONE_RETURN_IF_ERROR(Parameters(f));
  if (TakeIf("->")) {
    while (!At(":") && Peek().kind != TokenKind::kNewline && Peek().kind != TokenKind::kEnd) Take();
  }
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(f.body, FunctionBody(f, wrap_root));
  for (std::optional<Buffer>& param : params_) {
    if (!param.has_value())
      return ErrorAt(at, absl::StrCat("a T.handle of `", f.name, "` is given no shape; add T.match_buffer"));
    f.params.push_back(*std::move(param));
  }
  RollBack(mark);
  function_ = nullptr;
  return f;
}

absl::StatusOr<Stmt> Parser::FunctionBody(PrimFunc& f, bool wrap_root) {
  BlockParts root;
  root.is_function = true;
  HONE_ASSIGN_OR_RETURN(Stmt body, Suite(&root));
  const BlockRealize* outer = body.As<BlockRealize>();
  const bool has_root = outer != nullptr && outer->block.name == "root" && outer->block.iters.empty();
  bool has_blocks = false;
  ForEachStmt(body, [&](const Stmt& s) {
    has_blocks = has_blocks || s.As<BlockRealize>() != nullptr;
    return !has_blocks;
  });
  const bool needs_root = !root.block.allocs.empty() || (has_blocks && !has_root);
  if (!needs_root || !wrap_root) {
    if (!root.block.allocs.empty()) return ErrorAt(Peek(), "T.alloc_buffer without a root block; use T.allocate");
    return body;
  }
  root.block.name = "root";
  root.block.body = std::move(body);
  return Stmt::Make(BlockRealize{{}, True(), std::move(root.block)});
}

absl::StatusOr<std::vector<PrimFunc>> ParseModule(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens)).Module();
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
