// What an Evaluate does besides computing a value: barriers between threads, updates that cannot be torn apart, copies
// that go on beside what follows.
//
//   T.tvm_storage_sync("shared")         no thread of the block goes on before all of them have come here
//   T.evaluate(T.atomic_add(C[i], x))    C[i] = C[i] + x in one step, whatever other threads do; atomic_min, atomic_max
//   T.evaluate(T.async_copy(S[i], A[j]))
//                                        begins S[i] = A[j], from global to shared memory. It lands at some moment
//                                        before its thread has waited for it; until then nobody may touch S[i] or write
//                                        A[j]. A value T.if_then_else(c, A[j], 0) copies where c holds and fills
//                                        elsewhere
//   T.ptx_commit_group()                 what the thread has begun since the last one is a group
//   T.ptx_wait_group(n)                  the thread waits until all of its groups but the last n have landed
//
// The last three are cp.async, cp.async.commit_group and cp.async.wait_group of the PTX ISA (8.5, section 9.7.8.24);
// other threads see what has landed after a barrier behind the wait.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hone {

Stmt MakeBarrier();
bool IsBarrier(const Evaluate& evaluate);
bool ContainsBarrier(const Stmt& root);

Stmt MakeAtomic(BinaryOp op, Buffer buffer, std::vector<Expr> indices, Expr value);  // kAdd, kMin or kMax
// The update as a store; what one thread alone would do. nullopt when it is no atomic update.
std::optional<Store> AtomicUpdate(const Evaluate& evaluate);

Stmt MakeAsyncCopy(Buffer buffer, std::vector<Expr> indices, Expr value);
// The copy as a store; nullopt when it is no asynchronous copy.
std::optional<Store> AsyncCopy(const Evaluate& evaluate);
// Whether the value is one that can be copied: an element, or an element where a condition holds and a constant where
// not.
bool IsCopiedValue(const Expr& value);
Stmt MakeCommitGroup();
bool IsCommitGroup(const Evaluate& evaluate);
Stmt MakeWaitGroup(int64_t groups);
// How many groups may still be under way behind it; nullopt when it is no wait.
std::optional<int64_t> WaitGroup(const Evaluate& evaluate);
// What an atomic update or an asynchronous copy writes, as a store.
std::optional<Store> EffectStore(const Evaluate& evaluate);

// Buffers that are read and written under a statement.
struct TouchedBuffers {
  std::set<Buffer> reads, writes;
  bool contains(const Buffer& buffer) const { return reads.contains(buffer) || writes.contains(buffer); }
};
TouchedBuffers BuffersTouchedBy(const Stmt& body);

}  // namespace hone
