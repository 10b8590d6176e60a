#include "compiler/schedule/primitives/compute_at.h"

#include <utility>

#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/moved_block.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The blocks that read what the block writes: one at least is under the loop, the others come after it.
struct Consumers {
  std::vector<int> under;
  std::vector<int> after;
};

absl::StatusOr<Consumers> FindConsumers(const ProgramIndex& index, const Move& move) {
  const Block& block = index.block(move.block);
  for (const BufferRegion& write : block.writes) {
    if (!IsIntermediate(index, move.scope, write.buffer)) {
      return Refused(move.where, ": it writes ", write.buffer,
                     ", which is seen outside, so no consumer says which part is needed; "
                     "reverse_compute_at moves outputs");
    }
  }
  Consumers consumers;
  const std::vector<int> all = ConsumersOf(index, move.block);
  if (all.empty()) return Refused(move.where, ": no block reads what it writes");
  for (const int c : all) {
    if (c < move.block) return Refused(move.where, ": its consumer ", index.block(c).name, " comes before it");
    if (!index.Contains(move.loop, c) && c < move.loop) {
      return Refused(move.where, ": its consumer ", index.block(c).name,
                     " comes before the loop; choose a loop around all consumers, or around the first");
    }
    (index.Contains(move.loop, c) ? consumers.under : consumers.after).push_back(c);
  }
  if (consumers.under.empty()) return Refused(move.where, ": no consumer of it is under the loop");
  for (const int b : index.BlocksBelow(move.scope)) {
    if (b <= move.block) continue;
    for (const BufferRegion& read : block.reads) {
      if (Writes(index.block(b), read.buffer)) {
        return Refused(move.where, ": block ", index.block(b).name, ", which comes later, overwrites ", read.buffer,
                       ", which it reads");
      }
    }
  }
  return consumers;
}

// OK unless the block writes a buffer of a warp under threads of which neither is certain: that those along an axis are
// lanes of one warp, which make together what one of them needs, and that they are of several warps.
absl::Status CheckWarps(const ProgramIndex& index, const Move& move) {
  for (const BufferRegion& write : index.block(move.block).writes) {
    if (write.buffer.scope() != Scope::kWarp) continue;
    const std::optional<ThreadExtents> threads = ThreadsAround(index, move.loop);
    if (!threads.has_value())
      return Refused(move.where, ": it writes ", write.buffer,
                     ", in scope warp, under threads without a constant number");
    for (size_t axis = 0; axis < threads->size(); ++axis) {
      if (WarpAxisOf(*threads, axis) != WarpAxis::kBoth) continue;
      return Refused(move.where, ": it writes ", write.buffer, ", in scope warp, and the ", (*threads)[axis],
                     " threads along ", kThreadAxes[axis],
                     " are neither of one warp nor all of several; bind a divisor of ", kWarpThreads,
                     " threads to it, and warps to the axis behind");
    }
  }
  return absl::OkStatus();
}

// The sets over all iterations of the loops around that are threads of one block, or warp, where these share the
// buffer: what one of them needs any of them may make.
void RelaxOverThreads(const ProgramIndex& index, int loop, const Buffer& buffer, std::vector<IntervalSet>& sets,
                      Analyzer& known) {
  if (!IsSharedByThreads(buffer.scope())) return;
  const std::optional<ThreadExtents> extents = ThreadsAround(index, loop);
  SetMap threads;
  for (int n = loop; n >= 0; n = index.parent(n)) {
    if (!index.IsLoop(n) || !index.loop(n).thread.starts_with("threadIdx")) continue;
    const bool one_warp =
        extents.has_value() && WarpAxisOf(*extents, ThreadAxisNumber(index.loop(n).thread)) == WarpAxis::kLanes;
    if (buffer.scope() == Scope::kWarp && !one_warp) continue;
    threads[index.loop(n).var] = IntervalSet::FromRange(Range{index.loop(n).min, index.loop(n).extent});
  }
  Widen(sets, threads, known);
}

// What the consumers' reads of one buffer in one iteration of the loop ask of each iteration variable: all the
// dimensions that it appears in at once. nullopt where they read nothing of it there.
std::optional<std::vector<Need>> NeedsOfWrite(const ProgramIndex& index, const Move& move,
                                              const std::vector<int>& consumers, const BufferRegion& write,
                                              Analyzer& known) {
  const Block& block = index.block(move.block);
  std::vector<std::vector<IntervalSet>> touched;
  for (const int c : consumers) {
    for (auto& region : TouchedWithin(index, move.loop, c, write.buffer, false, known))
      touched.push_back(std::move(region));
  }
  if (touched.empty()) return std::nullopt;
  std::vector<IntervalSet> required = UnionOf(touched, known);
  RelaxOverThreads(index, move.loop, write.buffer, required, known);
  std::vector<Need> needs(block.iters.size());
  for (size_t d = 0; d < required.size(); ++d) {
    const std::optional<AffineIndex> at = AffineIn(write.region[d], block.iters);
    if (!at.has_value() || at->iter < 0 || at->scale < 1 || !required[d].bounded()) continue;
    if (block.iters[at->iter].kind != IterKind::kSpatial) continue;
    const IntervalSet set{CeilDiv(required[d].min - at->base - IntConst(at->extent - 1), at->scale),
                          FloorDiv(required[d].max - at->base, IntConst(at->scale))};
    Need& need = needs[at->iter];
    need = need.whole ? Need{false, set} : Need{false, Intersect(need.set, set, known)};
  }
  return needs;
}

// What all consumers together ask of each iteration variable.
std::vector<Need> NeedsOf(const ProgramIndex& index, const Move& move, const std::vector<int>& consumers,
                          Analyzer& known) {
  const Block& block = index.block(move.block);
  std::optional<std::vector<Need>> needs;
  for (const BufferRegion& write : block.writes) {
    const std::optional<std::vector<Need>> more = NeedsOfWrite(index, move, consumers, write, known);
    if (!more.has_value()) continue;
    if (!needs.has_value()) {
      needs = more;
      continue;
    }
    for (size_t i = 0; i < needs->size(); ++i) {
      Need& need = (*needs)[i];
      need.whole = need.whole || (*more)[i].whole;
      if (!need.whole) need.set = Union(need.set, (*more)[i].set, known);
    }
  }
  return needs.value_or(std::vector<Need>(block.iters.size()));
}

// A part of a domain that must hold all of `set`; what is outside the domain is not run.
Part AtLeast(const Need& need, const Range& domain, const VarRanges& around, Analyzer& known) {
  const Part whole{domain.min, domain.extent, true, true, Expr()};
  if (need.whole || !IsOver(need.set, around)) return whole;
  const Expr end = domain.min + domain.extent;
  const Expr min = known.Simplify(need.set.min), max = known.Simplify(need.set.max);
  const std::optional<Expr> extent = ExtentOf({min, max}, known);
  if (!extent.has_value() || known.CanProveLessEqual(domain.extent, *extent)) return whole;
  if (known.CanProveLess(*extent, IntConst(1))) return whole;
  Part part{min, *extent, false, false, Expr()};
  part.from_start = known.CanProve(min >= domain.min);
  part.to_end = known.CanProve(min + *extent <= end);
  return part;
}

// OK when all iterations of the loop together, and of those around it that are not around a consumer after it, make
// what that consumer reads.
absl::Status CheckMadeBefore(const ProgramIndex& index, const Move& move, const std::vector<Part>& parts, int consumer,
                             Analyzer& known) {
  const Block& block = index.block(move.block);
  const auto refused = [&](const auto&... why) {
    return Refused(move.where, ": its consumer ", index.block(consumer).name, " is not under the loop, and ", why...,
                   "; choose a loop around all consumers");
  };
  int common = move.loop;  // around both
  VarRanges domains;
  for (; !index.Contains(common, consumer); common = index.parent(common)) {
    if (!index.IsLoop(common)) continue;
    const For& loop = index.loop(common);
    if (loop.kind != ForKind::kSerial && loop.kind != ForKind::kUnrolled)
      return refused("loop ", loop.var, " is not serial");
    domains[loop.var] = Range{loop.min, loop.extent};
  }
  for (const BufferRegion& write : block.writes) {
    std::vector<Range> made;
    for (const Range& at : write.region) {
      const std::optional<AffineIndex> index_of = AffineIn(at, block.iters);
      if (!index_of.has_value() || index_of->scale != 1) return refused("it writes ", write.buffer, " at ", at.min);
      Range& range = made.emplace_back(Range{index_of->base, IntConst(index_of->extent)});
      if (index_of->iter < 0) continue;
      const Part& part = parts[static_cast<size_t>(index_of->iter)];
      if (part.last) return refused("how much of ", write.buffer, " one iteration makes is not constant");
      range = Range{index_of->base + part.min, part.extent + (index_of->extent - 1)};
    }
    if (const absl::Status fills = FillsBox(made, domains); !fills.ok()) return refused(fills.message());
    const std::vector<IntervalSet> box = EvalRegion(made, ToSets(domains), known);
    for (const std::vector<IntervalSet>& read :
         TouchedWithin(index, common, consumer, write.buffer, /*writes=*/false, known)) {
      if (!Covers(box, read, write.buffer, known))
        return refused("reads more of ", write.buffer, " than all iterations make");
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
  HONE_ASSIGN_OR_RETURN(const Move move, CheckMove(schedule, block_ref, loop_ref, "compute_at"));
  const ProgramIndex& index = schedule.index();
  HONE_ASSIGN_OR_RETURN(const Consumers consumers, FindConsumers(index, move));
  HONE_RETURN_IF_ERROR(CheckWarps(index, move));
  const VarRanges around = RangesAroundPlace(index, move);
  Analyzer known(around);
  const std::vector<Need> needs = NeedsOf(index, move, consumers.under, known);
  HONE_ASSIGN_OR_RETURN(const std::vector<Range> ranges, RangesRun(index, move));
  std::vector<Part> parts;
  for (size_t i = 0; i < needs.size(); ++i) parts.push_back(AtLeast(needs[i], ranges[i], around, known));
  HONE_RETURN_IF_ERROR(CheckProducersBeside(index, move, {}, parts, move.on_iters, known));
  for (const int c : consumers.after) HONE_RETURN_IF_ERROR(CheckMadeBefore(index, move, parts, c, known));

  // ---- nothing below fails ----
  Stmt nest = NestOver(index, move, parts, ranges, True(), preserve_unit_loops, known);
  schedule.SetBody(Moved(index, move, consumers.under[0], Side::kBefore, std::move(nest)));
  schedule.Record(std::move(step), {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const ComputeAtStep& step) {
  return ComputeAt(schedule, step.block, step.loop, step.preserve_unit_loops);
}

HONE_PRIMITIVES(compute_at, ComputeAtStep)

}  // namespace hone
