#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "compiler/interp/compiler.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/support/status_macros.h"

namespace hone::interp {
namespace {

bool SameIndices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = StructuralEqual(a[i], b[i]);
  return same;
}

// Returns whether the block reads another element of the buffer than the one that it writes.
bool ReadsElsewhere(const Block& block, const Store& target) {
  bool elsewhere = false;
  for (const Stmt& part : {block.init, block.body}) {
    if (!part) continue;
    ForEachExpr(part, [&](const Expr& e) {
      const Load* load = e.As<Load>();
      if (load != nullptr && load->buffer == target.buffer) elsewhere |= !SameIndices(load->indices, target.indices);
      return true;
    });
  }
  return elsewhere;
}

}  // namespace

absl::StatusOr<Code> Compiler::Elements(bool& complete) {
  HONE_RETURN_IF_ERROR(Parameters());
  complete = true;
  std::vector<const BlockRealize*> blocks;
  std::map<uint64_t, int> writers;
  absl::Status status;
  ForEachStmt(f_.body, [&](const Stmt& s) {
    if (const BlockRealize* realize = s.As<BlockRealize>()) {
      for (const Buffer& b : realize->block.allocs) {
        const int buffer = AddBuffer(b);
        if (status.ok()) status = Shape(buffer);
        Emit(Op::kAlloc, 1, 0, buffer);
      }
      if (!realize->block.iters.empty() || !ContainsBlock(realize->block.body)) blocks.push_back(realize);
    } else if (const Store* store = s.As<Store>()) {
      ++writers[store->buffer.id()];
    }
    return true;
  });
  Emit(Op::kReturn);
  for (const BlockRealize* realize : blocks) {
    if (!status.ok() || !IsPointwise(*realize)) complete = false;
    if (!complete) break;
    if (!ElementBlock(*realize, complete).ok()) complete = false;
  }
  return Finish();
}

bool Compiler::ContainsBlock(const Stmt& stmt) {
  bool found = false;
  ForEachStmt(stmt, [&](const Stmt& s) {
    found = found || s.As<BlockRealize>() != nullptr;
    return !found;
  });
  return found;
}

bool Compiler::IsPointwise(const BlockRealize& n) {
  const Block& block = n.block;
  if (ContainsBlock(block.body) || !block.matches.empty()) return false;
  if (n.predicate && !IsConst(n.predicate, 1)) return false;
  if (n.values.size() != block.iters.size()) return false;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const VarRef* ref = n.values[i].As<VarRef>();
    const bool constant =
        IsConst(block.iters[i].domain.extent, 1) && StructuralEqual(n.values[i], block.iters[i].domain.min);
    if ((ref == nullptr && !constant) || block.iters[i].kind == IterKind::kOpaque) return false;
    if (ref == nullptr) continue;
    const For* loop = FindLoop(ref->var);
    if (loop == nullptr || !StructuralEqual(loop->min, block.iters[i].domain.min) ||
        !StructuralEqual(loop->extent, block.iters[i].domain.extent)) {
      return false;
    }
  }
  return true;
}

const For* Compiler::FindLoop(const Var& var) {
  if (all_loops_.empty()) {
    ForEachStmt(f_.body, [&](const Stmt& s) {
      if (const For* loop = s.As<For>()) all_loops_.emplace(loop->var.id(), loop);
      return true;
    });
  }
  const auto found = all_loops_.find(var.id());
  return found == all_loops_.end() ? nullptr : found->second;
}

std::optional<Compiler::ElementTarget> Compiler::TargetOf(const Block& block) const {
  ElementTarget target;
  bool fits = true;
  for (const Stmt& part : {block.init, block.body}) {
    if (!part) continue;
    ForEachStmt(part, [&](const Stmt& s) {
      const Store* store = s.As<Store>();
      if (store == nullptr) return true;
      if (target.store == nullptr) target.store = store;
      fits = fits && store->buffer == target.store->buffer && !store->mask &&
             SameIndices(store->indices, target.store->indices);
      return true;
    });
  }
  if (!fits || target.store == nullptr || !buffers_.contains(target.store->buffer.id())) return std::nullopt;
  for (size_t d = 0; d < target.store->indices.size(); ++d) {
    const VarRef* ref = target.store->indices[d].As<VarRef>();
    const bool point = IsConst(target.store->indices[d], 0) && IsConst(target.store->buffer.shape()[d], 1);
    if (ref == nullptr && !point) return std::nullopt;
    if (ref != nullptr && !target.dimension.emplace(ref->var.id(), d).second) return std::nullopt;
  }
  size_t found = 0;
  for (const IterVar& iter : block.iters) {
    if (iter.kind != IterKind::kSpatial) continue;
    const bool indexes = target.dimension.contains(iter.var.id());
    if (!indexes && !IsConst(iter.domain.extent, 1)) return std::nullopt;
    found += indexes;
  }
  if (found != target.dimension.size() || ReadsElsewhere(block, *target.store)) return std::nullopt;
  return target;
}

absl::Status Compiler::ElementBlock(const BlockRealize& n, bool& complete) {
  const Block& block = n.block;
  block_ = block.name;
  const std::optional<ElementTarget> target = TargetOf(block);
  const int buffer = target.has_value() ? buffers_[target->store->buffer.id()] : -1;
  if (!target.has_value() || code_.elements.contains(buffer)) {
    complete = false;
    return absl::OkStatus();
  }
  ElementCode element;
  element.entry = Here();
  element.index_slots.assign(target->store->indices.size(), -1);
  std::vector<const IterVar*> reduce;
  for (const IterVar& iter : block.iters) {
    const int slot = NewSlots(1);
    vars_[iter.var.id()] = slot;
    const auto d = target->dimension.find(iter.var.id());
    if (d != target->dimension.end()) {
      element.index_slots[d->second] = slot;
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const int min, Expression(iter.domain.min));
    Emit(Op::kMove, 1, slot, min);
    if (iter.kind == IterKind::kReduce) reduce.push_back(&iter);
  }
  for (const Buffer& b : block.allocs) HONE_RETURN_IF_ERROR(Allocate(b));
  const int mark = next_;
  HONE_RETURN_IF_ERROR(Statement(block.init));
  HONE_RETURN_IF_ERROR(ElementLoops(reduce, block.body));
  Emit(Op::kReturn);
  // Slots are not reused: the code of one buffer calls that of others in its midst.
  next_ = std::max(mark, high_);
  code_.elements.emplace(buffer, std::move(element));
  return absl::OkStatus();
}

absl::Status Compiler::ElementLoops(const std::vector<const IterVar*>& reduce, const Stmt& body) {
  std::vector<std::pair<int, int>> loops;  // test instruction, first of the body
  for (const IterVar* iter : reduce) {
    const int var = vars_[iter->var.id()];
    HONE_ASSIGN_OR_RETURN(const int min, Expression(iter->domain.min));
    HONE_ASSIGN_OR_RETURN(const int extent, Expression(iter->domain.extent));
    const int end = NewSlots(1);
    Emit(Op::kAddI64, 1, end, min, extent);
    Emit(Op::kMove, 1, var, min);
    const int test = Emit(Op::kLoopTest, 1, 0, var, end);
    loops.emplace_back(test, Here());
  }
  HONE_RETURN_IF_ERROR(Statement(body));
  for (size_t i = loops.size(); i-- > 0;) {
    const Instr test = code_.instrs[static_cast<size_t>(loops[i].first)];
    Emit(Op::kLoopNext, 1, 0, test.a, test.b, loops[i].second);
    Land(loops[i].first);
  }
  return absl::OkStatus();
}

}  // namespace hone::interp
