#include "compiler/schedule/analysis/inserted_copy.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/interval_set.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/block_regions.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/touched_regions.h"

namespace hone {

int Outermost(const ProgramIndex& index, int node) {
  const std::vector<int> loops = index.LoopsAbove(node);
  return loops.empty() ? node : loops[0];
}

std::vector<Range> TouchedRegion(const ProgramIndex& index, int node, const Buffer& buffer, bool writes) {
  Analyzer known;
  const int scope = index.EnclosingBlock(node);
  const auto touched = TouchedWithin(index, scope, node, buffer, writes, known);
  const std::vector<IntervalSet> box = UnionOf(touched, known);
  // A block that was moved to its consumer runs less than its domain, and its bindings may say less than its domain.
  const Block& block = index.block(node);
  SetMap domains;
  for (const IterVar& it : block.iters) domains[it.var] = IntervalSet::FromRange(it.domain);
  std::vector<std::vector<IntervalSet>> by_domain;
  for (const BufferRegion& access : writes ? block.writes : block.reads) {
    if (access.buffer.SameAs(buffer)) by_domain.push_back(EvalRegion(access.region, domains, known));
  }
  const std::vector<IntervalSet> most = UnionOf(by_domain, known);
  std::vector<Range> region;
  for (size_t d = 0; d < box.size(); ++d) {
    const Expr size = buffer.shape()[d];
    IntervalSet set = Intersect(Intersect(box[d], most[d], known), {IntConst(0), size - 1}, known);
    const std::optional<Range> range = ToRange(set, known);
    // Of a block none of whose instances run, nothing is left: what is between would have a length below 0.
    const bool known_part =
        range.has_value() && ConstantValue(range->min).has_value() && ConstantValue(range->extent).value_or(0) > 0;
    region.push_back(known_part ? *range : Range{IntConst(0, size.type()), size});
  }
  return region;
}

bool Holds(const std::vector<Range>& outer, const std::vector<Range>& inner, const Buffer& buffer) {
  Analyzer known;
  std::vector<IntervalSet> outer_sets, inner_sets;
  for (const Range& r : outer) outer_sets.push_back(IntervalSet::FromRange(r));
  for (const Range& r : inner) inner_sets.push_back(IntervalSet::FromRange(r));
  return Covers(outer_sets, inner_sets, buffer, known);
}

absl::Status CheckThereBefore(const ProgramIndex& index, int node, const Buffer& buffer,
                              const std::vector<Range>& region, const std::string& where) {
  const int scope = index.EnclosingBlock(node), outermost = Outermost(index, node);
  const std::vector<int> writers = WritersOf(index, scope, buffer);
  for (const int w : writers) {
    if (w >= outermost) {
      return Refused(where, ": block ", index.block(w).name,
                     " writes it in or after the nest of the block, so a copy made before the nest would be stale");
    }
  }
  if (writers.empty() && scope != 0)  // made outside the enclosing block, so before that block's nest
    return CheckThereBefore(index, scope, buffer, region, where);
  bool there = writers.empty();  // a param
  for (const int w : writers) {
    there = there ||
            (CheckExact(index, scope, w, buffer).ok() && Holds(TouchedRegion(index, w, buffer, true), region, buffer));
  }
  if (!there) return Refused(where, ": no block writes all elements of the part that would be copied");
  return absl::OkStatus();
}

absl::Status CheckRunsWhole(const ProgramIndex& index, int node, const std::string& where) {
  const int scope = index.EnclosingBlock(node);
  if (scope == 0) return absl::OkStatus();
  VarRanges inside;
  for (const int n : index.LoopsAbove(node)) inside[index.loop(n).var] = Range{index.loop(n).min, index.loop(n).extent};
  Analyzer known(inside);
  const absl::Status whole = CheckBindings(index.realize(node), inside, known);
  if (whole.ok()) return whole;
  return Refused(where, ": one run of block ", index.block(scope).name, " around it runs only a part of the domain of ",
                 index.block(node).name, ": ", whole.message());
}

Stmt NestAround(Block block) {
  BlockRealize realize;
  realize.predicate = True();
  std::vector<std::pair<Var, Expr>> loops;
  for (size_t d = 0; d < block.iters.size(); ++d) {
    const IterVar& iter = block.iters[d];
    const Var ax(Message("ax", d), iter.var.type());
    loops.push_back({ax, iter.domain.extent});
    realize.values.push_back(iter.domain.min + Expr(ax));
  }
  realize.block = std::move(block);
  DeclareRegions(realize.block);
  Stmt nest = Stmt::Make(std::move(realize));
  for (size_t d = loops.size(); d-- > 0;) nest = MakeLoop(loops[d].first, loops[d].second, std::move(nest));
  return nest;
}

IterVar SpatialIter(const std::string& name, const Expr& extent) {
  return {Var(name, extent.type()), Range{IntConst(0, extent.type()), extent}, IterKind::kSpatial};
}

Stmt WithAlloc(const Stmt& body, const std::string& block_name, const Buffer& buffer) {
  const ProgramIndex index(body);
  const int found = index.FindBlock(block_name);
  const int node = found < 0 ? 0 : found;
  BlockRealize realize = index.realize(node);
  realize.block.allocs.push_back(buffer);
  return index.Replace(node, Stmt::Make(std::move(realize)));
}

Stmt WithReads(const Stmt& body, const std::string& block_name, const Buffer& buffer,
               const std::vector<Range>& region) {
  Stmt changed = body;
  const ProgramIndex before(body);
  for (int node = before.FindBlock(block_name); node > 0; node = before.EnclosingBlock(node)) {
    const std::vector<Buffer>& own = before.block(node).allocs;
    if (std::any_of(own.begin(), own.end(), [&](const Buffer& b) { return b.SameAs(buffer); })) break;
    const ProgramIndex index(changed);
    const int now = index.FindBlock(before.block(node).name);
    BlockRealize realize = index.realize(now);
    std::vector<BufferRegion>& reads = realize.block.reads;
    const auto entry = std::find_if(reads.begin(), reads.end(), [&](const auto& r) { return r.buffer.SameAs(buffer); });
    if (entry == reads.end()) {
      reads.push_back({buffer, region});
    } else if (!Holds(entry->region, region, buffer)) {
      Analyzer known;
      for (const IterVar& iter : realize.block.iters) known.Bind(iter.var, iter.domain);
      entry->region = UnionRegions(std::vector{entry->region, region}, buffer.shape(), known);
    }
    changed = index.Replace(now, Stmt::Make(std::move(realize)));
  }
  return changed;
}

}  // namespace hone
