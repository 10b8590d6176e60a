// Suites, branches, and which statement a line begins.
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {
namespace {

// An allocation, let or loop around this body.
Stmt AroundBody(const Stmt& scope, Stmt body) {
  if (const Let* let = scope.As<Let>()) return Stmt::Make(Let{let->var, let->value, std::move(body)});
  if (const Alloc* alloc = scope.As<Alloc>()) return Stmt::Make(Alloc{alloc->buffer, std::move(body)});
  For loop = *scope.As<For>();
  loop.body = std::move(body);
  return Stmt::Make(std::move(loop));
}

// Statements of the language that Hone's programs do not have, with what to write instead.
struct Unsupported {
  absl::string_view keyword, remedy;
};
constexpr Unsupported kUnsupported[] = {
    {"assert", "sizes are checked when a kernel is called; leave it out"},
    {"return", "what a function computes is written to its last parameters; leave it out"},
    {"break", "only its condition ends a loop; put the reason in the condition of a `while`, or write an `if`"},
    {"continue", "only its condition ends a loop; write an `if` around the rest of the loop"},
};

}  // namespace

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
  struct Open {  // a flat allocation, let or launch, and where its body begins
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
    stmts.push_back(AroundBody(open.back().scope, std::move(body)));
    open.pop_back();
  }
  return MakeSeq(std::move(stmts));
}

absl::StatusOr<Stmt> Parser::Statement(BlockParts* block, std::optional<Stmt>& wrap) {
  if (At("for")) return ForStatement();
  if (At("with")) return WithStatement(block);
  if (At("if")) return IfStatement();
  if (At("while")) return WhileStatement();
  if (At("pass")) {
    Take();
    HONE_RETURN_IF_ERROR(ExpectEndOfLine());
    return MakeSeq({});
  }
  if (At("T") && Peek(1).text == ".") return ScriptStatement(block, wrap);
  for (const Unsupported& statement : kUnsupported) {
    if (At(statement.keyword))
      return ErrorAt(Peek(), absl::StrCat("`", statement.keyword, "` is not supported: ", statement.remedy));
  }
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

absl::StatusOr<Stmt> Parser::WhileStatement() {
  Take();
  While loop;
  HONE_ASSIGN_OR_RETURN(loop.condition, BoolExpression("a condition"));
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(loop.body, Suite(nullptr));
  return Stmt::Make(std::move(loop));
}

absl::StatusOr<Stmt> Parser::WithStatement(BlockParts* block) {
  Take();
  HONE_RETURN_IF_ERROR(Expect("T"));
  HONE_RETURN_IF_ERROR(Expect("."));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("block, init, allocate, launch_thread or LetStmt"));
  if (name == "block" || name == "sblock") return BlockStatement(name == "sblock");
  if (name == "init") {
    HONE_RETURN_IF_ERROR(InitStatement(at, block));
    return Stmt();
  }
  if (name == "attr") {
    HONE_RETURN_IF_ERROR(StatementAttr());
    HONE_RETURN_IF_ERROR(Expect(":"));
    return Suite(nullptr);
  }
  const size_t mark = Mark();
  HONE_ASSIGN_OR_RETURN(const Stmt scope, WithScope(at, name));
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(Stmt body, Suite(nullptr));
  RollBack(mark);
  return scope ? AroundBody(scope, std::move(body)) : body;
}

absl::Status Parser::InitStatement(const Token& at, BlockParts* block) {
  if (block == nullptr || block->is_function)
    return ErrorAt(at, "T.init outside of a block; expected it directly in a T.block");
  if (block->block.init) return ErrorAt(at, "a second T.init in one block");
  HONE_RETURN_IF_ERROR(Expect("("));
  HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(block->block.init, Suite(nullptr));
  return absl::OkStatus();
}

// Up to the colon: what is put around the suite. Absent when the scope only gives a name to memory that there is.
absl::StatusOr<Stmt> Parser::WithScope(const Token& at, const std::string& name) {
  if (name == "launch_thread") {
    HONE_ASSIGN_OR_RETURN(For launch, LaunchThread());
    if (TakeIf("as")) {
      HONE_ASSIGN_OR_RETURN(const std::string variable, ExpectName("the variable's name"));
      EnterLaunch(launch, variable);
    }
    if (!launch.var) return Unexpected("`as` and a variable's name");
    return Stmt::Make(std::move(launch));
  }
  if (name == "allocate" || name == "decl_buffer") {
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(BufferSpec spec, BufferArguments(")"));
    HONE_RETURN_IF_ERROR(Expect("as"));
    HONE_ASSIGN_OR_RETURN(const std::string variable, ExpectName("the buffer's name"));
    if (!spec.data.empty()) {
      HONE_RETURN_IF_ERROR(DefineView(at, variable, std::move(spec)));
      return Stmt();
    }
    HONE_ASSIGN_OR_RETURN(const Buffer buffer, NewBuffer(variable, std::move(spec)));
    return Stmt::Make(Alloc{buffer, Stmt()});
  }
  if (name == "LetStmt") {
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    HONE_RETURN_IF_ERROR(Expect(")"));
    HONE_RETURN_IF_ERROR(Expect("as"));
    HONE_ASSIGN_OR_RETURN(const std::string variable, ExpectName("the variable's name"));
    const Var var(variable, value.e.type());
    Define(variable, {.var = var});
    return Stmt::Make(Let{var, value.e, Stmt()});
  }
  return ErrorAt(at, absl::StrCat("`with T.", name,
                                  "` is not known here; expected block, init, allocate, decl_buffer, launch_thread, "
                                  "attr or LetStmt"));
}

}  // namespace hone
