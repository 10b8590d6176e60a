// Suites, branches, and which statement a line begins.
#include "absl/strings/str_cat.h"
#include "compiler/ir/parser.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<Stmt> Parser::Suite(BlockParts* block) {
  const size_t mark = Mark();
  const int depth = stmt_depth_;
  if (++stmt_depth_ > kMaxStmtDepth)
    return ErrorAt(Peek(), absl::StrCat("statements nest deeper than ", kMaxStmtDepth));
  Stmt body;
  if (Peek().kind != TokenKind::kNewline) {  // for ...: A[i] = 0
    std::optional<Stmt> wrap;
    HONE_ASSIGN_OR_RETURN(body, Statement(block, wrap));
    if (!body) body = MakeSeq({});
    if (wrap.has_value())
      return ErrorAt(Peek(), "an allocation or let alone on the line of its `:`; expected a block of statements");
  } else {
    Take();
    if (Peek().kind != TokenKind::kIndent) return Unexpected("an indented block of statements");
    Take();
    HONE_ASSIGN_OR_RETURN(body, Statements(block));
    if (Peek().kind == TokenKind::kDedent) Take();
  }
  stmt_depth_ = depth;
  RollBack(mark);
  return body;
}

absl::StatusOr<Stmt> Parser::Statements(BlockParts* block) {
  struct Open {  // a flat allocation or let, and where its body begins
    Stmt scope;
    size_t begin;
  };
  std::vector<Open> open;
  std::vector<Stmt> stmts;
  while (Peek().kind != TokenKind::kDedent && Peek().kind != TokenKind::kEnd) {
    if (Peek().kind == TokenKind::kNewline) {
      Take();
      continue;
    }
    if (Peek().kind == TokenKind::kString) {  // a comment in the form of a text
      SkipLine();
      continue;
    }
    std::optional<Stmt> wrap;
    HONE_ASSIGN_OR_RETURN(Stmt stmt, Statement(block, wrap));
    if (wrap.has_value()) {
      open.push_back({*std::move(wrap), stmts.size()});
      if (++stmt_depth_ > kMaxStmtDepth)
        return ErrorAt(Peek(), absl::StrCat("statements nest deeper than ", kMaxStmtDepth));
    }
    if (stmt) stmts.push_back(std::move(stmt));
  }
  while (!open.empty()) {
    const size_t begin = open.back().begin;
    Stmt body = MakeSeq(std::vector<Stmt>(stmts.begin() + static_cast<ptrdiff_t>(begin), stmts.end()));
    stmts.resize(begin);
    if (const Let* let = open.back().scope.As<Let>()) {
      stmts.push_back(Stmt::Make(Let{let->var, let->value, std::move(body)}));
    } else {
      stmts.push_back(Stmt::Make(Alloc{open.back().scope.As<Alloc>()->buffer, std::move(body)}));
    }
    open.pop_back();
  }
  return MakeSeq(std::move(stmts));
}

absl::StatusOr<Stmt> Parser::Statement(BlockParts* block, std::optional<Stmt>& wrap) {
  if (At("for")) return ForStatement();
  if (At("with")) return WithStatement(block);
  if (At("if")) return IfStatement();
  if (At("pass")) {
    Take();
    HONE_RETURN_IF_ERROR(ExpectEndOfLine());
    return MakeSeq({});
  }
  if (At("T") && Peek(1).text == ".") return ScriptStatement(block);
  if (AtName()) return AssignStatement(block, wrap);
  return Unexpected("a statement: for, with, if, an assignment, or T.something");
}

absl::StatusOr<Stmt> Parser::IfStatement() {
  Take();
  const int depth = stmt_depth_;
  if (++stmt_depth_ > kMaxStmtDepth)
    return ErrorAt(Peek(), absl::StrCat("statements nest deeper than ", kMaxStmtDepth));
  IfThen branch;
  HONE_ASSIGN_OR_RETURN(branch.condition, BoolExpression("a condition"));
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(branch.yes, Suite(nullptr));
  while (Peek().kind == TokenKind::kNewline) Take();
  if (At("elif")) {
    HONE_ASSIGN_OR_RETURN(branch.no, IfStatement());
  } else if (TakeIf("else")) {
    HONE_RETURN_IF_ERROR(Expect(":"));
    HONE_ASSIGN_OR_RETURN(branch.no, Suite(nullptr));
  }
  stmt_depth_ = depth;
  return Stmt::Make(std::move(branch));
}

absl::StatusOr<Stmt> Parser::WithStatement(BlockParts* block) {
  Take();
  HONE_RETURN_IF_ERROR(Expect("T"));
  HONE_RETURN_IF_ERROR(Expect("."));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("block, init, allocate or LetStmt"));
  if (name == "block" || name == "sblock") return BlockStatement();
  HONE_RETURN_IF_ERROR(Expect("("));
  const size_t mark = Mark();
  if (name == "init") {
    if (block == nullptr || block->is_function)
      return ErrorAt(at, "T.init outside of a block; expected it directly in a T.block");
    if (block->block.init) return ErrorAt(at, "a second T.init in one block");
    HONE_RETURN_IF_ERROR(Expect(")"));
    HONE_RETURN_IF_ERROR(Expect(":"));
    HONE_ASSIGN_OR_RETURN(block->block.init, Suite(nullptr));
    return Stmt();
  }
  if (name == "allocate") {
    HONE_ASSIGN_OR_RETURN(BufferSpec spec, BufferArguments(true, ")"));
    HONE_RETURN_IF_ERROR(Expect("as"));
    HONE_ASSIGN_OR_RETURN(const std::string variable, ExpectName("the buffer's name"));
    HONE_RETURN_IF_ERROR(Expect(":"));
    const Buffer buffer(variable, spec.type, std::move(spec.shape), spec.scope);
    Define(variable, {.buffer = buffer});
    HONE_ASSIGN_OR_RETURN(Stmt body, Suite(nullptr));
    RollBack(mark);
    return Stmt::Make(Alloc{buffer, std::move(body)});
  }
  if (name == "LetStmt") {
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    HONE_RETURN_IF_ERROR(Expect(")"));
    HONE_RETURN_IF_ERROR(Expect("as"));
    HONE_ASSIGN_OR_RETURN(const std::string variable, ExpectName("the variable's name"));
    HONE_RETURN_IF_ERROR(Expect(":"));
    const Var var(variable, value.e.type());
    Define(variable, {.var = var});
    HONE_ASSIGN_OR_RETURN(Stmt body, Suite(nullptr));
    RollBack(mark);
    return Stmt::Make(Let{var, value.e, std::move(body)});
  }
  return ErrorAt(at, absl::StrCat("`with T.", name, "` is not known here; expected block, init, allocate or LetStmt"));
}

}  // namespace hone
