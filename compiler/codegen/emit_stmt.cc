// Statements: loops, branches, stores.
#include "compiler/codegen/emitter.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {

void Emitter::EmitStmt(const Stmt& stmt) {
  if (const Seq* seq = stmt.As<Seq>()) {
    for (const Stmt& s : seq->stmts) EmitStmt(s);
  } else if (const For* loop = stmt.As<For>()) {
    EmitFor(*loop);
  } else if (const Store* store = stmt.As<Store>()) {
    EmitStore(*store);
  } else if (const IfThen* branch = stmt.As<IfThen>()) {
    EmitIf(*branch);
  } else if (const While* loop = stmt.As<While>()) {
    EmitWhile(*loop);
  } else if (const Let* let = stmt.As<Let>()) {
    frame_.vars[let->var] = EmitBound(let->var, let->value);
    if (IsIndexType(let->var.type()) && NonNegative(let->value)) non_negative_.insert(let->var);
    EmitStmt(let->body);
  } else if (const Alloc* alloc = stmt.As<Alloc>()) {
    EmitAlloc(*alloc);
  } else if (const Evaluate* evaluate = stmt.As<Evaluate>()) {
    const Call* call = evaluate->value.As<Call>();
    if (call != nullptr && call->name == "prefetch") return EmitPrefetch(*call->args[0].As<Load>());
    EmitExpr(evaluate->value);
  } else if (const TileOp* op = stmt.As<TileOp>()) {
    EmitTileOp(*op);
  } else {
    HONE_UNREACHABLE() << "a block after lowering";
  }
}

void Emitter::EmitFor(const For& loop) {
  const std::optional<int64_t> extent = ConstantValue(loop.extent);
  if (extent.has_value() && *extent <= 0) return;
  if (loop.kind == ForKind::kParallel && !options_.serial && extent != 1) return EmitParallel(loop);
  const std::optional<int64_t> min = ConstantValue(loop.min);
  llvm::Value* begin = EmitEarly(loop.min);
  if (min.value_or(-1) >= 0 || NonNegative(loop.min)) non_negative_.insert(loop.var);
  if (extent == 1) {
    frame_.vars[loop.var] = begin;
    EmitStmt(loop.body);
    return;
  }
  llvm::Value* end = b_.CreateNSWAdd(begin, EmitWide(loop.extent));
  if (EmitTransposed(loop, begin, end)) return;
  EmitLoop(loop, begin, end, !extent.has_value());
}

void Emitter::EmitLoop(const For& loop, llvm::Value* begin, llvm::Value* end, bool may_be_empty) {
  EmitCounting(loop, begin, end, 1, may_be_empty, [&] { EmitStmt(loop.body); });
}

// The test is at the end, so that what does not change in the loop may move in front of it.
void Emitter::EmitCounting(const For& loop, llvm::Value* begin, llvm::Value* end, int64_t step, bool may_be_empty,
                           llvm::function_ref<void()> body_of) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* body = llvm::BasicBlock::Create(context_, loop.var.name(), frame_.function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, loop.var.name() + "_end", frame_.function);
  if (may_be_empty) {
    llvm::BasicBlock* enter = llvm::BasicBlock::Create(context_, loop.var.name() + "_enter", frame_.function, body);
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), enter, after);
    b_.SetInsertPoint(enter);
    before = enter;
  }
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2, loop.var.name());
  index->addIncoming(begin, before);
  if (loop.kind == ForKind::kParallel) non_negative_.insert(loop.var);
  frame_.vars[loop.var] = index;
  CodeRegion& region = frame_.regions.emplace_back();
  region.block = body;
  region.here.insert(index);
  region.variable = index;
  body_of();
  AdvancePointers(step);
  frame_.regions.pop_back();
  llvm::Value* next = b_.CreateNSWAdd(index, Int64(step));
  index->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, after);
  b_.SetInsertPoint(after);
}

// What it computes is known to itself alone.
void Emitter::EmitBranch(llvm::BasicBlock* block, llvm::function_ref<void()> body_of) {
  b_.SetInsertPoint(block);
  frame_.regions.emplace_back();
  body_of();
  frame_.regions.pop_back();
}

void Emitter::EmitIf(const IfThen& branch) {
  if (const std::optional<int64_t> known = ConstantValue(branch.condition)) {
    if (*known != 0) {
      EmitStmt(branch.yes);
    } else if (branch.no) {
      EmitStmt(branch.no);
    }
    return;
  }
  llvm::BasicBlock* yes = llvm::BasicBlock::Create(context_, "then", frame_.function);
  llvm::BasicBlock* no = branch.no ? llvm::BasicBlock::Create(context_, "else", frame_.function) : nullptr;
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "endif", frame_.function);
  b_.CreateCondBr(EmitExpr(branch.condition), yes, no != nullptr ? no : after);
  EmitBranch(yes, [&] { EmitStmt(branch.yes); });
  b_.CreateBr(after);
  if (no != nullptr) {
    EmitBranch(no, [&] { EmitStmt(branch.no); });
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

void Emitter::EmitWhile(const While& loop) {
  llvm::BasicBlock* test = llvm::BasicBlock::Create(context_, "while", frame_.function);
  llvm::BasicBlock* body = llvm::BasicBlock::Create(context_, "while_body", frame_.function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "while_end", frame_.function);
  b_.CreateBr(test);
  b_.SetInsertPoint(test);
  b_.CreateCondBr(EmitExpr(loop.condition), body, after);
  EmitBranch(body, [&] { EmitStmt(loop.body); });
  b_.CreateBr(test);
  b_.SetInsertPoint(after);
}

void Emitter::EmitStore(const Store& store) {
  HONE_CHECK(store.indices.size() == 1) << store.buffer.name() << ": not flattened";
  frame_.tiles.factors.clear();  // they may be of what is stored
  llvm::Value* value = EmitExpr(store.value);
  llvm::Value* mask = store.mask ? EmitExpr(store.mask) : nullptr;
  EmitMemoryStore(store.buffer, store.indices[0], value, mask, store.value.type());
}

}  // namespace hone
