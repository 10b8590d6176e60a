#include "compiler/ir/effects.h"

#include <utility>

#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

constexpr char kBarrier[] = "tvm_storage_sync";

struct Atomic {
  const char* name;
  BinaryOp op;
};
constexpr Atomic kAtomics[] = {
    {"atomic_add", BinaryOp::kAdd}, {"atomic_min", BinaryOp::kMin}, {"atomic_max", BinaryOp::kMax}};

}  // namespace

Stmt MakeBarrier() { return Stmt::Make(Evaluate{Expr::Make(Call{kBarrier, {IntConst(0)}}, kInt32)}); }

bool IsBarrier(const Evaluate& evaluate) {
  const Call* call = evaluate.value.As<Call>();
  return call != nullptr && call->name == kBarrier;
}

bool ContainsBarrier(const Stmt& root) {
  bool found = false;
  ForEachStmt(root, [&](const Stmt& stmt) {
    const Evaluate* evaluate = stmt.As<Evaluate>();
    found = found || (evaluate != nullptr && IsBarrier(*evaluate));
    return !found;
  });
  return found;
}

Stmt MakeAtomic(BinaryOp op, Buffer buffer, std::vector<Expr> indices, Expr value) {
  for (const Atomic& atomic : kAtomics) {
    if (atomic.op != op) continue;
    const Expr element = MakeLoad(std::move(buffer), std::move(indices));
    return Stmt::Make(Evaluate{Expr::Make(Call{atomic.name, {element, std::move(value)}}, element.type())});
  }
  HONE_UNREACHABLE() << "there is no atomic update by this operation";
}

std::optional<Store> AtomicUpdate(const Evaluate& evaluate) {
  const Call* call = evaluate.value.As<Call>();
  if (call == nullptr || call->args.size() != 2) return std::nullopt;
  const Load* element = call->args[0].As<Load>();
  if (element == nullptr) return std::nullopt;
  for (const Atomic& atomic : kAtomics) {
    if (call->name == atomic.name)
      return Store{element->buffer, element->indices, MakeBinary(atomic.op, call->args[0], call->args[1]), Expr()};
  }
  return std::nullopt;
}

}  // namespace hone
