#include "compiler/codegen/emitter.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "compiler/arith/linear.h"
#include "compiler/codegen/unwritten.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "deploy/runtime/kernel_abi.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/MDBuilder.h"

namespace hone {
namespace {

// Fields of HoneCall by their offset; on every supported machine pointers have 8 bytes.
enum CallOffset : int {
  kTensors = offsetof(HoneCall, tensors),
  kDims = offsetof(HoneCall, dims),
  kScratch = offsetof(HoneCall, scratch),
  kThreadScratch = offsetof(HoneCall, thread_scratch),
  kThreadScratchStride = offsetof(HoneCall, thread_scratch_stride),
  kNumThreads = offsetof(HoneCall, num_threads),
  kParallelFor = offsetof(HoneCall, parallel_for),
  kPool = offsetof(HoneCall, pool),
};

constexpr uint64_t kTensorAlign = 64;

bool ContainsParallel(const Stmt& body) {
  bool found = false;
  ForEachStmt(body, [&](const Stmt& s) {
    if (const For* loop = s.As<For>(); loop != nullptr && loop->kind == ForKind::kParallel) found = true;
    return !found;
  });
  return found;
}

// Buffers read or written under a statement.
std::set<Buffer> UsedBuffers(const Stmt& body) {
  TouchedBuffers touched = BuffersTouchedBy(body);
  touched.reads.merge(touched.writes);
  return std::move(touched.reads);
}

// Variables used under a loop and defined outside.
std::set<Var> FreeVariables(const For& loop) {
  std::set<Var> used, defined = {loop.var};
  ForEachExpr(loop.body, [&](const Expr& e) {
    if (const VarRef* ref = e.As<VarRef>()) used.insert(ref->var);
    if (const LetExpr* let = e.As<LetExpr>()) defined.insert(let->var);
    return true;
  });
  ForEachStmt(loop.body, [&](const Stmt& s) {
    if (const For* inner = s.As<For>()) defined.insert(inner->var);
    if (const Let* let = s.As<Let>()) defined.insert(let->var);
    return true;
  });
  for (const Var& v : defined) used.erase(v);
  return used;
}

}  // namespace

void EmitKernel(const LoweredFunc& lowered, const EmitOptions& options, llvm::Module& module) {
  Emitter(lowered, options, module).Run();
}

Emitter::Emitter(const LoweredFunc& lowered, const EmitOptions& options, llvm::Module& module)
    : lowered_(lowered), options_(options), module_(module), context_(module.getContext()), b_(context_) {
  ForEachStmt(lowered.func.body, [&](const Stmt& s) {
    if (const Store* store = s.As<Store>()) written_.insert(store->buffer);
    if (const TileOp* op = s.As<TileOp>()) written_.insert(op->operands[0].buffer);
    return true;
  });
  const auto streamed = lowered.func.attrs.find(kStreamed);
  if (streamed == lowered.func.attrs.end()) return;
  for (const int64_t param : std::get<std::vector<int64_t>>(streamed->second)) {
    streamed_.insert(lowered.func.params[static_cast<size_t>(param)]);
  }
}

llvm::Function* Emitter::NewFunction(const std::string& name, llvm::FunctionType* type, bool exported) {
  llvm::Function* function = llvm::Function::Create(
      type, exported ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage, name, module_);
  if (exported) function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function->setDSOLocal(true);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("no-builtins");  // a loop that copies stays a loop: there is no memcpy to call
  function->addFnAttr("no-jump-tables", "true");
  function->addFnAttr("prefer-vector-width", "512");
  function->setAlignment(llvm::Align(64));
  return function;
}

void Emitter::Run() {
  PrepareAliasScopes();
  llvm::Type* pointer = b_.getPtrTy();
  frame_.function = NewFunction(options_.symbol, llvm::FunctionType::get(b_.getInt32Ty(), {pointer}, false), true);
  frame_.call = frame_.function->getArg(0);
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", frame_.function));
  const PrimFunc& func = lowered_.func;
  if (!func.dims.empty()) {
    llvm::Value* dims = CallField(kDims, pointer);
    for (size_t i = 0; i < func.dims.size(); ++i) {
      frame_.vars[func.dims[i]] = b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), dims, i));
      non_negative_.insert(func.dims[i]);
    }
  }
  BindBuffers(func.body);
  SetUpTiles(func.body);
  BeginCode();
  EmitStmt(func.body);
  FinishStreams();
  ReleaseTiles();
  b_.CreateRet(b_.getInt32(0));
}

void Emitter::BindBuffers(const Stmt& body) {
  const std::set<Buffer> used = UsedBuffers(body);
  llvm::Value* tensors = nullptr;
  llvm::MDNode* align = llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(Int64(kTensorAlign)));
  llvm::MDNode* empty = llvm::MDNode::get(context_, {});
  const PrimFunc& func = lowered_.func;
  for (size_t i = 0; i < func.params.size(); ++i) {
    if (used.count(func.params[i]) == 0) continue;
    if (tensors == nullptr) tensors = CallField(kTensors, b_.getPtrTy());
    llvm::LoadInst* load = b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), tensors, i));
    load->setMetadata(llvm::LLVMContext::MD_align, align);
    load->setMetadata(llvm::LLVMContext::MD_nonnull, empty);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, empty);
    load->setName(func.params[i].name());
    frame_.buffers[func.params[i]] = Describe(func.params[i], load, kTensorAlign);
  }
}

llvm::Value* Emitter::CallField(int field, llvm::Type* type) {
  llvm::LoadInst* load = b_.CreateLoad(type, b_.CreateConstGEP1_64(b_.getInt8Ty(), frame_.call, field));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  return load;
}

llvm::Value* Emitter::ThreadScratch() {
  if (frame_.thread_scratch == nullptr) {
    // In the entry block, so that it is at hand wherever in the function it is asked for.
    llvm::IRBuilder<>::InsertPointGuard guard(b_);
    llvm::BasicBlock& entry = frame_.function->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    frame_.thread_scratch = CallField(kThreadScratch, b_.getPtrTy());
  }
  return frame_.thread_scratch;
}

BufferMemory Emitter::Describe(const Buffer& buffer, llvm::Value* pointer, uint64_t align) {
  BufferMemory memory{.pointer = pointer, .align = align};
  if (const auto found = alias_.find(buffer); found != alias_.end()) {
    memory.scope = found->second.first;
    memory.noalias = found->second.second;
  }
  const auto& params = lowered_.func.params;
  memory.read_only = written_.count(buffer) == 0 && std::ranges::find(params, buffer) != params.end();
  return memory;
}

// Tensors do not alias, by the ABI; allocations do when their places in scratch overlap (one is used after the other).
void Emitter::PrepareAliasScopes() {
  struct Extent {
    Buffer buffer;
    int pool;  // 0 tensors, 1 scratch, 2 scratch of a thread
    int64_t begin, end;
    llvm::MDNode* scope = nullptr;
  };
  std::vector<Extent> extents;
  for (const Buffer& param : lowered_.func.params) extents.push_back({param, 0, 0, 0});
  for (const auto& [buffer, place] : lowered_.places) {
    const int64_t bytes = *MostElements(buffer) * buffer.type().bytes();  // at most
    extents.push_back({buffer, place.thread ? 2 : 1, place.offset, place.offset + bytes});
  }
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain(options_.symbol);
  for (Extent& e : extents) e.scope = metadata.createAnonymousAliasScope(domain, e.buffer.name());
  for (const Extent& e : extents) {
    std::vector<llvm::Metadata*> apart;
    for (const Extent& other : extents) {
      const bool overlap = other.pool == e.pool && e.pool != 0 && other.begin < e.end && e.begin < other.end;
      if (other.buffer != e.buffer && !overlap) apart.push_back(other.scope);
    }
    alias_[e.buffer] = {llvm::MDNode::get(context_, {e.scope}), llvm::MDNode::get(context_, apart)};
  }
}

void Emitter::ReturnIfNonZero(llvm::Value* code) {
  llvm::BasicBlock* failed = llvm::BasicBlock::Create(context_, "failed", frame_.function);
  llvm::BasicBlock* next = llvm::BasicBlock::Create(context_, "next", frame_.function);
  b_.CreateCondBr(b_.CreateICmpEQ(code, b_.getInt32(0)), next, failed);
  b_.SetInsertPoint(failed);
  b_.CreateRet(code);
  b_.SetInsertPoint(next);
}

// Stores past the caches come in no order with others: what tells another thread that they are done could be seen
// first.
void Emitter::FinishStreams() {
  if (frame_.streams) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

// The loop's body becomes `int32_t task(void* closure, int64_t begin, int64_t end, int32_t thread)`; the closure holds
// the HoneCall and the values of the variables that the body uses from outside.
void Emitter::EmitParallel(const For& loop) {
  const std::set<Var> free = FreeVariables(loop);
  std::vector<Var> captured;
  for (const Var& v : free) {
    if (frame_.vars.count(v) != 0) captured.push_back(v);
  }
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Value* closure;
  {
    llvm::IRBuilder<>::InsertPointGuard guard(b_);
    llvm::BasicBlock& entry = frame_.function->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    closure = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt64Ty(), captured.size() + 1));
  }
  FinishStreams();
  b_.CreateStore(frame_.call, closure);
  for (size_t i = 0; i < captured.size(); ++i) {
    b_.CreateStore(frame_.vars[captured[i]], b_.CreateConstGEP1_64(b_.getInt64Ty(), closure, i + 1));
  }
  llvm::Value* extent = EmitWide(loop.extent);
  llvm::Function* task = EmitTask(loop, captured);

  llvm::BasicBlock* alone = llvm::BasicBlock::Create(context_, "alone", frame_.function);
  llvm::BasicBlock* shared = llvm::BasicBlock::Create(context_, "shared", frame_.function);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(context_, "done", frame_.function);
  b_.CreateCondBr(b_.CreateICmpSGT(CallField(kNumThreads, b_.getInt32Ty()), b_.getInt32(1)), shared, alone);
  b_.SetInsertPoint(alone);
  llvm::Value* alone_code = b_.CreateCall(task, {closure, Int64(0), extent, b_.getInt32(0)});
  b_.CreateBr(done);
  b_.SetInsertPoint(shared);
  llvm::FunctionType* parallel_for =
      llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer, b_.getInt64Ty()}, false);
  llvm::Value* shared_code =
      b_.CreateCall(parallel_for, CallField(kParallelFor, pointer), {CallField(kPool, pointer), task, closure, extent});
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  llvm::PHINode* code = b_.CreatePHI(b_.getInt32Ty(), 2);
  code->addIncoming(alone_code, alone);
  code->addIncoming(shared_code, shared);
  ReturnIfNonZero(code);
  if (frame_.tiles.shapes.has_value()) LoadTileShapes(*frame_.tiles.shapes);  // this thread may have run a piece
}

llvm::Function* Emitter::EmitTask(const For& loop, const std::vector<Var>& captured) {
  llvm::Type *pointer = b_.getPtrTy(), *i64 = b_.getInt64Ty(), *i32 = b_.getInt32Ty();
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  Frame outer = std::exchange(frame_, Frame());
  frame_.function = NewFunction(options_.symbol + "_task" + std::to_string(tasks_++),
                                llvm::FunctionType::get(i32, {pointer, i64, i64, i32}, false), false);
  llvm::Value* closure = frame_.function->getArg(0);
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(context_, "entry", frame_.function);
  b_.SetInsertPoint(entry);
  llvm::MDNode* empty = llvm::MDNode::get(context_, {});
  llvm::LoadInst* call = b_.CreateLoad(pointer, closure);
  call->setMetadata(llvm::LLVMContext::MD_invariant_load, empty);
  frame_.call = call;
  for (size_t i = 0; i < captured.size(); ++i) {
    llvm::LoadInst* value =
        b_.CreateLoad(outer.vars.at(captured[i])->getType(), b_.CreateConstGEP1_64(i64, closure, i + 1));
    value->setMetadata(llvm::LLVMContext::MD_invariant_load, empty);
    frame_.vars[captured[i]] = value;
  }
  if (lowered_.thread_scratch_bytes > 0) {
    llvm::Value* offset =
        b_.CreateMul(b_.CreateSExt(frame_.function->getArg(3), i64), CallField(kThreadScratchStride, i64));
    frame_.thread_scratch = b_.CreateGEP(b_.getInt8Ty(), CallField(kThreadScratch, pointer), offset);
  }
  BindBuffers(loop.body);
  // Allocations around the loop: their places are the same for all threads.
  for (const Buffer& buffer : UsedBuffers(loop.body)) {
    const auto place = lowered_.places.find(buffer);
    if (place == lowered_.places.end() || place->second.thread || outer.buffers.count(buffer) == 0) continue;
    llvm::Value* at = b_.CreateConstGEP1_64(b_.getInt8Ty(), CallField(kScratch, pointer), place->second.offset);
    frame_.buffers[buffer] = Describe(buffer, at, kTensorAlign);
  }
  SetUpTiles(loop.body);
  BeginCode();
  // The call holds the range; loop.min is 0 in lowered programs.
  EmitLoop(loop, frame_.function->getArg(1), frame_.function->getArg(2), /*may_be_empty=*/true);
  FinishStreams();
  ReleaseTiles();
  b_.CreateRet(b_.getInt32(0));
  llvm::Function* task = frame_.function;
  frame_ = std::move(outer);
  return task;
}

void Emitter::EmitAlloc(const Alloc& alloc) {
  if (EmitTileAlloc(alloc)) return;
  const auto place = lowered_.places.find(alloc.buffer);
  if (place != lowered_.places.end()) {
    llvm::Value* at = AtHead(0, [&] {
      llvm::Value* base = place->second.thread ? ThreadScratch() : CallField(kScratch, b_.getPtrTy());
      return b_.CreateConstGEP1_64(b_.getInt8Ty(), base, place->second.offset);
    });
    frame_.buffers[alloc.buffer] = Describe(alloc.buffer, at, kTensorAlign);
  } else {
    HONE_CHECK(!ContainsParallel(alloc.body)) << alloc.buffer.name() << ": registers are not shared between threads";
    const std::optional<int64_t> elements = alloc.buffer.NumElements();
    HONE_CHECK(elements.has_value()) << alloc.buffer.name() << ": a symbolic size has no place in registers";
    llvm::AllocaInst* slot;
    {
      llvm::IRBuilder<>::InsertPointGuard guard(b_);
      llvm::BasicBlock& entry = frame_.function->getEntryBlock();
      b_.SetInsertPoint(&entry, entry.getFirstInsertionPt());
      const int64_t with_behind = *elements + kBehindRegisters;
      slot = b_.CreateAlloca(llvm::ArrayType::get(MemoryTypeOf(alloc.buffer.type()), with_behind));
    }
    const uint64_t bytes = static_cast<uint64_t>(*elements) * alloc.buffer.type().bytes();
    const uint64_t align = bytes >= 64 ? 64 : 16;
    slot->setAlignment(llvm::Align(align));
    slot->setName(alloc.buffer.name());
    // Anew each time around: what the last time left would often be right.
    // More than registers hold is not filled: it would be a store for every 64 bytes, in line.
    constexpr uint64_t kMostFilled = 4096;
    if (bytes <= kMostFilled) {
      llvm::Value* unwritten = b_.getInt8(UnwrittenByte(alloc.buffer, alloc.body));
      b_.CreateMemSetInline(slot, slot->getAlign(), unwritten, b_.getInt64(bytes));
    }
    frame_.buffers[alloc.buffer] = BufferMemory{.pointer = slot, .align = align};
  }
  EmitStmt(alloc.body);
}

}  // namespace hone
