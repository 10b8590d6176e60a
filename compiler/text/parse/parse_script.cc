// T.something(...) as a statement.
#include "absl/strings/str_cat.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {

std::string WithoutSblock(const std::string& name) {
  if (name == "sblock_alloc_buffer") return "alloc_buffer";
  return name.starts_with("sblock") ? name.substr(1) : name;
}

namespace {

// Functions that may be called for their effect, as a statement.
bool IsCall(std::string_view name) {
  if (name == "call_extern" || name == "call_pure_extern" || name == "call_intrin" || name == "call") return true;
  const IntrinsicInfo* info = FindIntrinsic(name);
  return info != nullptr && info->stands_alone;
}

}  // namespace

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
    if (TakeIf("accumulates")) {
      HONE_RETURN_IF_ERROR(Expect("="));
      const Token value = Take();
      if (value.text != "True" && value.text != "False") return ErrorAt(value, "expected True or False");
      op.accumulates = value.text == "True";
      continue;
    }
    HONE_ASSIGN_OR_RETURN(BufferRegion region, Region());
    op.operands.push_back(std::move(region));
  }
  HONE_RETURN_IF_ERROR(Expect(")"));
  return Stmt::Make(std::move(op));
}

// What T.reads and its like say about a block.
absl::Status Parser::BlockSaying(const std::string& name, BlockParts& block) {
  if (name == "reads") {
    HONE_ASSIGN_OR_RETURN(block.block.reads, Regions());
    block.has_reads = true;
    return absl::OkStatus();
  }
  if (name == "writes") {
    HONE_ASSIGN_OR_RETURN(block.block.writes, Regions());
    block.has_writes = true;
    return absl::OkStatus();
  }
  HONE_RETURN_IF_ERROR(Expect("("));
  if (name == "where") {
    const Token at = Peek();
    HONE_ASSIGN_OR_RETURN(block.predicate, BoolExpression("a predicate"));
    if (!block.predicate.type().is_scalar()) return ErrorAt(at, "a predicate of several lanes; expected one");
  } else {
    HONE_ASSIGN_OR_RETURN(Attrs attrs, AttrDict());
    block.block.annotations.insert(attrs.begin(), attrs.end());
  }
  return Expect(")");
}

absl::StatusOr<Stmt> Parser::BarrierStatement() {
  HONE_RETURN_IF_ERROR(Expect("("));
  const Token at = Peek();
  HONE_ASSIGN_OR_RETURN(const std::string scope, ExpectString("the memory that is synchronised"));
  if (scope != "shared" && scope != "shared.dyn")
    return ErrorAt(at, absl::StrCat("a barrier for \"", scope, "\"; expected \"shared\", for the threads of a block"));
  HONE_RETURN_IF_ERROR(Expect(")"));
  return MakeBarrier();
}

absl::StatusOr<Stmt> Parser::WaitGroupStatement() {
  HONE_RETURN_IF_ERROR(Expect("("));
  const Token groups_at = Peek();
  HONE_ASSIGN_OR_RETURN(const Expr groups, IntExpression("how many groups may be under way"));
  if (ConstantValue(groups).value_or(-1) < 0)
    return ErrorAt(groups_at, "the number of groups under way must be a constant from 0 on");
  HONE_RETURN_IF_ERROR(Expect(")"));
  return MakeWaitGroup(*ConstantValue(groups));
}

absl::Status Parser::FunctionAttrs() {
  HONE_RETURN_IF_ERROR(Expect("("));
  HONE_ASSIGN_OR_RETURN(function_->attrs, AttrDict());
  function_->attrs.erase("global_symbol");  // says nothing that def does not
  function_->attrs.erase("tir.noalias");    // holds for every function of ours
  return Expect(")");
}

absl::StatusOr<Stmt> Parser::ScriptStatement(BlockParts* block, std::optional<Stmt>& wrap) {
  const Token at = Peek();
  const std::string name = WithoutSblock(Peek(2).text);
  const size_t start = pos_;
  for (int i = 0; i < 3; ++i) Take();
  Stmt stmt;
  if (name == "reads" || name == "writes" || name == "where" || name == "block_attr") {
    if (block == nullptr || block->is_function)
      return ErrorAt(at, absl::StrCat("T.", name, " outside of a block; expected it directly in a T.block"));
    HONE_RETURN_IF_ERROR(BlockSaying(name, *block));
  } else if (name == "func_attr") {
    if (block == nullptr || !block->is_function)
      return ErrorAt(at, "T.func_attr inside a block; expected it at the start of the function");
    HONE_RETURN_IF_ERROR(FunctionAttrs());
  } else if (name == "attr") {
    HONE_RETURN_IF_ERROR(StatementAttr());
  } else if (name == "launch_thread") {
    HONE_ASSIGN_OR_RETURN(For launch, LaunchThread());
    if (!launch.var) return ErrorAt(at, "a launch whose variable has no name; expected `tx = T.launch_thread(...)`");
    wrap = Stmt::Make(std::move(launch));
  } else if (name == "tile_op") {
    HONE_ASSIGN_OR_RETURN(stmt, TileOpStatement());
  } else if (name == "tvm_storage_sync") {
    HONE_ASSIGN_OR_RETURN(stmt, BarrierStatement());
  } else if (name == "tvm_fill_fragment" || name == "tvm_load_matrix_sync" || name == "tvm_store_matrix_sync" ||
             name == "tvm_mma_sync") {
    HONE_ASSIGN_OR_RETURN(stmt, FragmentStatement(name));
  } else if (name == "ptx_commit_group") {
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_RETURN_IF_ERROR(Expect(")"));
    stmt = MakeCommitGroup();
  } else if (name == "ptx_wait_group") {
    HONE_ASSIGN_OR_RETURN(stmt, WaitGroupStatement());
  } else if (name == "evaluate") {
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    HONE_RETURN_IF_ERROR(Expect(")"));
    stmt = Stmt::Make(Evaluate{value.e});
  } else if (IsCall(name)) {
    pos_ = start;
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    stmt = Stmt::Make(Evaluate{value.e});
  } else {
    return ErrorAt(at, absl::StrCat("`T.", name,
                                    "` is no statement known here; expected T.reads, T.writes, T.where, T.block_attr, "
                                    "T.func_attr, T.attr, T.launch_thread, T.tile_op, T.tvm_storage_sync, "
                                    "T.ptx_commit_group, T.ptx_wait_group, T.call_extern or T.evaluate"));
  }
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  return stmt;
}

}  // namespace hone
