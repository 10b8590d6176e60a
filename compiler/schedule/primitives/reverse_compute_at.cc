#include <algorithm>
#include <span>
#include <utility>

#include "compiler/arith/iter_map.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/moved_block.h"
#include "compiler/schedule/primitives/moved_reduction.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The producers under the loop, which say what part of the domain one iteration of it gives.
struct Driving {
  std::vector<int> producers;
  Expr only_where = True();  // iterations in which they produce nothing are not the block's either
};

// The condition on the loops around under which a producer under the loop produces what the block reads. Refused where
// one iteration does not complete it.
absl::StatusOr<Expr> WhereItProduces(const ProgramIndex& index, const Move& move, int producer) {
  if (!PredicateFollowsFromDomain(index.realize(producer), RangesAround(index, producer))) {
    return Refused(move.where, ": its producer ", index.block(producer).name, " runs only where ",
                   index.realize(producer).predicate,
                   "; instances of the block that read what is made elsewhere would be lost");
  }
  Expr outside = True();
  for (const BufferRegion& read : index.block(move.block).reads) {
    if (const absl::Status exact = CheckExact(index, move.loop, producer, read.buffer, &outside); !exact.ok())
      return Refused(move.where, ": ", exact.message());
  }
  return outside;
}

// Producers that are not under the loop must be complete before it.
absl::StatusOr<Driving> DrivingProducers(const ProgramIndex& index, const Move& move) {
  Driving driving;
  for (const int producer : ProducersOf(index, move.block)) {
    if (producer > move.block) {
      return Refused(move.where, ": block ", index.block(producer).name,
                     ", which comes later, overwrites what it reads");
    }
    if (index.Contains(move.loop, producer)) {
      HONE_ASSIGN_OR_RETURN(const Expr outside, WhereItProduces(index, move, producer));
      if (!driving.producers.empty() && !StructuralEqual(outside, driving.only_where)) {
        return Refused(move.where, ": block ", index.block(producer).name, " runs where ", outside,
                       ", another producer where ", driving.only_where);
      }
      driving.producers.push_back(producer);
      driving.only_where = outside;
    } else if (producer > move.loop) {
      return Refused(move.where, ": its producer ", index.block(producer).name,
                     " comes after the loop; choose a loop around all producers");
    }
  }
  if (driving.producers.empty()) return Refused(move.where, ": no block under the loop produces what it reads");
  for (const BufferRegion& write : index.block(move.block).writes) {
    for (const int reader : ReadersOf(index, move.scope, write.buffer)) {
      if (reader < move.block) {
        return Refused(move.where, ": block ", index.block(reader).name, " reads ", write.buffer,
                       " before the block writes it");
      }
    }
  }
  return driving;
}

// Whether the block runs on all of its domain: as split and fused loops do it, or more than once on some of it.
bool RunsOnAllOfDomain(const ProgramIndex& index, int node) {
  const BlockRealize& realize = index.realize(node);
  VarRanges loops;
  for (const int n : index.LoopsAbove(node)) loops[index.loop(n).var] = Range{index.loop(n).min, index.loop(n).extent};
  Analyzer known(loops);
  if (CheckBindings(realize, loops, known).ok()) return true;
  std::vector<Range> values;
  for (const Expr& value : realize.values) values.push_back(Range{value, IntConst(1, value.type())});
  return FillsBox(values, loops).ok();
}

// Whether each of the producers, over its whole domain, writes all that the block reads over its own, in the dimensions
// `in_parts`, of which one iteration produces a part. A guarded read, such as one of the border of an image, may go
// where no block writes, and so may one of the last of a padded layout, whose parts (v // 3, v % 3) do not fill their
// box.
bool AllProduced(const ProgramIndex& index, const std::vector<int>& producers, const Block& block,
                 const BufferRegion& read, std::span<const size_t> in_parts) {
  const auto chosen = [in_parts](const BufferRegion& access) {
    std::vector<Range> region;
    for (const size_t d : in_parts) region.push_back(access.region[d]);
    return region;
  };
  const auto domains_of = [](const Block& b) {
    VarRanges domains;
    for (const IterVar& iter : b.iters) domains[iter.var] = iter.domain;
    return domains;
  };
  Analyzer known;
  const std::vector<IntervalSet> reads = EvalRegion(chosen(read), ToSets(domains_of(block)), known);
  for (const int producer : producers) {
    if (!in_parts.empty() && !RunsOnAllOfDomain(index, producer)) return false;
    const VarRanges domains = domains_of(index.block(producer));
    for (const BufferRegion& write : index.block(producer).writes) {
      if (!write.buffer.SameAs(read.buffer)) continue;
      const std::vector<Range> region = chosen(write);
      if (!FillsBox(region, domains).ok()) return false;
      const std::vector<IntervalSet> writes = EvalRegion(region, ToSets(domains), known);
      for (size_t d = 0; d < reads.size(); ++d) {
        if (!reads[d].bounded() || !writes[d].bounded() || !known.CanProve(writes[d].min <= reads[d].min) ||
            !known.CanProve(writes[d].max >= reads[d].max))
          return false;
      }
    }
  }
  return true;
}

// Adds what dimension d of a read, of which one iteration produces the part `produced`, gives of an iteration variable.
absl::Status AddGiven(const ProgramIndex& index, const Move& move, const BufferRegion& read, size_t d,
                      const IntervalSet& produced, Analyzer& known, std::vector<Need>& given) {
  const Block& block = index.block(move.block);
  const std::string dim = Message("dimension ", d, " of ", read.buffer);
  const std::optional<AffineIndex> at = AffineIn(read.region[d], block.iters);
  if (!at.has_value() || at->scale < 1 || !IsOver(produced, RangesAroundPlace(index, move))) {
    return Refused(move.where, ": ", dim, " is produced in parts and read at ", read.region[d].min,
                   ", which is not one iteration variable times a number plus a number");
  }
  const IntervalSet set{CeilDiv(produced.min - at->base, at->scale),
                        FloorDiv(produced.max - at->base, IntConst(at->scale))};
  // An instance belongs to the iteration that produces the first element it reads; it must find the rest there too.
  const Expr end = at->iter < 0 ? at->base : set.max * IntConst(at->scale) + at->base;
  const bool complete = known.CanProve(end + IntConst(at->extent - 1) <= produced.max) &&
                        (at->iter >= 0 || known.CanProve(produced.min <= at->base));
  if (!complete) {
    return Refused(move.where, ": ", dim, " is produced in parts, and an instance of the block reads ", at->extent,
                   " elements of it, from ", read.region[d].min, ", which may lie in two of them");
  }
  if (at->iter < 0) return absl::OkStatus();
  Need& need = given[at->iter];
  if (need.whole) {
    need = {false, set};
  } else if (!known.CanProveEqual(need.set.min, set.min) || !known.CanProveEqual(need.set.max, set.max)) {
    return Refused(move.where, ": its producers do not agree on which part of ", block.iters[at->iter].var,
                   " one iteration gives");
  }
  return absl::OkStatus();
}

// What one iteration of the loop gives of each iteration variable.
absl::StatusOr<std::vector<Need>> GivenBy(const ProgramIndex& index, const Move& move,
                                          const std::vector<int>& producers, Analyzer& known) {
  const Block& block = index.block(move.block);
  std::vector<Need> given(block.iters.size());
  for (const BufferRegion& read : block.reads) {
    std::vector<std::vector<IntervalSet>> touched;
    for (const int producer : producers) {
      for (auto& region : TouchedWithin(index, move.loop, producer, read.buffer, true, known))
        touched.push_back(std::move(region));
    }
    if (touched.empty()) continue;
    const std::vector<IntervalSet> produced = UnionOf(touched, known);
    std::vector<size_t> in_parts;
    for (size_t d = 0; d < produced.size(); ++d) {
      const Expr last = read.buffer.shape()[d] - 1;
      const bool is_whole = (!produced[d].min || known.CanProve(produced[d].min <= IntConst(0))) &&
                            (!produced[d].max || known.CanProve(produced[d].max >= last));
      if (is_whole) continue;
      HONE_RETURN_IF_ERROR(AddGiven(index, move, read, d, produced[d], known, given));
      in_parts.push_back(d);
    }
    if (!AllProduced(index, producers, block, read, in_parts)) {
      return Refused(move.where, ": some instances of the block read ", read.buffer,
                     " where the producers under the loop never write; no iteration could take them");
    }
  }
  return given;
}

// The part of the range that is run in one iteration.
absl::StatusOr<Part> PartOf(const Need& given, const Range& range, const Var& iter, const std::string& where,
                            Analyzer& known) {
  if (given.whole) return Part{range.min, range.extent, true, true, Expr()};
  Part part;
  part.min = known.Simplify(given.set.min);
  const Expr max = known.Simplify(given.set.max);
  const std::optional<Expr> extent = ExtentOf({part.min, max}, known);
  if (!extent.has_value() || known.CanProveLess(*extent, IntConst(1))) {
    return Refused(where, ": how much of ", iter, " one iteration gives has no constant bound: from ", part.min, " to ",
                   max);
  }
  part.extent = *extent;
  part.from_start = known.CanProve(part.min >= range.min);
  if (part.from_start && known.CanProveEqual(part.min, range.min) && known.CanProveLess(range.extent, part.extent))
    part.extent = range.extent;
  part.to_end = known.CanProve(part.min + part.extent <= range.min + range.extent);
  if (!known.CanProve(part.min + (part.extent - 1) <= max)) part.last = max;
  return part;
}

}  // namespace

absl::Status ReverseComputeAt(Schedule& schedule, BlockRef block_ref, LoopRef loop_ref, bool preserve_unit_loops) {
  HONE_ASSIGN_OR_RETURN(const Move move, CheckMove(schedule, block_ref, loop_ref, "reverse_compute_at"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(move.block);
  Analyzer known(RangesAroundPlace(index, move));
  HONE_ASSIGN_OR_RETURN(const Driving driving, DrivingProducers(index, move));
  HONE_ASSIGN_OR_RETURN(const std::vector<Need> given, GivenBy(index, move, driving.producers, known));
  HONE_ASSIGN_OR_RETURN(const std::vector<Range> ranges, RangesRun(index, move));
  std::vector<Part> parts;
  for (size_t i = 0; i < given.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(Part part, PartOf(given[i], ranges[i], block.iters[i].var, move.where, known));
    parts.push_back(std::move(part));
  }
  HONE_RETURN_IF_ERROR(CheckProducersBeside(index, move, driving.producers, parts, driving.only_where, known));
  Stmt nest = NestOver(index, move, parts, ranges, driving.only_where, preserve_unit_loops, known);
  if (HasReduction(block)) HONE_RETURN_IF_ERROR(CheckMovedReduction(index, move, parts, ranges, nest));

  // ---- nothing below fails ----
  schedule.SetBody(Moved(index, move, driving.producers.back(), Side::kAfter, std::move(nest)));
  schedule.Record(
      ReverseComputeAtStep{.block = block_ref, .loop = loop_ref, .preserve_unit_loops = preserve_unit_loops}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const ReverseComputeAtStep& step) {
  return ReverseComputeAt(schedule, step.block, step.loop, step.preserve_unit_loops);
}

HONE_PRIMITIVES(reverse_compute_at, ReverseComputeAtStep)

}  // namespace hone
