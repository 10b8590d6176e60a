#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/regions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

std::optional<ForKind> LoopKind(absl::string_view function) {
  if (function == "serial") return ForKind::kSerial;
  if (function == "parallel") return ForKind::kParallel;
  if (function == "vectorized") return ForKind::kVectorized;
  if (function == "unroll" || function == "unrolled") return ForKind::kUnrolled;
  if (function == "thread_binding") return ForKind::kThreadBinding;
  return std::nullopt;
}

// The newest spelling puts an s before what has to do with blocks: sblock, sblock_attr, sblock_alloc_buffer.
std::string WithoutSblock(const std::string& name) {
  if (name == "sblock_alloc_buffer") return "alloc_buffer";
  return name.starts_with("sblock") ? name.substr(1) : name;
}

std::vector<Range> WholeOf(const Buffer& buffer) {
  std::vector<Range> ranges;
  for (const Expr& extent : buffer.shape()) ranges.push_back({IntConst(0, extent.type()), extent});
  return ranges;
}

}  // namespace

// ---- suites

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

// ---- loops and branches

absl::StatusOr<Range> Parser::LoopRange(absl::string_view function, std::optional<DType>& dtype, std::string& thread,
                                        Attrs& annotations) {
  HONE_RETURN_IF_ERROR(Expect("("));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(Expr first, IntExpression("a loop's bound"));
  Range range{IntConst(0, first.type()), first};
  while (TakeIf(",")) {
    if (At(")")) break;
    if (TakeIf("thread")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      HONE_ASSIGN_OR_RETURN(thread, ExpectString("a thread such as \"threadIdx.x\""));
    } else if (TakeIf("dtype")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      HONE_ASSIGN_OR_RETURN(dtype, TypeText("an integer type"));
      if (!dtype->is_int() || !dtype->is_scalar()) return ErrorAt(at, "a loop's variable is an integer");
    } else if (TakeIf("annotations")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      HONE_ASSIGN_OR_RETURN(annotations, AttrDict());
    } else if (Peek().kind == TokenKind::kString) {
      thread = Take().text;
    } else {
      const Token end_at = Peek();
      HONE_ASSIGN_OR_RETURN(const Expr end, IntExpression("a loop's end"));
      range.min = first;
      range.extent = ExtentOf(first, end);
      if (!range.extent) {
        HONE_ASSIGN_OR_RETURN(const Parsed length, Combine(end_at, BinaryOp::kSub, {end}, {first}));
        range.extent = length.e;
      }
    }
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  return range;
}

absl::StatusOr<Stmt> Parser::ForStatement() {
  Take();
  const size_t mark = Mark();
  const int depth = stmt_depth_;
  std::vector<std::string> names;
  do {
    HONE_ASSIGN_OR_RETURN(std::string name, ExpectName("a loop variable's name"));
    names.push_back(std::move(name));
  } while (TakeIf(","));
  HONE_RETURN_IF_ERROR(Expect("in"));
  const Token at = Peek();
  std::vector<For> loops;
  std::string function = "range";
  if (!TakeIf("range")) {
    HONE_RETURN_IF_ERROR(Expect("T"));
    HONE_RETURN_IF_ERROR(Expect("."));
    HONE_ASSIGN_OR_RETURN(function,
                          ExpectName("a kind of loop: serial, parallel, vectorized, unroll, thread_binding or grid"));
  }
  if (function == "grid") {
    HONE_RETURN_IF_ERROR(Expect("("));
    while (!At(")")) {
      if (!loops.empty()) {
        HONE_RETURN_IF_ERROR(Expect(","));
        if (At(")")) break;
      }
      HONE_ASSIGN_OR_RETURN(const Expr extent, IntExpression("a loop's extent"));
      loops.push_back(For{.min = IntConst(0, extent.type()), .extent = extent});
    }
    Take();
  } else {
    const std::optional<ForKind> kind = function == "range" ? ForKind::kSerial : LoopKind(function);
    if (!kind.has_value()) {
      return ErrorAt(at, absl::StrCat("`T.", function,
                                      "` is no kind of loop; expected serial, parallel, vectorized, unroll, "
                                      "thread_binding or grid"));
    }
    For loop;
    loop.kind = *kind;
    std::optional<DType> dtype;
    HONE_ASSIGN_OR_RETURN(const Range range, LoopRange(function, dtype, loop.thread, loop.annotations));
    loop.min = range.min;
    loop.extent = range.extent;
    if (dtype.has_value()) loop.var = Var(names[0], *dtype);
    loops.push_back(std::move(loop));
  }
  if (loops.size() != names.size()) {
    return ErrorAt(at, absl::StrCat("found ", loops.size(), " extents for ", names.size(), " variables"));
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    if (!loops[i].var) loops[i].var = Var(names[i], loops[i].extent.type());
    Define(names[i], {.var = loops[i].var, .loop = Range{loops[i].min, loops[i].extent}});
  }
  stmt_depth_ += static_cast<int>(loops.size());
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(Stmt body, Suite(nullptr));
  for (size_t i = loops.size(); i-- > 0;) {
    loops[i].body = std::move(body);
    body = Stmt::Make(std::move(loops[i]));
  }
  RollBack(mark);
  stmt_depth_ = depth;
  return body;
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

// ---- with

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

absl::StatusOr<Stmt> Parser::BlockStatement() {
  BlockParts parts;
  HONE_RETURN_IF_ERROR(Expect("("));
  if (!At(")")) {
    HONE_ASSIGN_OR_RETURN(parts.block.name, ExpectString("the block's name"));
    TakeIf(",");
    if (TakeIf("no_realize")) {  // a block that is its own realization, in the newest spelling
      HONE_RETURN_IF_ERROR(Expect("="));
      Take();
    }
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  HONE_RETURN_IF_ERROR(Expect(":"));
  HONE_ASSIGN_OR_RETURN(parts.block.body, Suite(&parts));
  const bool is_root = parts.block.name == "root" && parts.block.iters.empty();
  if (!is_root && !(parts.has_reads && parts.has_writes)) {
    AccessedRegions derived = DeriveRegions(parts.block);
    if (!parts.has_reads) parts.block.reads = std::move(derived.reads);
    if (!parts.has_writes) parts.block.writes = std::move(derived.writes);
  }
  return Stmt::Make(BlockRealize{std::move(parts.values), parts.predicate, std::move(parts.block)});
}

absl::Status Parser::AxisStatement(BlockParts* block, const std::vector<std::string>& names) {
  const Token at = Peek();
  if (block == nullptr || block->is_function)
    return ErrorAt(at, "T.axis outside of a block; expected it directly in a T.block");
  HONE_RETURN_IF_ERROR(Expect("axis"));
  HONE_RETURN_IF_ERROR(Expect("."));
  HONE_ASSIGN_OR_RETURN(const std::string kind, ExpectName("spatial, reduce, opaque or remap"));
  HONE_RETURN_IF_ERROR(Expect("("));
  const auto add = [&](const std::string& name, IterKind k, Range domain, DType type, Expr value) {
    const Var var(name, type);
    block->block.iters.push_back({var, std::move(domain), k});
    block->values.push_back(std::move(value));
    Define(name, {.var = var});
  };
  if (kind == "remap") {
    HONE_ASSIGN_OR_RETURN(const std::string kinds, ExpectString("kinds such as \"SSR\""));
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_RETURN_IF_ERROR(Expect("["));
    std::vector<std::pair<Var, Range>> loops;
    while (!At("]")) {
      if (!loops.empty()) {
        HONE_RETURN_IF_ERROR(Expect(","));
        if (At("]")) break;
      }
      const Token loop_at = Peek();
      HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a loop's variable"));
      const Symbol* symbol = Find(name);
      if (symbol == nullptr || !symbol->loop.has_value())
        return ErrorAt(loop_at, absl::StrCat("`", name, "` is no loop's variable"));
      loops.emplace_back(symbol->var, *symbol->loop);
    }
    Take();
    TakeIf(",");
    HONE_RETURN_IF_ERROR(Expect(")"));
    if (kinds.size() != names.size() || loops.size() != names.size()) {
      return ErrorAt(at, absl::StrCat("found ", names.size(), " variables, ", kinds.size(), " kinds and ", loops.size(),
                                      " loops; expected as many of each"));
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (kinds[i] != 'S' && kinds[i] != 'R') return ErrorAt(at, "a kind in remap is S (spatial) or R (reduce)");
      add(names[i], kinds[i] == 'S' ? IterKind::kSpatial : IterKind::kReduce, loops[i].second, loops[i].first.type(),
          loops[i].first);
    }
    return absl::OkStatus();
  }
  IterKind iter = IterKind::kOpaque;
  if (kind == "spatial" || kind == "S") {
    iter = IterKind::kSpatial;
  } else if (kind == "reduce" || kind == "R") {
    iter = IterKind::kReduce;
  } else if (kind != "opaque" && kind != "scan") {
    return ErrorAt(at, absl::StrCat("`T.axis.", kind, "` is not known; expected spatial, reduce, opaque or remap"));
  }
  if (names.size() != 1) return ErrorAt(at, absl::StrCat("T.axis.", kind, " gives one variable; found ", names.size()));
  Range domain;
  if (TakeIf("(") || At("[")) {
    const bool square = TakeIf("[");
    const Token end_at = Peek();
    HONE_ASSIGN_OR_RETURN(domain.min, IntExpression("the start of a domain"));
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(const Expr end, IntExpression("the end of a domain"));
    HONE_RETURN_IF_ERROR(Expect(square ? "]" : ")"));
    domain.extent = ExtentOf(domain.min, end);
    if (!domain.extent) {
      HONE_ASSIGN_OR_RETURN(const Parsed length, Combine(end_at, BinaryOp::kSub, {end}, {domain.min}));
      domain.extent = length.e;
    }
  } else {
    HONE_ASSIGN_OR_RETURN(domain.extent, IntExpression("the extent of a domain"));
    domain.min = IntConst(0, domain.extent.type());
  }
  HONE_RETURN_IF_ERROR(Expect(","));
  const Token value_at = Peek();
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  if (!value.e.type().is_int() || !value.e.type().is_scalar()) {
    return ErrorAt(value_at, absl::StrCat("a binding of type ", ToText(value.e.type()), "; expected an integer"));
  }
  DType type = domain.extent.type();
  if (TakeIf(",") && TakeIf("dtype")) {
    HONE_RETURN_IF_ERROR(Expect("="));
    HONE_ASSIGN_OR_RETURN(type, TypeText("an integer type"));
    if (!type.is_int() || !type.is_scalar()) return ErrorAt(value_at, "a block's variable is an integer");
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  add(names[0], iter, std::move(domain), type, value.e);
  return absl::OkStatus();
}

// ---- assignments

absl::StatusOr<Stmt> Parser::StoreStatement(const Token& at, const Symbol& target) {
  const Buffer buffer = target.buffer;
  Store store{buffer, {}, Expr(), Expr()};
  IndexList list;
  Parsed value;
  Token value_at;
  std::optional<BinaryOp> update;
  if (TakeIf("[")) {
    HONE_ASSIGN_OR_RETURN(list, Indices(at, buffer));
    if (At("+=")) update = BinaryOp::kAdd;
    if (At("-=")) update = BinaryOp::kSub;
    if (At("*=")) update = BinaryOp::kMul;
    if (update.has_value()) {
      value_at = Take();
    } else {
      HONE_RETURN_IF_ERROR(Expect("="));
    }
    if (!update.has_value()) value_at = Peek();
    HONE_ASSIGN_OR_RETURN(value, Expression());
  } else {
    Take();
    if (!TakeIf("vstore")) return Unexpected(absl::StrCat("`[` or `.vstore(` after buffer `", buffer.name(), "`"));
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_RETURN_IF_ERROR(Expect("["));
    HONE_ASSIGN_OR_RETURN(list, Indices(at, buffer));
    HONE_RETURN_IF_ERROR(Expect(","));
    value_at = Peek();
    HONE_ASSIGN_OR_RETURN(value, Expression());
    if (TakeIf(",")) HONE_RETURN_IF_ERROR(Mask(list));
    HONE_RETURN_IF_ERROR(Expect(")"));
  }
  HONE_ASSIGN_OR_RETURN(const DType type, AccessType(at, buffer, list));
  if (update.has_value()) {
    const Expr old = Expr::Make(Load{buffer, list.indices, Expr()}, type);
    HONE_ASSIGN_OR_RETURN(value, Combine(value_at, *update, {old, list.depth + 1}, std::move(value)));
  }
  HONE_ASSIGN_OR_RETURN(value, Coerce(value_at, std::move(value), type, "a value to store"));
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  return Stmt::Make(Store{buffer, std::move(list.indices), value.e, list.mask});
}

absl::StatusOr<Stmt> Parser::AssignStatement(BlockParts* block, std::optional<Stmt>& wrap) {
  const Token at = Peek();
  std::vector<std::string> names = {Take().text};
  if (At("[") || At(".")) {
    const Symbol* symbol = Find(names[0]);
    if (symbol == nullptr || !symbol->buffer)
      return ErrorAt(at, absl::StrCat("`", names[0], "` is no buffer defined here"));
    return StoreStatement(at, Symbol(*symbol));
  }
  while (TakeIf(",")) {
    if (At("=")) break;
    HONE_ASSIGN_OR_RETURN(std::string name, ExpectName("a variable's name"));
    names.push_back(std::move(name));
  }
  if (TakeIf(":")) {  // x: T.int32 = value
    HONE_RETURN_IF_ERROR(Expect("T"));
    HONE_RETURN_IF_ERROR(Expect("."));
    const Token type_at = Peek();
    HONE_ASSIGN_OR_RETURN(const std::string text, ExpectName("a type"));
    const std::optional<DType> type = ParseDType(text);
    if (!type.has_value() || type->lanes > kMaxLanes)
      return ErrorAt(type_at, absl::StrCat("`T.", text, "` is no type"));
    HONE_RETURN_IF_ERROR(Expect("="));
    HONE_ASSIGN_OR_RETURN(Parsed value, Expression());
    HONE_ASSIGN_OR_RETURN(value, Coerce(type_at, std::move(value), *type, "a value"));
    HONE_RETURN_IF_ERROR(ExpectEndOfLine());
    const Var var(names[0], *type);
    Define(names[0], {.var = var});
    wrap = Stmt::Make(Let{var, value.e, Stmt()});
    return Stmt();
  }
  HONE_RETURN_IF_ERROR(Expect("="));
  const bool is_script = At("T") && Peek(1).text == ".";
  const std::string function = is_script ? WithoutSblock(Peek(2).text) : "";
  if (function == "axis") {
    Take();
    Take();
    HONE_RETURN_IF_ERROR(AxisStatement(block, names));
    HONE_RETURN_IF_ERROR(ExpectEndOfLine());
    return Stmt();
  }
  if (names.size() != 1) return ErrorAt(at, "found several names; expected one, except for T.axis.remap");
  const std::string name = names[0];
  if (function == "match_buffer") {
    HONE_RETURN_IF_ERROR(MatchStatement(block, name));
    return Stmt();
  }
  if (function == "alloc_buffer" || function == "allocate") {
    for (int i = 0; i < 3; ++i) Take();
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(BufferSpec spec, BufferArguments(true, ")"));
    HONE_RETURN_IF_ERROR(ExpectEndOfLine());
    const Buffer buffer(name, spec.type, std::move(spec.shape), spec.scope);
    Define(name, {.buffer = buffer});
    if (function == "allocate") {
      wrap = Stmt::Make(Alloc{buffer, Stmt()});
    } else if (block == nullptr) {
      return ErrorAt(at,
                     "T.alloc_buffer outside of a block; expected it directly in a T.block or function, or T.allocate");
    } else {
      block->block.allocs.push_back(buffer);
    }
    return Stmt();
  }
  const bool empty_call = is_script && Peek(3).text == "(" && (Peek(4).text == ")" || function == "var");
  if (empty_call && block != nullptr && block->is_function) {  // n = T.int32(): a symbolic size
    for (int i = 0; i < 4; ++i) Take();
    const std::optional<DType> type = function == "var" ? ParseDType(Take().text) : ParseDType(function);
    if (!type.has_value() || !type->is_int() || !type->is_scalar())
      return ErrorAt(at, "a symbolic size is a T.int32() or T.int64()");
    HONE_RETURN_IF_ERROR(Expect(")"));
    HONE_RETURN_IF_ERROR(ExpectEndOfLine());
    const Var dim(name, *type);
    function_->dims.push_back(dim);
    Define(name, {.var = dim});
    return Stmt();
  }
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  const Var var(name, value.e.type());
  Define(name, {.var = var});
  wrap = Stmt::Make(Let{var, value.e, Stmt()});
  return Stmt();
}

// `A = T.match_buffer(a, (128, 128), "float32")` of a parameter, or `S = T.match_buffer(A[0:4, 0:4], (4, 4),
// "float32")`.
absl::Status Parser::MatchStatement(BlockParts* block, const std::string& name) {
  const Token at = Peek();
  for (int i = 0; i < 3; ++i) Take();
  HONE_RETURN_IF_ERROR(Expect("("));
  const Symbol* source = AtName() ? Find(Peek().text) : nullptr;
  if (source == nullptr) return Unexpected("a handle, or a part of a buffer");
  if (source->handle >= 0) {
    const size_t handle = static_cast<size_t>(source->handle);
    if (block == nullptr || !block->is_function) return ErrorAt(at, "a handle is matched at the start of its function");
    Take();
    HONE_RETURN_IF_ERROR(Expect(","));
    HONE_ASSIGN_OR_RETURN(BufferSpec spec, BufferArguments(true, ")"));
    if (params_[handle].has_value()) return ErrorAt(at, "this handle is matched already");
    const Buffer buffer(name, spec.type, std::move(spec.shape), spec.scope);
    params_[handle] = buffer;
    Define(name, {.buffer = buffer});
    return ExpectEndOfLine();
  }
  if (block == nullptr || block->is_function)
    return ErrorAt(at, "T.match_buffer of a part outside of a block; expected it directly in a T.block");
  HONE_ASSIGN_OR_RETURN(BufferRegion region, Region());
  BufferSpec spec;
  spec.type = region.buffer.type();
  spec.scope = region.buffer.scope();
  if (TakeIf(",")) {
    HONE_ASSIGN_OR_RETURN(spec, BufferArguments(true, ")"));
  } else {
    HONE_RETURN_IF_ERROR(Expect(")"));
    for (const Range& range : region.region) spec.shape.push_back(range.extent);
  }
  const Buffer buffer(name, spec.type, std::move(spec.shape), spec.scope);
  block->block.matches.push_back({buffer, std::move(region)});
  Define(name, {.buffer = buffer});
  return ExpectEndOfLine();
}

// Shape, type and the rest of what describes a buffer, up to and with `closing`.
absl::StatusOr<Parser::BufferSpec> Parser::BufferArguments(bool shape_first, absl::string_view closing) {
  BufferSpec spec;
  bool has_shape = false;
  int position = 0;
  const auto dimension = [&]() -> absl::Status {
    const Token at = Peek();
    if (at.kind == TokenKind::kString) {  // "n": a symbolic size by its name
      Take();
      const Symbol* known = Find(at.text);
      if (known != nullptr && !known->var) return ErrorAt(at, absl::StrCat("\"", at.text, "\" is no symbolic size"));
      if (known == nullptr) {
        if (function_ == nullptr) return ErrorAt(at, "a symbolic size outside of a function");
        const Var dim(at.text, kInt64);
        function_->dims.push_back(dim);
        Define(at.text, {.var = dim});
        known = Find(at.text);
      }
      spec.shape.push_back(known->var);
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(Expr extent, IntExpression("a dimension"));
    if (const std::optional<int64_t> n = ConstantValue(extent); n.has_value() && *n < 0) {
      return ErrorAt(at, absl::StrCat("a dimension of ", *n, "; expected 0 or more"));
    }
    spec.shape.push_back(std::move(extent));
    return absl::OkStatus();
  };
  const auto shape = [&]() -> absl::Status {
    has_shape = true;
    const bool round = At("("), square = At("[");
    if (!round && !square) return dimension();
    Take();
    const absl::string_view end = round ? ")" : "]";
    while (!At(end)) {
      if (!spec.shape.empty()) {
        HONE_RETURN_IF_ERROR(Expect(","));
        if (At(end)) break;
      }
      if (spec.shape.size() >= 64) return Unexpected("at most 64 dimensions");
      HONE_RETURN_IF_ERROR(dimension());
    }
    return Expect(end);
  };
  const auto scope = [&]() -> absl::Status {
    const Token at = Peek();
    HONE_ASSIGN_OR_RETURN(const std::string text, ExpectString("a scope"));
    const std::optional<Scope> parsed = ParseScope(text);
    if (!parsed.has_value()) {
      return ErrorAt(at,
                     absl::StrCat("\"", text.substr(0, 40),
                                  "\" is no scope; expected \"global\", \"local\", \"local.thread\" or \"shared\""));
    }
    spec.scope = *parsed;
    return absl::OkStatus();
  };
  while (!At(closing)) {
    if (position > 0) {
      HONE_RETURN_IF_ERROR(Expect(","));
      if (At(closing)) break;
    }
    ++position;
    const Token at = Peek();
    const bool keyword = AtName() && Peek(1).text == "=" && Peek(1).kind == TokenKind::kPunct;
    const std::string key = keyword         ? at.text
                            : position == 1 ? "shape"
                            : position == 2 ? "dtype"
                            : position == 3 ? "scope"
                                            : "";
    if (keyword) {
      Take();
      Take();
    }
    if (key == "shape") {
      HONE_RETURN_IF_ERROR(shape());
    } else if (key == "dtype") {
      HONE_ASSIGN_OR_RETURN(spec.type, TypeText("a type"));
    } else if (key == "scope") {
      HONE_RETURN_IF_ERROR(scope());
    } else if (key == "align" || key == "offset_factor" || key == "annotations" || key == "buffer_type" ||
               key == "data_alignment") {
      HONE_RETURN_IF_ERROR(AttrValue().status());
    } else {
      return ErrorAt(at, absl::StrCat("a buffer's `", key.empty() ? at.text : key,
                                      "` is not supported: buffers are contiguous; expected shape, dtype or scope"));
    }
  }
  if (!has_shape && shape_first) return Unexpected("a shape such as (128, 64)");
  HONE_RETURN_IF_ERROR(Expect(closing));
  return spec;
}

// ---- T.something(...) as a statement

absl::StatusOr<BufferRegion> Parser::Region() {
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string name, ExpectName("a part of a buffer, such as A[vi, 0:16]"));
  const Symbol* symbol = Find(name);
  if (symbol == nullptr || !symbol->buffer) return ErrorAt(at, absl::StrCat("`", name, "` is no buffer defined here"));
  const Buffer buffer = symbol->buffer;
  if (!TakeIf("[")) return BufferRegion{buffer, WholeOf(buffer)};
  HONE_ASSIGN_OR_RETURN(std::vector<Subscript> parts, Subscripts(at, buffer));
  BufferRegion region{buffer, {}};
  for (Subscript& part : parts) {
    if (!part.min.type().is_scalar()) return ErrorAt(at, "a region of vectors; expected scalars and slices");
    if (!part.extent) part.extent = IntConst(1, part.min.type());
    region.region.push_back({std::move(part.min), std::move(part.extent)});
  }
  return region;
}

absl::StatusOr<std::vector<BufferRegion>> Parser::Regions() {
  std::vector<BufferRegion> regions;
  HONE_RETURN_IF_ERROR(Expect("("));
  const bool list = TakeIf("[");
  const absl::string_view closing = list ? "]" : ")";
  while (!At(closing)) {
    if (!regions.empty()) {
      HONE_RETURN_IF_ERROR(Expect(","));
      if (At(closing)) break;
    }
    HONE_ASSIGN_OR_RETURN(BufferRegion region, Region());
    regions.push_back(std::move(region));
  }
  Take();
  if (list) HONE_RETURN_IF_ERROR(Expect(")"));
  return regions;
}

absl::StatusOr<Stmt> Parser::TileOpStatement() {
  TileOp op;
  HONE_RETURN_IF_ERROR(Expect("("));
  HONE_ASSIGN_OR_RETURN(op.intrinsic, ExpectString("the intrinsic's name"));
  while (TakeIf(",")) {
    if (TakeIf("params")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      HONE_ASSIGN_OR_RETURN(op.params, AttrDict());
      continue;
    }
    HONE_ASSIGN_OR_RETURN(BufferRegion region, Region());
    op.operands.push_back(std::move(region));
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  return Stmt::Make(std::move(op));
}

absl::StatusOr<Stmt> Parser::ScriptStatement(BlockParts* block) {
  const Token at = Peek();
  const std::string name = WithoutSblock(Peek(2).text);
  const bool in_block = block != nullptr && !block->is_function;
  for (int i = 0; i < 3; ++i) Take();
  Stmt stmt;
  if (name == "reads" || name == "writes" || name == "where" || name == "block_attr") {
    if (!in_block)
      return ErrorAt(at, absl::StrCat("T.", name, " outside of a block; expected it directly in a T.block"));
  }
  if (name == "reads") {
    HONE_ASSIGN_OR_RETURN(block->block.reads, Regions());
    block->has_reads = true;
  } else if (name == "writes") {
    HONE_ASSIGN_OR_RETURN(block->block.writes, Regions());
    block->has_writes = true;
  } else if (name == "where") {
    HONE_RETURN_IF_ERROR(Expect("("));
    const Token condition_at = Peek();
    HONE_ASSIGN_OR_RETURN(block->predicate, BoolExpression("a predicate"));
    if (!block->predicate.type().is_scalar())
      return ErrorAt(condition_at, "a predicate of several lanes; expected one");
    HONE_RETURN_IF_ERROR(Expect(")"));
  } else if (name == "block_attr") {
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(Attrs attrs, AttrDict());
    HONE_RETURN_IF_ERROR(Expect(")"));
    block->block.annotations.insert(attrs.begin(), attrs.end());
  } else if (name == "func_attr") {
    if (block == nullptr || !block->is_function)
      return ErrorAt(at, "T.func_attr inside a block; expected it at the start of the function");
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(function_->attrs, AttrDict());
    HONE_RETURN_IF_ERROR(Expect(")"));
    function_->attrs.erase("global_symbol");  // says nothing that def does not
    function_->attrs.erase("tir.noalias");    // holds for every function of ours
  } else if (name == "tile_op") {
    HONE_ASSIGN_OR_RETURN(stmt, TileOpStatement());
  } else if (name == "evaluate") {
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    HONE_RETURN_IF_ERROR(Expect(")"));
    stmt = Stmt::Make(Evaluate{value.e});
  } else {
    return ErrorAt(at, absl::StrCat("`T.", name,
                                    "` is no statement known here; expected T.reads, T.writes, T.where, T.block_attr, "
                                    "T.func_attr, T.tile_op or T.evaluate"));
  }
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  return stmt;
}

// ---- attributes

absl::StatusOr<Attrs> Parser::AttrDict() {
  Attrs attrs;
  HONE_RETURN_IF_ERROR(Expect("{"));
  while (!At("}")) {
    HONE_ASSIGN_OR_RETURN(std::string key, ExpectString("an attribute's name"));
    HONE_RETURN_IF_ERROR(Expect(":"));
    HONE_ASSIGN_OR_RETURN(std::optional<Attr> value, AttrValue());
    if (value.has_value()) attrs.insert_or_assign(std::move(key), *std::move(value));
    if (!At("}")) HONE_RETURN_IF_ERROR(Expect(","));
  }
  Take();
  return attrs;
}

// A number, text, or list of one of them; nothing for None and for what describes a target.
absl::StatusOr<std::optional<Attr>> Parser::AttrValue() {
  const Token at = Peek();
  if (at.kind == TokenKind::kString) return Attr(Take().text);
  if (TakeIf("None")) return std::nullopt;
  if (At("[") || At("(")) {
    const absl::string_view closing = At("[") ? "]" : ")";
    Take();
    std::vector<int64_t> numbers;
    std::vector<std::string> texts;
    while (!At(closing)) {
      const Token element = Peek();
      if (element.kind == TokenKind::kString) {
        texts.push_back(Take().text);
      } else {
        HONE_ASSIGN_OR_RETURN(const Expr e, IntExpression("an element of a list"));
        const std::optional<int64_t> n = ConstantValue(e);
        if (!n.has_value()) return ErrorAt(element, "an element of a list that is no constant");
        numbers.push_back(*n);
      }
      if (!numbers.empty() && !texts.empty())
        return ErrorAt(element, "a list of numbers and texts; expected one of them");
      if (!At(closing)) HONE_RETURN_IF_ERROR(Expect(","));
    }
    Take();
    if (!texts.empty()) return Attr(std::move(texts));
    return Attr(std::move(numbers));
  }
  if (At("T") && Peek(1).text == "." && (Peek(2).text == "strings" || Peek(2).text == "target")) {
    const bool strings = Peek(2).text == "strings";
    for (int i = 0; i < 3; ++i) Take();
    HONE_RETURN_IF_ERROR(Expect("("));
    if (!strings) {
      for (int depth = 1; depth > 0;) {
        if (Peek().kind == TokenKind::kEnd) return Unexpected("`)`");
        const Token token = Take();
        if (token.kind == TokenKind::kPunct && token.text == "(") ++depth;
        if (token.kind == TokenKind::kPunct && token.text == ")") --depth;
      }
      return std::nullopt;
    }
    HONE_RETURN_IF_ERROR(Expect(")"));
    return Attr(std::vector<std::string>());
  }
  // Plain decimals are doubles here, not float32.
  const bool negative = At("-") && Peek(1).kind == TokenKind::kFloat;
  if (negative || at.kind == TokenKind::kFloat) {
    if (negative) Take();
    const double value = std::strtod(Take().text.c_str(), nullptr);
    return Attr(negative ? -value : value);
  }
  HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
  if (const IntImm* n = value.e.As<IntImm>()) return Attr(n->value);
  if (const FloatImm* n = value.e.As<FloatImm>()) return Attr(n->value);
  return ErrorAt(at, "an attribute that is no constant; expected a number, a text or a list");
}

}  // namespace hone
