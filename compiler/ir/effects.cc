#include "compiler/ir/effects.h"

#include <string_view>
#include <utility>

#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

constexpr char kBarrier[] = "tvm_storage_sync";
constexpr char kAsyncCopy[] = "async_copy";
constexpr char kCommitGroup[] = "ptx_commit_group";
constexpr char kWaitGroup[] = "ptx_wait_group";

struct Atomic {
  const char* name;
  BinaryOp op;
};
constexpr Atomic kAtomics[] = {
    {"atomic_add", BinaryOp::kAdd}, {"atomic_min", BinaryOp::kMin}, {"atomic_max", BinaryOp::kMax}};

// The call, when it is one of this name with so many arguments.
const Call* CallOf(const Evaluate& evaluate, std::string_view name, size_t arguments) {
  const Call* call = evaluate.value.As<Call>();
  return call != nullptr && call->name == name && call->args.size() == arguments ? call : nullptr;
}
Stmt MakeCallWithNumber(const char* name, int64_t number) {
  return Stmt::Make(Evaluate{Expr::Make(Call{name, {IntConst(number)}}, kInt32)});
}

}  // namespace

Stmt MakeBarrier() { return MakeCallWithNumber(kBarrier, 0); }

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

Stmt MakeAsyncCopy(Buffer buffer, std::vector<Expr> indices, Expr value) {
  HONE_CHECK(IsCopiedValue(value)) << "an asynchronous copy of a value that is computed";
  const Expr element = MakeLoad(std::move(buffer), std::move(indices));
  return Stmt::Make(Evaluate{Expr::Make(Call{kAsyncCopy, {element, std::move(value)}}, element.type())});
}

std::optional<Store> AsyncCopy(const Evaluate& evaluate) {
  const Call* call = CallOf(evaluate, kAsyncCopy, 2);
  const Load* element = call == nullptr ? nullptr : call->args[0].As<Load>();
  if (element == nullptr || !IsCopiedValue(call->args[1])) return std::nullopt;
  return Store{element->buffer, element->indices, call->args[1], Expr()};
}

bool IsCopiedValue(const Expr& value) {
  const auto is_element = [](const Expr& e) {
    const Load* load = e.As<Load>();
    return load != nullptr && !load->mask && e.type().is_scalar();
  };
  const IfThenElseExpr* choice = value.As<IfThenElseExpr>();
  if (choice == nullptr) return is_element(value);
  return is_element(choice->yes) && (choice->no.As<FloatImm>() != nullptr || choice->no.As<IntImm>() != nullptr);
}

Stmt MakeCommitGroup() { return MakeCallWithNumber(kCommitGroup, 0); }
bool IsCommitGroup(const Evaluate& evaluate) { return CallOf(evaluate, kCommitGroup, 1) != nullptr; }

Stmt MakeWaitGroup(int64_t groups) { return MakeCallWithNumber(kWaitGroup, groups); }
std::optional<int64_t> WaitGroup(const Evaluate& evaluate) {
  const Call* call = CallOf(evaluate, kWaitGroup, 1);
  const std::optional<int64_t> groups = call == nullptr ? std::nullopt : ConstantValue(call->args[0]);
  return groups.has_value() && *groups >= 0 ? groups : std::nullopt;
}

std::optional<Store> EffectStore(const Evaluate& evaluate) {
  std::optional<Store> update = AtomicUpdate(evaluate);
  return update.has_value() ? update : AsyncCopy(evaluate);
}

TouchedBuffers BuffersTouchedBy(const Stmt& body) {
  TouchedBuffers touched;
  ForEachExpr(body, [&](const Expr& e) {
    if (const Load* load = e.As<Load>()) touched.reads.insert(load->buffer);
    return true;
  });
  ForEachStmt(body, [&](const Stmt& s) {
    if (const Store* store = s.As<Store>()) touched.writes.insert(store->buffer);
    if (const TileOp* op = s.As<TileOp>()) {
      touched.writes.insert(op->operands[0].buffer);
      for (const BufferRegion& operand : op->operands) touched.reads.insert(operand.buffer);
    }
    if (const Evaluate* evaluate = s.As<Evaluate>()) {
      if (const std::optional<Store> effect = EffectStore(*evaluate)) touched.writes.insert(effect->buffer);
    }
    return true;
  });
  return touched;
}

}  // namespace hone
