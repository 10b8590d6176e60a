#include "compiler/schedule/primitives/inline.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/analysis/layout.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/stage.h"
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

// The buffer is between this block and others of its scope, nobody else, and blocks use it element by element.
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
  // The store's indices are the block's variables, each once; those that are missing have one value.
  std::vector<std::optional<size_t>> dim_of(block.iters.size());
  for (size_t d = 0; d < store->indices.size(); ++d) {
    if (IsConst(store->indices[d], 0) && IsConst(buffer.shape()[d], 1)) continue;
    const VarRef* use = store->indices[d].As<VarRef>();
    bool found = false;
    for (size_t i = 0; use != nullptr && i < block.iters.size(); ++i) {
      if (!block.iters[i].var.SameAs(use->var) || dim_of[i].has_value()) continue;
      dim_of[i] = d;
      found = true;
    }
    if (!found) {
      return Refused(where, ": it writes ", buffer, " at ", store->indices[d], " in dimension ", d,
                     ", which is not an iteration variable of its own");
    }
  }
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (!dim_of[i].has_value() && !IsConst(block.iters[i].domain.extent, 1)) {
      return Refused(where, ": its variable ", block.iters[i].var, " is not an index of what it writes");
    }
  }
  // What it reads must still be there when its consumers run.
  for (const int b : index.BlocksBelow(index.EnclosingBlock(node))) {
    for (const BufferRegion& read : block.reads) {
      if (b > node && Writes(index.block(b), read.buffer)) {
        return Refused(where, ": block ", index.block(b).name, ", which comes later, overwrites ", read.buffer);
      }
    }
  }

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
  // The producer is the one that writes an intermediate nobody else reads; other inputs only have to be there in time.
  const std::vector<int> producers = ProducersOf(index, node);
  int producer = -1;
  for (const int candidate : producers) {
    const std::vector<int> consumers = ConsumersOf(index, candidate);
    if (consumers.size() == 1 && candidate < node) producer = candidate;  // the last of them: the others come before it
  }
  if (producer < 0) return Refused(where, ": no block before it is read by it alone");
  const Block& source = index.block(producer);
  HONE_ASSIGN_OR_RETURN(const Store* produced, OnlyStore(schedule, producer, where));
  const Buffer buffer = produced->buffer;
  HONE_RETURN_IF_ERROR(CheckInlinable(schedule, producer, buffer, where));
  for (const int other : producers) {
    if (other < producer && other >= Outermost(index, producer)) {
      return Refused(where, ": it also reads what block ", index.block(other).name, " writes in the same nest as ",
                     source.name, ", which may not have come that far");
    }
    if (other > producer) {
      return Refused(where, ": it also reads what block ", index.block(other).name, " writes, which comes after ",
                     source.name);
    }
  }
  const int scope = index.EnclosingBlock(node);
  for (const int b : index.BlocksBelow(scope)) {
    if (b == node) continue;
    if (Writes(index.block(b), store->buffer))
      return Refused(where, ": block ", index.block(b).name, " writes ", store->buffer, " too");
    if (b < node && Reads(index.block(b), store->buffer)) {
      return Refused(where, ": block ", index.block(b).name, " reads ", store->buffer, " before the block writes it");
    }
  }
  HONE_RETURN_IF_ERROR(CheckRunsWhole(index, node, where));
  // The block's variables as functions of the element it reads.
  const std::vector<Expr>* at = nullptr;
  bool one_place = true;
  ForEachExpr(block.body, [&](const Expr& e) {
    const Load* load = e.As<Load>();
    if (load == nullptr || !load->buffer.SameAs(buffer)) return true;
    if (at != nullptr) {
      for (size_t d = 0; d < at->size(); ++d) one_place = one_place && StructuralEqual((*at)[d], load->indices[d]);
    }
    at = &load->indices;
    return true;
  });
  if (at == nullptr || !one_place) return Refused(where, ": it reads ", buffer, " at more than one place");
  IndexMap map;
  std::vector<int64_t> shape;
  for (const IterVar& iter : block.iters) {
    const std::optional<int64_t> extent = ConstantValue(iter.domain.extent);
    if (!extent.has_value() || !IsConst(iter.domain.min, 0))
      return Refused(where, ": the domain of ", iter.var, " is not [0, a number)");
    map.inputs.push_back(iter.var);
    shape.push_back(*extent);
  }
  map.outputs = *at;
  const absl::StatusOr<InverseMap> inverse = Invert(map, shape);
  bool whole = inverse.ok() && IsConst(inverse->inside, 1);
  for (size_t d = 0; whole && d < inverse->shape.size(); ++d) whole = IsConst(buffer.shape()[d], inverse->shape[d]);
  if (!whole) {
    return Refused(where, ": it does not read every element of ", buffer, " exactly once", inverse.ok() ? "" : ": ",
                   inverse.ok() ? absl::string_view() : inverse.status().message());
  }

  // ---- nothing below fails ----
  const std::vector<Expr>& indices = produced->indices;
  VarRanges domains;
  for (const IterVar& iter : source.iters) domains[iter.var] = iter.domain;
  Analyzer known(domains);
  const auto element = [&](const Expr& e) {  // over the block's variables -> over the producer's
    return Substitute(e, [&](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < block.iters.size(); ++i) {
        if (!block.iters[i].var.SameAs(var)) continue;
        return known.Simplify(Substitute(inverse->original[i], [&](const Var& p) -> std::optional<Expr> {
          for (size_t d = 0; d < inverse->indices.size(); ++d) {
            if (inverse->indices[d].SameAs(p)) return indices[d];
          }
          return std::nullopt;
        }));
      }
      return std::nullopt;
    });
  };
  BlockRealize fused = index.realize(producer);
  Store result = *store;
  for (Expr& i : result.indices) i = known.Simplify(element(i));
  const Expr value = produced->value;
  // Loads first: after `element` their indices would be the producer's.
  result.value = element(MapLoads(store->value, buffer, [&](const std::vector<Expr>&) { return Renewed(value); }));
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
