// T.something(...) as a statement.
#include "absl/strings/str_cat.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/parser.h"
#include "compiler/support/status_macros.h"

namespace hone {

std::string WithoutSblock(const std::string& name) {
  if (name == "sblock_alloc_buffer") return "alloc_buffer";
  return name.starts_with("sblock") ? name.substr(1) : name;
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
  } else if (name == "tvm_storage_sync") {
    HONE_RETURN_IF_ERROR(Expect("("));
    const Token scope_at = Peek();
    HONE_ASSIGN_OR_RETURN(const std::string scope, ExpectString("the memory that is synchronised"));
    if (scope != "shared")
      return ErrorAt(scope_at,
                     absl::StrCat("a barrier for \"", scope, "\"; expected \"shared\", for the threads of a block"));
    HONE_RETURN_IF_ERROR(Expect(")"));
    stmt = MakeBarrier();
  } else if (name == "ptx_commit_group") {
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_RETURN_IF_ERROR(Expect(")"));
    stmt = MakeCommitGroup();
  } else if (name == "ptx_wait_group") {
    HONE_RETURN_IF_ERROR(Expect("("));
    const Token groups_at = Peek();
    HONE_ASSIGN_OR_RETURN(const Expr groups, IntExpression("how many groups may be under way"));
    if (ConstantValue(groups).value_or(-1) < 0)
      return ErrorAt(groups_at, "the number of groups under way must be a constant from 0 on");
    HONE_RETURN_IF_ERROR(Expect(")"));
    stmt = MakeWaitGroup(*ConstantValue(groups));
  } else if (name == "evaluate") {
    HONE_RETURN_IF_ERROR(Expect("("));
    HONE_ASSIGN_OR_RETURN(const Parsed value, Expression());
    HONE_RETURN_IF_ERROR(Expect(")"));
    stmt = Stmt::Make(Evaluate{value.e});
  } else {
    return ErrorAt(at, absl::StrCat("`T.", name,
                                    "` is no statement known here; expected T.reads, T.writes, T.where, T.block_attr, "
                                    "T.func_attr, T.tile_op, T.tvm_storage_sync, T.ptx_commit_group, "
                                    "T.ptx_wait_group or T.evaluate"));
  }
  HONE_RETURN_IF_ERROR(ExpectEndOfLine());
  return stmt;
}

}  // namespace hone
