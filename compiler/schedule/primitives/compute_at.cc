#include "compiler/schedule/primitives/compute_at.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/ir/structural.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/stage.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The values an iteration variable takes in its new place: [min, min + extent), the guards holding.
struct Part {
  Expr min;
  int64_t extent = 1;
  bool from_start = false, to_end = false;  // proven to lie inside the domain at that end
  Expr last;                                // absent, or values above it are not to be run
};

// What one iteration variable needs, both ends included.
struct Need {
  bool whole = true;
  IntervalSet set;
};

bool HasLoad(const Expr& e) {
  bool found = false;
  ForEachExpr(e, [&](const Expr& x) {
    found |= x.As<Load>() != nullptr;
    return !found;
  });
  return found;
}

// Ends usable at the new place mention nothing but the loops around it.
bool Usable(const IntervalSet& set, const VarRanges& around) {
  if (!set.bounded() || HasLoad(set.min) || HasLoad(set.max)) return false;
  for (const Expr& end : {set.min, set.max}) {
    for (const Var& var : FreeVars(end)) {
      if (around.count(var) == 0) return false;
    }
  }
  return true;
}

Expr CeilDiv(const Expr& a, int64_t b) { return b == 1 ? a : FloorDiv(a + IntConst(b - 1), IntConst(b)); }

// The block's condition in terms of its iteration variables, where it mentions no loop that is not one of them: the
// rows of a split reduction, which rfactor leaves with the condition of their tail.
std::optional<Expr> ConditionOnIters(const BlockRealize& realize) {
  std::map<Var, Expr> iter_of;
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const VarRef* loop = realize.values[i].As<VarRef>();
    if (loop != nullptr) iter_of[loop->var] = MakeCast(loop->var.type(), Expr(realize.block.iters[i].var));
  }
  for (const Var& var : FreeVars(realize.predicate)) {
    if (iter_of.count(var) == 0) return std::nullopt;
  }
  return Substitute(realize.predicate, [&](const Var& var) { return std::optional<Expr>(iter_of.at(var)); });
}

// Of every domain the part the block runs where it stands. What it never ran it must not run in its new place either:
// producers may have made no more than it read.
std::vector<Range> RangesRun(const ProgramIndex& index, int node) {
  const BlockRealize& realize = index.realize(node);
  Analyzer known(RangesAround(index, node));
  std::vector<Range> ranges;
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const IterVar& iter = realize.block.iters[i];
    const Bounds runs = known.ConstBounds(realize.values[i]);
    const int64_t first = *ConstantValue(iter.domain.min), end = first + *ConstantValue(iter.domain.extent);
    int64_t min = runs.bounded_below() ? std::max(first, runs.min) : first;
    int64_t last = runs.bounded_above() ? std::min(end - 1, runs.max) : end - 1;
    if (last < min) min = first, last = end - 1;  // it never runs
    const DType type = iter.var.type();
    ranges.push_back(Range{IntConst(min, type), IntConst(last + 1 - min, type)});
  }
  return ranges;
}

// A nest of new loops around the block that runs the given parts within `ranges`, where `on_iters` holds of its
// variables.
Stmt NestOver(const BlockRealize& realize, const std::vector<Part>& parts, const std::vector<Range>& ranges,
              const Expr& only_where, const Expr& on_iters, bool keep_unit_loops, Analyzer& known) {
  BlockRealize moved = realize;
  moved.predicate = only_where;
  std::vector<std::pair<Var, Expr>> loops;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const DType type = realize.block.iters[i].var.type();
    Expr value = part.min;
    if (part.extent != 1 || keep_unit_loops) {
      const Var ax(Message("ax", loops.size()), type);
      loops.push_back({ax, IntConst(part.extent, type)});
      known.Bind(ax, Range{IntConst(0, type), IntConst(part.extent, type)});
      value = part.min + Expr(ax);
    }
    moved.values[i] = known.Simplify(MakeCast(type, value));
    if (!part.from_start) moved.predicate = Conjoin(moved.predicate, moved.values[i] >= ranges[i].min);
    if (!part.to_end) moved.predicate = Conjoin(moved.predicate, moved.values[i] < ranges[i].min + ranges[i].extent);
    if (part.last) moved.predicate = Conjoin(moved.predicate, moved.values[i] <= part.last);
  }
  moved.predicate = Conjoin(moved.predicate, Substitute(on_iters, [&](const Var& var) -> std::optional<Expr> {
                              for (size_t i = 0; i < parts.size(); ++i) {
                                if (realize.block.iters[i].var == var) return moved.values[i];
                              }
                              return std::nullopt;
                            }));
  moved.predicate = known.Simplify(moved.predicate);
  Stmt nest = Stmt::Make(std::move(moved));
  for (size_t i = loops.size(); i-- > 0;) nest = MakeLoop(loops[i].first, loops[i].second, std::move(nest));
  return nest;
}

struct Places {
  int block = 0, loop = 0, scope = 0;
  Expr on_iters = True();  // the block's own condition
  std::string where;       // how messages begin
};

absl::StatusOr<Places> FindPlaces(const Schedule& schedule, BlockRef block_ref, LoopRef loop_ref,
                                  std::string_view primitive) {
  const ProgramIndex& index = schedule.index();
  Places p;
  HONE_ASSIGN_OR_RETURN(p.block, schedule.BlockNode(block_ref, primitive));
  HONE_ASSIGN_OR_RETURN(p.loop, schedule.LoopNode(loop_ref, primitive));
  const Block& block = index.block(p.block);
  const For& loop = index.loop(p.loop);
  p.where = Message(primitive, "(", block.name, ", ", loop.var, ")");
  if (p.block == 0) return Refused(p.where, ": the root block cannot move");
  p.scope = index.EnclosingBlock(p.block);
  if (index.Contains(p.loop, p.block)) return Refused(p.where, ": the block is under the loop already");
  if (index.EnclosingBlock(p.loop) != p.scope) {
    return Refused(p.where, ": the loop lies in block ", index.block(index.EnclosingBlock(p.loop)).name,
                   ", the block in ", index.block(p.scope).name, "; both must be directly inside one block");
  }
  for (int n = p.loop; n > p.scope; n = index.parent(n)) {
    if (index.IsLoop(n) && index.loop(n).kind == ForKind::kVectorized) {
      return Refused(p.where, ": loop ", index.loop(n).var, " is vectorized; choose a loop outside it");
    }
  }
  if (UpdatesInPlace(block)) {
    return Refused(
        p.where,
        ": the block reads what it writes; move a reduction before its init is split off by decompose_reduction");
  }
  for (const IterVar& iter : block.iters) {
    if (!ConstantValue(iter.domain.min).has_value() || !ConstantValue(iter.domain.extent).has_value()) {
      return Refused(p.where, ": the domain of ", iter.var, " is symbolic");
    }
    if (iter.kind == IterKind::kOpaque) return Refused(p.where, ": the order of ", iter.var, " counts");
  }
  HONE_RETURN_IF_ERROR(CheckRunsWhole(index, p.block, p.where));
  for (const BufferRegion& write : block.writes) {
    for (const int w : WritersOf(index, p.scope, write.buffer)) {
      if (w != p.block) return Refused(p.where, ": block ", index.block(w).name, " writes ", write.buffer, " too");
    }
  }
  if (PredicateFollowsFromDomain(index.realize(p.block), RangesAround(index, p.block))) return p;
  const std::optional<Expr> on_iters = ConditionOnIters(index.realize(p.block));
  if (!on_iters.has_value() || primitive != "compute_at") {
    return Refused(p.where, ": the block has a condition of its own, ", index.realize(p.block).predicate,
                   ", that its domain does not imply, so its loops cannot be made anew");
  }
  p.on_iters = *on_iters;
  return p;
}

// The statement of the loop's body that holds the node.
int Piece(const ProgramIndex& index, int loop, int node) {
  const int body = loop + 1;
  return index.stmt(body).As<Seq>() != nullptr ? index.ChildTowards(body, node) : body;
}

// A part of a domain that must hold all of `set`; what is outside the domain is not run.
Part AtLeast(const Need& need, const Range& domain, const VarRanges& around, Analyzer& known) {
  const Part whole{domain.min, *ConstantValue(domain.extent), true, true, Expr()};
  if (need.whole || !Usable(need.set, around)) return whole;
  const Expr end = domain.min + domain.extent;
  const Expr min = known.Simplify(need.set.min), max = known.Simplify(need.set.max);
  const std::optional<int64_t> extent = MaxExtent({min, max}, known);
  if (!extent.has_value() || *extent >= whole.extent) return whole;
  if (*extent < 1) return whole;
  Part part{min, *extent, false, false, Expr()};
  part.from_start = known.CanProve(min >= domain.min);
  part.to_end = known.CanProve(min + IntConst(*extent) <= end);
  return part;
}

// The sets with their ends taken over the whole of the domains.
void Widen(std::vector<IntervalSet>& sets, const SetMap& domains, Analyzer& known) {
  for (IntervalSet& set : sets) {
    const IntervalSet low = set.min ? EvalSet(set.min, domains, known) : IntervalSet();
    const IntervalSet high = set.max ? EvalSet(set.max, domains, known) : IntervalSet();
    set = {low.min, high.max};
  }
}

// The sets over all iterations of the loops around that are threads of one block, where these share the buffer: what
// one of them needs any of them may make.
void RelaxOverThreads(const ProgramIndex& index, int loop, const Buffer& buffer, std::vector<IntervalSet>& sets,
                      Analyzer& known) {
  if (buffer.scope() != Scope::kShared) return;
  SetMap threads;
  for (int n = loop; n >= 0; n = index.parent(n)) {
    if (!index.IsLoop(n) || !index.loop(n).thread.starts_with("threadIdx")) continue;
    threads[index.loop(n).var] = IntervalSet::FromRange(Range{index.loop(n).min, index.loop(n).extent});
  }
  Widen(sets, threads, known);
}

// Does each of the producers, over its whole domain, write all that the block reads over its own in dimension d? A
// guarded read, such as one of the border of an image, may go where nobody writes.
bool AllProduced(const ProgramIndex& index, const std::vector<int>& producers, const Block& block,
                 const BufferRegion& read, size_t d) {
  const auto over_domain = [d](const Block& b, const BufferRegion& access, Analyzer& known) {
    SetMap domains;
    for (const IterVar& iter : b.iters) domains[iter.var] = IntervalSet::FromRange(iter.domain);
    return EvalRegion(std::span(&access.region[d], 1), domains, known)[0];
  };
  Analyzer known;
  const IntervalSet reads = over_domain(block, read, known);
  if (!reads.bounded()) return false;
  for (const int producer : producers) {
    for (const BufferRegion& write : index.block(producer).writes) {
      if (!write.buffer.SameAs(read.buffer)) continue;
      const IntervalSet writes = over_domain(index.block(producer), write, known);
      if (!writes.bounded() || !known.CanProve(writes.min <= reads.min) || !known.CanProve(writes.max >= reads.max))
        return false;
    }
  }
  return true;
}

// The parts of its domain that the block runs in its new place, as sets over the loops around that.
SetMap SetsOf(const Block& block, const std::vector<Part>& parts) {
  SetMap sets;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Expr max = parts[i].min + IntConst(parts[i].extent - 1);
    sets[block.iters[i].var] = {parts[i].min, parts[i].last ? parts[i].last : max};
  }
  return sets;
}

// The block reads more of its buffers in its new place than in its old one, where it runs other parts of its domain.
// Producers that share a loop with both must have made that in the same iteration: as they have what it read before,
// in iterations in which it ran.
absl::Status CheckProducersBeside(const ProgramIndex& index, const Places& p, const std::vector<int>& except,
                                  const std::vector<Part>& parts, const Expr& new_predicate, Analyzer& known) {
  const BlockRealize& realize = index.realize(p.block);
  const SetMap sets = SetsOf(realize.block, parts);
  for (const int producer : ProducersOf(index, p.block)) {
    if (std::find(except.begin(), except.end(), producer) != except.end()) continue;
    int outer = p.loop;  // the innermost loop around both
    while (outer > p.scope && !(index.IsLoop(outer) && index.Contains(outer, producer))) outer = index.parent(outer);
    if (outer <= p.scope) continue;
    SetMap roaming;
    for (int n = p.loop; n > outer; n = index.parent(n)) {
      if (index.IsLoop(n)) {
        const For& loop = index.loop(n);
        roaming[loop.var] = IntervalSet::FromRange(Range{loop.min, loop.extent});
      }
    }
    bool ran = index.Contains(outer, p.block);  // in every iteration in which it will run
    for (const Expr& part : PartsBeyondDomain(realize, RangesAround(index, p.block))) {
      bool stays = false;
      for (const Expr& other : Conjuncts(new_predicate)) stays |= StructuralEqual(part, other);
      ran = ran && stays;
    }
    for (const BufferRegion& read : realize.block.reads) {
      const auto written = TouchedWithin(index, outer, producer, read.buffer, true, known);
      if (written.empty()) continue;
      std::vector<IntervalSet> needed = EvalRegion(read.region, sets, known);
      Widen(needed, roaming, known);  // over all iterations of the loops inside `outer`
      if (ran) {
        const auto before = TouchedWithin(index, outer, p.block, read.buffer, false, known);
        if (Covers(UnionOf(before, known), needed, read.buffer, known)) continue;
      }
      if (const absl::Status exact = CheckExact(index, outer, producer, read.buffer); !exact.ok())
        return Refused(p.where, ": ", exact.message());
      if (!Covers(UnionOf(written, known), needed, read.buffer, known)) {
        return Refused(p.where, ": it also reads ", read.buffer, ", of which block ", index.block(producer).name,
                       " produces only a part in one iteration of loop ", index.loop(outer).var);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ComputeAt(Schedule& schedule, BlockRef block_ref, LoopRef loop_ref, bool preserve_unit_loops) {
  ComputeAtStep step{.block = block_ref, .loop = loop_ref, .preserve_unit_loops = preserve_unit_loops};
  HONE_ASSIGN_OR_RETURN(const Schedule::Output target,
                        schedule.FindOutput(loop_ref.step, loop_ref.output, OutputKind::kLoop, "compute_at"));
  if (!target.loop) {  // a sampled "where it is"
    schedule.Record(std::move(step), {});
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(const Places p, FindPlaces(schedule, block_ref, loop_ref, "compute_at"));
  const ProgramIndex& index = schedule.index();
  const BlockRealize& realize = index.realize(p.block);
  const Block& block = realize.block;
  for (const BufferRegion& write : block.writes) {
    if (!IsIntermediate(index, p.scope, write.buffer)) {
      return Refused(p.where, ": it writes ", write.buffer,
                     ", which is seen outside, so no consumer says which part is needed; "
                     "reverse_compute_at moves outputs");
    }
  }
  const std::vector<int> consumers = ConsumersOf(index, p.block);
  if (consumers.empty()) return Refused(p.where, ": no block reads what it writes");
  for (const int c : consumers) {
    if (!index.Contains(p.loop, c)) {
      return Refused(p.where, ": its consumer ", index.block(c).name,
                     " is not under the loop; choose a loop around all consumers");
    }
    if (c < p.block) return Refused(p.where, ": its consumer ", index.block(c).name, " comes before it");
  }
  for (const int b : index.BlocksBelow(p.scope)) {
    if (b <= p.block) continue;
    for (const BufferRegion& read : block.reads) {
      if (Writes(index.block(b), read.buffer)) {
        return Refused(p.where, ": block ", index.block(b).name, ", which comes later, overwrites ", read.buffer,
                       ", which it reads");
      }
    }
  }

  VarRanges around = RangesAround(index, p.loop);
  around[index.loop(p.loop).var] = Range{index.loop(p.loop).min, index.loop(p.loop).extent};
  Analyzer known(around);
  std::vector<Need> needs(block.iters.size());
  bool first_buffer = true;
  for (size_t w = 0; w < block.writes.size(); ++w) {
    const Buffer& buffer = block.writes[w].buffer;
    std::vector<std::vector<IntervalSet>> touched;
    for (const int c : consumers) {
      for (auto& region : TouchedWithin(index, p.loop, c, buffer, false, known)) touched.push_back(std::move(region));
    }
    if (touched.empty()) continue;
    std::vector<IntervalSet> required = UnionOf(touched, known);
    RelaxOverThreads(index, p.loop, buffer, required, known);
    // What this buffer asks of each variable: all the dimensions it appears in at once.
    std::vector<Need> mine(block.iters.size());
    for (size_t d = 0; d < required.size(); ++d) {
      const std::optional<AffineIndex> at = AffineIn(block.writes[w].region[d], block.iters);
      if (!at.has_value() || at->iter < 0 || at->scale < 1 || !required[d].bounded()) continue;
      if (block.iters[at->iter].kind != IterKind::kSpatial) continue;
      const IntervalSet set{CeilDiv(required[d].min - at->base - IntConst(at->extent - 1), at->scale),
                            FloorDiv(required[d].max - at->base, IntConst(at->scale))};
      Need& need = mine[at->iter];
      if (need.whole) {
        need = {false, set};
      } else {
        need.set = Intersect(need.set, set, known);
      }
    }
    for (size_t i = 0; i < needs.size(); ++i) {
      if (first_buffer) {
        needs[i] = mine[i];
      } else if (mine[i].whole) {
        needs[i].whole = true;
      } else if (!needs[i].whole) {
        needs[i].set = Union(needs[i].set, mine[i].set, known);
      }
    }
    first_buffer = false;
  }
  const std::vector<Range> ranges = RangesRun(index, p.block);
  std::vector<Part> parts;
  for (size_t i = 0; i < needs.size(); ++i) parts.push_back(AtLeast(needs[i], ranges[i], around, known));
  HONE_RETURN_IF_ERROR(CheckProducersBeside(index, p, {}, parts, p.on_iters, known));

  // ---- nothing below fails ----
  Stmt nest = NestOver(realize, parts, ranges, True(), p.on_iters, preserve_unit_loops, known);
  const std::string first_consumer = index.block(consumers[0]).name;
  const ProgramIndex without(index.Replace(p.block, Stmt()));
  const int loop = without.FindLoop(target.loop);
  schedule.SetBody(
      without.InsertBeside(Piece(without, loop, without.FindBlock(first_consumer)), std::move(nest), Stmt()));
  schedule.Record(std::move(step), {});
  return absl::OkStatus();
}

absl::Status ReverseComputeAt(Schedule& schedule, BlockRef block_ref, LoopRef loop_ref, bool preserve_unit_loops) {
  HONE_ASSIGN_OR_RETURN(const Places p, FindPlaces(schedule, block_ref, loop_ref, "reverse_compute_at"));
  const ProgramIndex& index = schedule.index();
  const BlockRealize& realize = index.realize(p.block);
  const Block& block = realize.block;
  if (HasReduction(block)) {
    return Refused(p.where, ": the block reduces, and would reduce over what other iterations have not produced yet");
  }
  VarRanges around = RangesAround(index, p.loop);
  around[index.loop(p.loop).var] = Range{index.loop(p.loop).min, index.loop(p.loop).extent};
  Analyzer known(around);

  // Producers under the loop say which part there is; the others must be complete before it.
  std::vector<int> driving;
  Expr only_where = True();  // iterations in which they produce nothing are not the block's either
  for (const int producer : ProducersOf(index, p.block)) {
    if (producer > p.block) {
      return Refused(p.where, ": block ", index.block(producer).name, ", which comes later, overwrites what it reads");
    }
    if (index.Contains(p.loop, producer)) {
      driving.push_back(producer);
      if (!PredicateFollowsFromDomain(index.realize(producer), RangesAround(index, producer))) {
        return Refused(p.where, ": its producer ", index.block(producer).name, " runs only where ",
                       index.realize(producer).predicate,
                       "; instances of the block that read what is made elsewhere would be lost");
      }
      Expr outside = True();
      for (const BufferRegion& read : block.reads) {
        if (const absl::Status exact = CheckExact(index, p.loop, producer, read.buffer, &outside); !exact.ok()) {
          return Refused(p.where, ": ", exact.message());
        }
      }
      if (driving.size() > 1 && !StructuralEqual(outside, only_where)) {
        return Refused(p.where, ": block ", index.block(producer).name, " runs where ", outside,
                       ", another producer where ", only_where);
      }
      only_where = outside;
      continue;
    }
    if (producer > p.loop) {
      return Refused(p.where, ": its producer ", index.block(producer).name,
                     " comes after the loop; choose a loop around all producers");
    }
  }
  if (driving.empty()) return Refused(p.where, ": no block under the loop produces what it reads");
  for (const BufferRegion& write : block.writes) {
    for (const int reader : ReadersOf(index, p.scope, write.buffer)) {
      if (reader < p.block) {
        return Refused(p.where, ": block ", index.block(reader).name, " reads ", write.buffer,
                       " before the block writes it");
      }
    }
  }

  std::vector<Need> needs(block.iters.size());
  for (const BufferRegion& read : block.reads) {
    std::vector<std::vector<IntervalSet>> touched;
    for (const int producer : driving) {
      for (auto& region : TouchedWithin(index, p.loop, producer, read.buffer, true, known))
        touched.push_back(std::move(region));
    }
    if (touched.empty()) continue;
    const std::vector<IntervalSet> produced = UnionOf(touched, known);
    for (size_t d = 0; d < produced.size(); ++d) {
      const Expr last = read.buffer.shape()[d] - 1;
      const bool all = (!produced[d].min || known.CanProve(produced[d].min <= IntConst(0))) &&
                       (!produced[d].max || known.CanProve(produced[d].max >= last));
      if (all) continue;  // this dimension is whole in every iteration
      const std::string dim = Message("dimension ", d, " of ", read.buffer);
      const std::optional<AffineIndex> at = AffineIn(read.region[d], block.iters);
      if (!at.has_value() || at->scale < 1 || !Usable(produced[d], around)) {
        return Refused(p.where, ": ", dim, " is produced in parts and read at ", read.region[d].min,
                       ", which is not one iteration variable times a number plus a number");
      }
      if (!AllProduced(index, driving, block, read, d)) {
        return Refused(p.where, ": some instances of the block read ", read.buffer, " in dimension ", d, " at ",
                       read.region[d].min,
                       ", where the producers under the loop never write; no iteration could take them");
      }
      const IntervalSet set{CeilDiv(produced[d].min - at->base, at->scale),
                            FloorDiv(produced[d].max - at->base, IntConst(at->scale))};
      // An instance belongs to the iteration that produces the first element it reads; it must find the rest there too.
      const Expr end = at->iter < 0 ? at->base : set.max * IntConst(at->scale) + at->base;
      const bool complete = known.CanProve(end + IntConst(at->extent - 1) <= produced[d].max) &&
                            (at->iter >= 0 || known.CanProve(produced[d].min <= at->base));
      if (!complete) {
        return Refused(p.where, ": ", dim, " is produced in parts, and an instance of the block reads ", at->extent,
                       " elements of it, from ", read.region[d].min, ", which may lie in two of them");
      }
      if (at->iter < 0) continue;
      Need& need = needs[at->iter];
      if (need.whole) {
        need = {false, set};
      } else if (!known.CanProveEqual(need.set.min, set.min) || !known.CanProveEqual(need.set.max, set.max)) {
        return Refused(p.where, ": its producers do not agree on which part of ", block.iters[at->iter].var,
                       " one iteration gives");
      }
    }
  }
  const std::vector<Range> ranges = RangesRun(index, p.block);
  std::vector<Part> parts;
  for (size_t i = 0; i < needs.size(); ++i) {
    const Range& domain = ranges[i];
    const int64_t whole = *ConstantValue(domain.extent);
    if (needs[i].whole) {
      parts.push_back({domain.min, whole, true, true, Expr()});
      continue;
    }
    Part part;
    part.min = known.Simplify(needs[i].set.min);
    const Expr max = known.Simplify(needs[i].set.max);
    const std::optional<int64_t> extent = MaxExtent({part.min, max}, known);
    if (!extent.has_value() || *extent < 1) {
      return Refused(p.where, ": how much of ", block.iters[i].var, " one iteration gives has no constant bound: from ",
                     part.min, " to ", max);
    }
    part.extent = *extent;
    part.from_start = known.CanProve(part.min >= domain.min);
    if (part.from_start && known.CanProveEqual(part.min, domain.min)) part.extent = std::min(part.extent, whole);
    part.to_end = known.CanProve(part.min + IntConst(part.extent) <= domain.min + domain.extent);
    if (!known.CanProve(part.min + IntConst(part.extent - 1) <= max)) part.last = max;
    parts.push_back(std::move(part));
  }

  HONE_RETURN_IF_ERROR(CheckProducersBeside(index, p, driving, parts, only_where, known));

  // ---- nothing below fails ----
  Stmt nest = NestOver(realize, parts, ranges, only_where, p.on_iters, preserve_unit_loops, known);
  const std::string last_producer = index.block(driving.back()).name;
  const Var target = index.loop(p.loop).var;
  const ProgramIndex without(index.Replace(p.block, Stmt()));
  const int loop = without.FindLoop(target);
  schedule.SetBody(
      without.InsertBeside(Piece(without, loop, without.FindBlock(last_producer)), Stmt(), std::move(nest)));
  schedule.Record(
      ReverseComputeAtStep{.block = block_ref, .loop = loop_ref, .preserve_unit_loops = preserve_unit_loops}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const ComputeAtStep& step) {
  return ComputeAt(schedule, step.block, step.loop, step.preserve_unit_loops);
}

absl::Status Apply(Schedule& schedule, const ReverseComputeAtStep& step) {
  return ReverseComputeAt(schedule, step.block, step.loop, step.preserve_unit_loops);
}

HONE_PRIMITIVES(compute_at, ComputeAtStep, ReverseComputeAtStep)

}  // namespace hone
