// What compute_at and reverse_compute_at share: a block leaves its loops and gets new ones under another loop, over a
// part of each of its domains.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/interval_set.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/ref.h"

namespace hone {

class Schedule;

// The block, the loop that it moves under, and the block around both, as nodes of the index.
struct Move {
  int block = 0, loop = 0, scope = 0;
  Expr on_iters = True();  // the block's own condition, over its iteration variables
  bool on_demand = false;  // compute_at: its parts are what consumers read
  std::string where;       // how messages begin
};
// Refuses what neither primitive moves: a block that is under the loop already or in another block, one that updates in
// place, one whose instances do not follow from its domain (compute_at takes a condition on iteration variables).
absl::StatusOr<Move> CheckMove(const Schedule& schedule, BlockRef block, LoopRef loop, std::string_view primitive);

// The loops around the new place, that of the move included.
VarRanges RangesAroundPlace(const ProgramIndex& index, const Move& move);

// The values of one iteration variable that are needed, both ends included.
struct Need {
  bool whole = true;  // all of the domain
  IntervalSet set;
};
// Whether both ends are known and mention nothing but the loops around.
bool IsOver(const IntervalSet& set, const VarRanges& around);
Expr CeilDiv(const Expr& a, int64_t b);

// The values that an iteration variable takes in its new place: [min, min + extent) where the conditions hold. The
// extent is a number or an expression over symbolic sizes.
struct Part {
  Expr min, extent;
  bool from_start = false, to_end = false;  // proven to lie inside the domain at that end
  Expr last;                                // absent, or values above it are not to be run
};

// How many values a set over the loops around has at most: an expression over symbolic sizes where it is one exactly,
// else a number; nullopt when no bound is found.
std::optional<Expr> ExtentOf(const IntervalSet& set, Analyzer& known);

// Of every domain the range that the block runs where it stands. What it never ran it must not run in its new place
// either: producers may have made no more than it read. Refused where a symbolic domain is not run whole.
absl::StatusOr<std::vector<Range>> RangesRun(const ProgramIndex& index, const Move& move);

// The block reads more of its buffers in its new place than in its old one, where it runs other parts of its domain.
// Producers that share a loop with both must have made that in the same iteration: as they have what it read before,
// in iterations in which it ran. Where it runs, in its old place, on some points between the bounds of its domain alone
// (a strided binding), all producers must have made all that it reads. Refused otherwise; producers in `except` are not
// looked at.
absl::Status CheckProducersBeside(const ProgramIndex& index, const Move& move, const std::vector<int>& except,
                                  const std::vector<Part>& parts, const Expr& new_predicate, Analyzer& known);

// A nest of new loops around the block that runs the parts within `ranges`, where `only_where` holds.
Stmt NestOver(const ProgramIndex& index, const Move& move, const std::vector<Part>& parts,
              const std::vector<Range>& ranges, const Expr& only_where, bool keep_unit_loops, Analyzer& known);

// The program with the block gone from its old place and `nest` in the loop's body, before or after the statement that
// holds the block `beside`.
enum class Side { kBefore, kAfter };
Stmt Moved(const ProgramIndex& index, const Move& move, int beside, Side side, Stmt nest);

// The sets with their ends taken over the whole of the domains.
void Widen(std::vector<IntervalSet>& sets, const SetMap& domains, Analyzer& known);

}  // namespace hone
