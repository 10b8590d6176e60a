#include "compiler/schedule/primitives/moved_block.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/ir/structural.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The block's condition in terms of its iteration variables, where it mentions no loop that is not one of them, though
// it may mention symbolic sizes: the rows of a split reduction, which rfactor leaves with the condition of their tail.
std::optional<Expr> ConditionOnIters(const BlockRealize& realize) {
  std::map<Var, Expr> iter_of;
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const VarRef* loop = realize.values[i].As<VarRef>();
    if (loop != nullptr) iter_of[loop->var] = MakeCast(loop->var.type(), Expr(realize.block.iters[i].var));
  }
  for (const Var& var : FreeVars(realize.predicate)) {
    if (iter_of.count(var) == 0 && !var.range().has_value()) return std::nullopt;
  }
  return Substitute(realize.predicate, [&](const Var& var) {
    const auto iter = iter_of.find(var);
    return iter == iter_of.end() ? std::nullopt : std::optional<Expr>(iter->second);
  });
}

// The block itself: that its instances may run in another order, and how many there are.
absl::Status CheckCanMove(const Block& block, const std::string& where) {
  if (UpdatesInPlace(block)) {
    return Refused(
        where,
        ": the block reads what it writes; move a reduction before its init is split off by decompose_reduction");
  }
  for (const IterVar& iter : block.iters) {
    if (!ConstantValue(iter.domain.min).has_value() || !IsOverSizes(iter.domain.extent)) {
      return Refused(where, ": the domain of ", iter.var, " depends on more than symbolic sizes");
    }
    if (iter.kind == IterKind::kOpaque) return Refused(where, ": the order of ", iter.var, " counts");
  }
  return absl::OkStatus();
}

// The loops from `loop` outwards that are inside of `outer`, each over its whole range.
SetMap LoopsBetween(const ProgramIndex& index, int outer, int loop) {
  SetMap ranges;
  for (int n = loop; n > outer; n = index.parent(n)) {
    if (!index.IsLoop(n)) continue;
    ranges[index.loop(n).var] = IntervalSet::FromRange(Range{index.loop(n).min, index.loop(n).extent});
  }
  return ranges;
}

// Returns whether the block ran in every iteration in which it will run: all its conditions stand in the new predicate,
// those that its domain implies too, since what it touches is worked out for the loops as they are. A variable of one
// value that is bound to more than that value is a condition that the regions of the block do not show.
bool KeepsConditions(const ProgramIndex& index, int block, const Expr& new_predicate) {
  const BlockRealize& realize = index.realize(block);
  const VarRanges around = RangesAround(index, block);
  Analyzer known(around);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const Range& domain = realize.block.iters[i].domain;
    if (IsConst(domain.extent, 1) && !known.CanProve(realize.values[i] <= domain.min)) return false;
  }
  const std::vector<Expr> stated = Conjuncts(new_predicate);
  const std::vector<Expr> conditions = Conjuncts(realize.predicate);
  return std::ranges::all_of(conditions, [&](const Expr& condition) {
    return known.CanProve(condition) ||
           std::ranges::any_of(stated, [&](const Expr& other) { return StructuralEqual(condition, other); });
  });
}

// Returns whether the block runs, where it stands, on all points that it runs on in its new place. What consumers read
// it ran on, which is all of a part of one value; the other variables run on all between two ends, which they may not
// have done where a binding is strided, or shares a loop with another.
bool RanOnAllOf(const ProgramIndex& index, const Move& move, const std::vector<Part>& parts) {
  const BlockRealize& realize = index.realize(move.block);
  VarRanges loops;
  for (const int n : index.LoopsAbove(move.block))
    loops[index.loop(n).var] = Range{index.loop(n).min, index.loop(n).extent};
  std::vector<Range> wide;
  std::vector<const Expr*> single;
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const Expr& value = realize.values[i];
    if (move.on_demand && IsConst(parts[i].extent, 1)) {
      single.push_back(&value);
    } else {
      wide.push_back(Range{value, IntConst(1, value.type())});
    }
  }
  if (wide.empty()) return true;
  VarRanges of_wide;
  for (const auto& [var, range] : loops) {
    const auto uses = [&var = var](const Expr& e) { return UsesVar(e, var); };
    if (std::ranges::none_of(wide, [&](const Range& r) { return uses(r.min); })) continue;
    if (std::ranges::any_of(single, [&](const Expr* e) { return uses(*e); })) return false;
    of_wide[var] = range;
  }
  return FillsBox(wide, of_wide).ok();
}

// The parts of its domain that the block runs in its new place, as sets over the loops around that.
SetMap SetsOf(const Block& block, const std::vector<Part>& parts) {
  SetMap sets;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Expr max = parts[i].min + (parts[i].extent - 1);
    sets[block.iters[i].var] = {parts[i].min, parts[i].last ? parts[i].last : max};
  }
  return sets;
}

// The statement of the loop's body that holds the node.
int PieceOf(const ProgramIndex& index, int loop, int node) {
  const int body = loop + 1;
  return index.stmt(body).As<Seq>() != nullptr ? index.ChildTowards(body, node) : body;
}

}  // namespace

absl::StatusOr<Move> CheckMove(const Schedule& schedule, BlockRef block_ref, LoopRef loop_ref,
                               std::string_view primitive) {
  const ProgramIndex& index = schedule.index();
  Move p;
  p.on_demand = primitive == "compute_at";
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
  HONE_RETURN_IF_ERROR(CheckCanMove(block, p.where));
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

VarRanges RangesAroundPlace(const ProgramIndex& index, const Move& move) {
  VarRanges around = RangesAround(index, move.loop);
  around[index.loop(move.loop).var] = Range{index.loop(move.loop).min, index.loop(move.loop).extent};
  return around;
}

bool IsOver(const IntervalSet& set, const VarRanges& around) {
  if (!set.bounded() || HasLoad(set.min) || HasLoad(set.max)) return false;
  for (const Expr& end : {set.min, set.max}) {
    for (const Var& var : FreeVars(end)) {
      if (around.count(var) == 0 && !var.range().has_value()) return false;
    }
  }
  return true;
}

Expr CeilDiv(const Expr& a, int64_t b) { return b == 1 ? a : FloorDiv(a + IntConst(b - 1), IntConst(b)); }

std::optional<Expr> ExtentOf(const IntervalSet& set, Analyzer& known) {
  if (!set.bounded()) return std::nullopt;
  const Expr exact = known.Simplify(set.max - set.min + 1);
  if (!ConstantValue(exact).has_value() && IsOverSizes(exact)) return exact;
  const std::optional<int64_t> most = MaxExtent(set, known);
  return most.has_value() ? std::optional<Expr>(IntConst(*most, set.min.type())) : std::nullopt;
}

absl::StatusOr<std::vector<Range>> RangesRun(const ProgramIndex& index, const Move& move) {
  const BlockRealize& realize = index.realize(move.block);
  const VarRanges around = RangesAround(index, move.block);
  Analyzer known(around);
  std::vector<Range> ranges;
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const IterVar& iter = realize.block.iters[i];
    if (!ConstantValue(iter.domain.extent).has_value()) {
      const IntervalSet runs = EvalSet(realize.values[i], ToSets(around), known);
      const Expr last = iter.domain.min + (iter.domain.extent - 1);
      const bool whole =
          runs.bounded() && known.CanProve(runs.min <= iter.domain.min) && known.CanProve(runs.max >= last);
      if (!whole) {
        return Refused(move.where, ": ", iter.var, " is bound to ", realize.values[i],
                       ", which is not proven to run over its whole symbolic domain");
      }
      ranges.push_back(iter.domain);
      continue;
    }
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

void Widen(std::vector<IntervalSet>& sets, const SetMap& domains, Analyzer& known) {
  for (IntervalSet& set : sets) {
    const IntervalSet low = set.min ? EvalSet(set.min, domains, known) : IntervalSet();
    const IntervalSet high = set.max ? EvalSet(set.max, domains, known) : IntervalSet();
    set = {low.min, high.max};
  }
}

absl::Status CheckProducersBeside(const ProgramIndex& index, const Move& p, const std::vector<int>& except,
                                  const std::vector<Part>& parts, const Expr& new_predicate, Analyzer& known) {
  const BlockRealize& realize = index.realize(p.block);
  const SetMap sets = SetsOf(realize.block, parts);
  const std::vector<int> producers = ProducersOf(index, p.block);
  const bool ran_everywhere = producers.empty() || RanOnAllOf(index, p, parts);
  for (const int producer : producers) {
    if (std::find(except.begin(), except.end(), producer) != except.end()) continue;
    int outer = p.loop;  // the innermost loop around both
    while (outer > p.scope && !(index.IsLoop(outer) && index.Contains(outer, producer))) outer = index.parent(outer);
    if (outer <= p.scope && ran_everywhere) continue;
    const SetMap inner = LoopsBetween(index, outer, p.loop);
    const bool ran = ran_everywhere && index.Contains(outer, p.block) && KeepsConditions(index, p.block, new_predicate);
    for (const BufferRegion& read : realize.block.reads) {
      const auto written = TouchedWithin(index, outer, producer, read.buffer, true, known);
      if (written.empty()) continue;
      std::vector<IntervalSet> needed = EvalRegion(read.region, sets, known);
      Widen(needed, inner, known);
      if (ran) {
        const auto before = TouchedWithin(index, outer, p.block, read.buffer, false, known);
        if (Covers(UnionOf(before, known), needed, read.buffer, known)) continue;
      }
      if (const absl::Status exact = CheckExact(index, outer, producer, read.buffer); !exact.ok())
        return Refused(p.where, ": ", exact.message());
      if (!Covers(UnionOf(written, known), needed, read.buffer, known)) {
        const std::string when =
            index.IsLoop(outer) ? Message(" in one iteration of loop ", index.loop(outer).var) : std::string();
        return Refused(p.where, ": it also reads ", read.buffer, ", of which block ", index.block(producer).name,
                       " produces only a part", when);
      }
    }
  }
  return absl::OkStatus();
}

Stmt NestOver(const ProgramIndex& index, const Move& move, const std::vector<Part>& parts,
              const std::vector<Range>& ranges, const Expr& only_where, bool keep_unit_loops, Analyzer& known) {
  const BlockRealize& realize = index.realize(move.block);
  BlockRealize moved = realize;
  moved.predicate = only_where;
  std::vector<std::pair<Var, Expr>> loops;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const DType type = realize.block.iters[i].var.type();
    Expr value = part.min;
    if (!IsConst(part.extent, 1) || keep_unit_loops) {
      const Var ax(Message("ax", loops.size()), type);
      const Expr extent = known.Simplify(MakeCast(type, part.extent));
      loops.push_back({ax, extent});
      known.Bind(ax, Range{IntConst(0, type), extent});
      value = part.min + Expr(ax);
    }
    moved.values[i] = known.Simplify(MakeCast(type, value));
    if (!part.from_start) moved.predicate = Conjoin(moved.predicate, moved.values[i] >= ranges[i].min);
    if (!part.to_end) moved.predicate = Conjoin(moved.predicate, moved.values[i] < ranges[i].min + ranges[i].extent);
    if (part.last) moved.predicate = Conjoin(moved.predicate, moved.values[i] <= part.last);
  }
  moved.predicate = Conjoin(moved.predicate, Substitute(move.on_iters, [&](const Var& var) -> std::optional<Expr> {
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

Stmt Moved(const ProgramIndex& index, const Move& move, int beside, Side side, Stmt nest) {
  const std::string neighbour = index.block(beside).name;
  const Var target = index.loop(move.loop).var;
  const ProgramIndex without(index.Replace(move.block, Stmt()));
  const int loop = without.FindLoop(target);
  const int piece = PieceOf(without, loop, without.FindBlock(neighbour));
  return side == Side::kBefore ? without.InsertBeside(piece, std::move(nest), Stmt())
                               : without.InsertBeside(piece, Stmt(), std::move(nest));
}

}  // namespace hone
