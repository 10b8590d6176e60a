#include "compiler/schedule/primitives/inline.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/element_map.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/rewrite_layout.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// A copy in which every variable the expression defines is new.
Expr Renewed(const Expr& e) { return RenewDefinitions(Stmt::Make(Evaluate{e})).As<Evaluate>()->value; }

// What both directions need of a block: one store of one element, nothing else.
absl::StatusOr<const Store*> OnlyStore(const Schedule& schedule, int node, const std::string& where) {
  const BlockRealize& realize = schedule.index().realize(node);
  const Block& block = realize.block;
  if (HasReduction(block)) return Refused(where, ": block ", block.name, " reduces");
  const Store* store = block.body.As<Store>();
  if (store == nullptr || block.writes.size() != 1 || store->mask || !block.allocs.empty() || !block.matches.empty()) {
    return Refused(where, ": block ", block.name, " does more than store one element");
  }
  if (Reads(block, store->buffer))
    return Refused(where, ": block ", block.name, " reads ", store->buffer, ", which it writes");
  if (!PredicateFollowsFromDomain(realize, RangesAround(schedule.index(), node))) {
    return Refused(where, ": block ", block.name, " has a condition of its own, ", realize.predicate);
  }
  return store;
}

// This block and others of its scope alone use the buffer, element by element.
absl::Status CheckInlinable(const Schedule& schedule, int node, const Buffer& buffer, const std::string& where) {
  const ProgramIndex& index = schedule.index();
  if (!IsIntermediate(index, index.EnclosingBlock(node), buffer)) {
    return Refused(where, ": ", buffer, " is seen outside, so it must be written");
  }
  if (WritersOf(index, index.EnclosingBlock(node), buffer).size() != 1)
    return Refused(where, ": several blocks write ", buffer);
  if (IsMatched(schedule.func().body, buffer))
    return Refused(where, ": ", buffer, " is an operand of a tile operation");
  return absl::OkStatus();
}

void DropAlloc(Block& block, const Buffer& buffer) {
  std::erase_if(block.allocs, [&](const Buffer& b) { return b.SameAs(buffer); });
}

Expr MapLoads(const Expr& root, const Buffer& buffer, const std::function<Expr(const std::vector<Expr>&)>& value) {
  return RewriteBottomUp(root, [&](const Expr& e) -> std::optional<Expr> {
    const Load* load = e.As<Load>();
    if (load == nullptr || !load->buffer.SameAs(buffer)) return std::nullopt;
    return value(load->indices);
  });
}

// Which dimension of what the block writes each of its variables is; none: the variable has one value. Refused when a
// dimension is anything else.
absl::StatusOr<std::vector<std::optional<size_t>>> DimensionsOfIters(const Block& block, const Store& store,
                                                                     const std::string& where) {
  std::vector<std::optional<size_t>> dim_of(block.iters.size());
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (IsConst(store.indices[d], 0) && IsConst(store.buffer.shape()[d], 1)) continue;
    const VarRef* use = store.indices[d].As<VarRef>();
    bool found = false;
    for (size_t i = 0; use != nullptr && i < block.iters.size(); ++i) {
      if (!block.iters[i].var.SameAs(use->var) || dim_of[i].has_value()) continue;
      dim_of[i] = d;
      found = true;
    }
    if (!found) {
      return Refused(where, ": it writes ", store.buffer, " at ", store.indices[d], " in dimension ", d,
                     ", which is not an iteration variable of its own");
    }
  }
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (!dim_of[i].has_value() && !IsConst(block.iters[i].domain.extent, 1)) {
      return Refused(where, ": its variable ", block.iters[i].var, " is not an index of what it writes");
    }
  }
  return dim_of;
}

// Blocks read the buffer after it is written, none of them for its address, and what its block reads is still there.
absl::Status CheckConsumers(const ProgramIndex& index, int node, const Buffer& buffer, const std::string& where) {
  const std::vector<int> consumers = ConsumersOf(index, node);
  if (consumers.empty()) return Refused(where, ": no block reads ", buffer);
  for (const int c : consumers) {
    if (c < node) return Refused(where, ": block ", index.block(c).name, " reads ", buffer, " before it is written");
  }
  for (const int b : index.AllBlocks()) {
    if (index.block(b).writes.empty() && Reads(index.block(b), buffer))
      return Refused(where, ": block ", index.block(b).name, " prefetches ", buffer,
                     ", which must then have an address");
  }
  for (const int b : index.BlocksBelow(index.EnclosingBlock(node))) {
    for (const BufferRegion& read : index.block(node).reads) {
      if (b > node && Writes(index.block(b), read.buffer)) {
        return Refused(where, ": block ", index.block(b).name, ", which comes later, overwrites ", read.buffer);
      }
    }
  }
  return absl::OkStatus();
}

// The last block before this one that it alone reads: it writes an intermediate that no other block uses. The other
// reads of the block must only be written in time.
absl::StatusOr<int> FindProducer(const ProgramIndex& index, int node, const std::string& where) {
  const std::vector<int> producers = ProducersOf(index, node);
  int producer = -1;
  for (const int candidate : producers) {
    if (ConsumersOf(index, candidate).size() == 1 && candidate < node) producer = candidate;
  }
  if (producer < 0) return Refused(where, ": no block before it is read by it alone");
  const std::string& name = index.block(producer).name;
  for (const int other : producers) {
    if (other < producer && other >= Outermost(index, producer)) {
      return Refused(where, ": it also reads what block ", index.block(other).name, " writes in the same nest as ",
                     name, ", which may not have come that far");
    }
    if (other > producer) {
      return Refused(where, ": it also reads what block ", index.block(other).name, " writes, which comes after ",
                     name);
    }
  }
  return producer;
}

absl::Status CheckNobodyElseWrites(const ProgramIndex& index, int node, const Buffer& result,
                                   const std::string& where) {
  for (const int b : index.BlocksBelow(index.EnclosingBlock(node))) {
    if (b == node) continue;
    const Block& block = index.block(b);
    if (Writes(block, result)) return Refused(where, ": block ", block.name, " writes ", result, " too");
    if (b < node && Reads(block, result)) {
      return Refused(where, ": block ", block.name, " reads ", result, " before the block writes it");
    }
  }
  return absl::OkStatus();
}

// The one place at which the block reads the buffer.
absl::StatusOr<std::vector<Expr>> FindUse(const Block& block, const Buffer& buffer, const std::string& where) {
  const std::vector<Expr>* at = nullptr;
  bool one_place = true;
  ForEachExpr(block.body, [&](const Expr& e) {
    const Load* load = e.As<Load>();
    if (load == nullptr || !load->buffer.SameAs(buffer)) return true;
    for (size_t d = 0; at != nullptr && d < at->size(); ++d) {
      one_place = one_place && StructuralEqual((*at)[d], load->indices[d]);
    }
    at = &load->indices;
    return true;
  });
  if (at == nullptr || !one_place) return Refused(where, ": it reads ", buffer, " at more than one place");
  return *at;
}

// Returns whether the value may leave the buffer unread: a load of it stands in a branch of if_then_else.
bool ReadsInBranch(const Expr& value, const Buffer& buffer) {
  bool found = false;
  ForEachExpr(value, [&](const Expr& e) {
    const IfThenElseExpr* choice = e.As<IfThenElseExpr>();
    if (choice == nullptr) return !found;
    for (const Expr& branch : {choice->yes, choice->no}) {
      ForEachExpr(branch, [&](const Expr& inner) {
        const Load* load = inner.As<Load>();
        found = found || (load != nullptr && load->buffer.SameAs(buffer));
        return !found;
      });
    }
    return !found;
  });
  return found;
}

// The block runs where the producer does. So the producer must write the elements that the block does not read, too: as
// a rule padding is not written, nor what cache_read leaves out of a copy.
absl::Status CheckAllIsWritten(const ProgramIndex& index, int producer, const Store& store, const Buffer& buffer,
                               const std::string& where) {
  if (!ReadsInBranch(store.value, buffer)) return absl::OkStatus();  // then every element that it reads is written
  std::vector<Range> all;
  for (const Expr& extent : buffer.shape()) all.push_back(Range{IntConst(0, extent.type()), extent});
  if (CheckExact(index, index.EnclosingBlock(producer), producer, buffer).ok() &&
      Holds(TouchedRegion(index, producer, buffer, true), all, buffer))
    return absl::OkStatus();
  return Refused(where, ": it reads ", buffer, " under a condition, and block ", index.block(producer).name,
                 ", where it would run, does not write all of that");
}

}  // namespace

absl::Status ComputeInline(Schedule& schedule, BlockRef ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "compute_inline"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  const std::string where = Message("compute_inline(", block.name, ")");
  if (node == 0) return Refused(where, ": the root block cannot be inlined");
  HONE_ASSIGN_OR_RETURN(const Store* store, OnlyStore(schedule, node, where));
  const Buffer buffer = store->buffer;
  HONE_RETURN_IF_ERROR(CheckInlinable(schedule, node, buffer, where));
  HONE_RETURN_IF_ERROR(CheckConsumers(index, node, buffer, where));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<size_t>> dim_of, DimensionsOfIters(block, *store, where));

  // ---- nothing below fails ----
  const Expr value = store->value;
  const auto inlined = [&](const std::vector<Expr>& indices) {
    return Renewed(Substitute(value, [&](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < block.iters.size(); ++i) {
        if (block.iters[i].var.SameAs(var))
          return dim_of[i].has_value() ? indices[*dim_of[i]] : block.iters[i].domain.min;
      }
      return std::nullopt;
    }));
  };
  std::function<Stmt(const Stmt&)> rewrite = [&](const Stmt& stmt) -> Stmt {
    const Stmt copy = MapChildren(stmt, rewrite, [&](const Expr& e) { return MapLoads(e, buffer, inlined); });
    const BlockRealize* realize = copy.As<BlockRealize>();
    if (realize == nullptr) return copy;
    const bool reads = Reads(realize->block, buffer);
    const bool home = std::any_of(realize->block.allocs.begin(), realize->block.allocs.end(),
                                  [&](const Buffer& b) { return b.SameAs(buffer); });
    if (!reads && !home) return copy;
    BlockRealize changed = *realize;
    DropAlloc(changed.block, buffer);
    if (reads) DeclareRegions(changed.block);
    return Stmt::Make(std::move(changed));
  };
  schedule.SetBody(rewrite(index.Replace(node, Stmt())));
  schedule.Record(ComputeInlineStep{.block = ref}, {});
  return absl::OkStatus();
}

absl::Status ReverseComputeInline(Schedule& schedule, BlockRef ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "reverse_compute_inline"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  const std::string where = Message("reverse_compute_inline(", block.name, ")");
  if (node == 0) return Refused(where, ": the root block cannot be inlined");
  HONE_ASSIGN_OR_RETURN(const Store* store, OnlyStore(schedule, node, where));
  HONE_ASSIGN_OR_RETURN(const int producer, FindProducer(index, node, where));
  HONE_ASSIGN_OR_RETURN(const Store* produced, OnlyStore(schedule, producer, where));
  const Buffer buffer = produced->buffer;
  HONE_RETURN_IF_ERROR(CheckInlinable(schedule, producer, buffer, where));
  HONE_RETURN_IF_ERROR(CheckNobodyElseWrites(index, node, store->buffer, where));
  HONE_RETURN_IF_ERROR(CheckRunsWhole(index, node, where));
  HONE_RETURN_IF_ERROR(CheckAllIsWritten(index, producer, *store, buffer, where));
  HONE_ASSIGN_OR_RETURN(const std::vector<Expr> use, FindUse(block, buffer, where));
  HONE_ASSIGN_OR_RETURN(const ElementMap elements, ElementMap::Find(block, buffer, use, where));

  // ---- nothing below fails ----
  BlockRealize fused = index.realize(producer);
  Analyzer known;
  for (const IterVar& iter : fused.block.iters) known.Bind(iter.var, iter.domain);
  Store result = *store;
  for (Expr& i : result.indices) i = known.Simplify(elements.At(produced->indices, i, known));
  // Loads first: after `At` their indices would be the producer's.
  const Expr value = produced->value;
  const Expr loaded = MapLoads(store->value, buffer, [&](const std::vector<Expr>&) { return Renewed(value); });
  result.value = elements.At(produced->indices, loaded, known);
  fused.block.body = Stmt::Make(std::move(result));
  DeclareRegions(fused.block);
  const std::string name = block.name;
  const ProgramIndex replaced(index.Replace(producer, Stmt::Make(std::move(fused))));
  const ProgramIndex without(replaced.Replace(replaced.FindBlock(name), Stmt()));
  const int home = AllocatingBlock(without, buffer);
  BlockRealize allocating = without.realize(home);
  DropAlloc(allocating.block, buffer);
  schedule.SetBody(without.Replace(home, Stmt::Make(std::move(allocating))));
  schedule.Record(ReverseComputeInlineStep{.block = ref}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const ComputeInlineStep& step) { return ComputeInline(schedule, step.block); }

absl::Status Apply(Schedule& schedule, const ReverseComputeInlineStep& step) {
  return ReverseComputeInline(schedule, step.block);
}

HONE_PRIMITIVES(inline, ComputeInlineStep, ReverseComputeInlineStep)

}  // namespace hone
