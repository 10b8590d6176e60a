// What an Evaluate does besides computing a value: barriers between threads, and updates that cannot be torn apart.
//
//   T.tvm_storage_sync("shared")         no thread of the block goes on before all of them have come here
//   T.evaluate(T.atomic_add(C[i], x))    C[i] = C[i] + x in one step, whatever other threads do; atomic_min, atomic_max
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hone {

Stmt MakeBarrier();
bool IsBarrier(const Evaluate& evaluate);
bool ContainsBarrier(const Stmt& root);

Stmt MakeAtomic(BinaryOp op, Buffer buffer, std::vector<Expr> indices, Expr value);  // kAdd, kMin or kMax
// The update as a store; what one thread alone would do. nullopt when it is no atomic update.
std::optional<Store> AtomicUpdate(const Evaluate& evaluate);

}  // namespace hone
