#include "compiler/schedule/primitives/moved_reduction.h"

#include <algorithm>

#include "compiler/arith/linear.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

bool Reduces(const IterVar& iter) { return iter.kind == IterKind::kReduce; }
bool IsSerial(const For& loop) {
  return loop.kind == ForKind::kSerial || loop.kind == ForKind::kUnrolled || IsConst(loop.extent, 1);
}

// The innermost loop or block around the block and the loop that it moves under.
int AroundBoth(const ProgramIndex& index, const Move& move) {
  int common = move.loop;
  while (!index.Contains(common, move.block)) common = index.parent(common);
  return common;
}

// Where it stands the block reduces within one iteration of the loops that stay around it, and adds every term once.
absl::Status CheckReducesWhereItStands(const ProgramIndex& index, const Move& move, int common) {
  const BlockRealize& realize = index.realize(move.block);
  if (!realize.block.init)
    return Refused(move.where, ": the block reduces and has no init; move it before decompose_reduction");
  VarRanges inside;
  for (const int n : index.LoopsBetween(common, move.block))
    inside[index.loop(n).var] = Range{index.loop(n).min, index.loop(n).extent};
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (!Reduces(realize.block.iters[i])) continue;
    for (const Var& var : FreeVars(realize.values[i])) {
      if (inside.count(var) != 0) continue;
      return Refused(move.where, ": the block reduces ", realize.block.iters[i].var, " across loop ", var,
                     ", which is around the block and the loop; choose a loop outside ", var);
    }
  }
  if (!IsInjective(realize.values, inside, realize.predicate))
    return Refused(move.where, ": the block computes some elements more than once; sums of different times would mix");
  return absl::OkStatus();
}

// The block in its new place, with the loops around it.
struct NewPlace {
  const BlockRealize* realize;
  VarRanges nest;                  // the loops that are made for it
  std::vector<const For*> around;  // outermost first, of those in the block around it
};

NewPlace PlaceOf(const ProgramIndex& index, const Move& move, const Stmt& nest) {
  NewPlace place;
  for (const int n : index.LoopsAbove(move.loop)) place.around.push_back(&index.loop(n));
  place.around.push_back(&index.loop(move.loop));
  const Stmt* inner = &nest;
  for (; inner->As<For>() != nullptr; inner = &inner->As<For>()->body) {
    const For& loop = *inner->As<For>();
    place.nest[loop.var] = Range{loop.min, loop.extent};
  }
  place.realize = inner->As<BlockRealize>();
  return place;
}

// Iterations of loops that are not serial reduce to different elements.
absl::Status CheckNoneAtOnce(const NewPlace& place, const std::string& where) {
  const BlockRealize& realize = *place.realize;
  std::vector<Expr> elements;
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (!Reduces(realize.block.iters[i])) elements.push_back(realize.values[i]);
  }
  const auto chooses = [&](const Var& var) {
    return std::ranges::any_of(elements, [&](const Expr& element) { return UsesVar(element, var); });
  };
  const For* at_once = nullptr;
  VarRanges domains;
  for (const For* loop : place.around) {
    if (!IsSerial(*loop)) at_once = loop;
    if (!IsSerial(*loop) || chooses(loop->var)) domains[loop->var] = Range{loop->min, loop->extent};
  }
  if (at_once == nullptr) return absl::OkStatus();
  for (const auto& [var, range] : place.nest) {
    if (chooses(var)) domains[var] = range;
  }
  if (IsInjective(elements, domains, True())) return absl::OkStatus();
  return Refused(where, ": loop ", at_once->var, " is ", Describe(at_once->kind),
                 ", and two of its iterations would reduce to one element at the same time; choose a loop outside it");
}

// The parts of the reduction variable i that iterations give come one after the other, in rising order: the loops that
// choose them are serial, or CheckNoneAtOnce refused.
absl::Status CheckRises(const NewPlace& place, const std::vector<Var>& loops, size_t i, const std::string& where) {
  const BlockRealize& realize = *place.realize;
  const Var& iter = realize.block.iters[i].var;
  const std::optional<LinearForm> form = DetectLinear(realize.values[i], loops);
  if (!form.has_value()) {
    return Refused(where, ": one iteration gives a part of the reduction over ", iter, ", at ", realize.values[i],
                   ", which is no sum of loops; the init might not come first");
  }
  for (size_t l = 0; l < loops.size(); ++l) {
    if (form->coefficients[l] == 0) continue;
    if (form->coefficients[l] < 0) {
      return Refused(where, ": loop ", loops[l], " gives the parts of the reduction over ", iter,
                     " in falling order, so the init would not come first");
    }
    for (size_t other = 0; other < realize.values.size(); ++other) {
      if (other == i || !UsesVar(realize.values[other], loops[l])) continue;
      return Refused(where, ": loop ", loops[l], " gives parts of ", iter, ", which reduces, and of ",
                     realize.block.iters[other].var, " at once; choose a loop outside it");
    }
  }
  return absl::OkStatus();
}

bool CoversAll(const Part& part, const Range& range, Analyzer& known) {
  return !part.last && known.CanProve(part.min <= range.min) &&
         known.CanProve(part.min + part.extent >= range.min + range.extent);
}

}  // namespace

absl::Status CheckMovedReduction(const ProgramIndex& index, const Move& move, const std::vector<Part>& parts,
                                 const std::vector<Range>& ranges, const Stmt& nest) {
  const int common = AroundBoth(index, move);
  HONE_RETURN_IF_ERROR(CheckReducesWhereItStands(index, move, common));
  const NewPlace place = PlaceOf(index, move, nest);
  HONE_RETURN_IF_ERROR(CheckNoneAtOnce(place, move.where));
  Analyzer known(RangesAroundPlace(index, move));
  const std::vector<IterVar>& iters = place.realize->block.iters;
  std::vector<size_t> in_parts;
  for (size_t i = 0; i < iters.size(); ++i) {
    if (Reduces(iters[i]) && !CoversAll(parts[i], ranges[i], known)) in_parts.push_back(i);
  }
  if (in_parts.empty()) return absl::OkStatus();
  VarRanges domains = place.nest;
  for (const For* loop : place.around) {
    if (index.FindLoop(loop->var) > common) domains[loop->var] = Range{loop->min, loop->extent};
  }
  std::vector<Var> loops;
  for (const auto& [var, range] : domains) loops.push_back(var);
  for (size_t i = 0; i < iters.size(); ++i) {
    if (Reduces(iters[i])) HONE_RETURN_IF_ERROR(CheckRises(place, loops, i, move.where));
  }
  if (!IsInjective(place.realize->values, domains, True())) {
    return Refused(move.where, ": one iteration gives a part of the reduction over ", iters[in_parts[0]].var,
                   ", and parts of several iterations hold the same terms, which would be added more than once");
  }
  return absl::OkStatus();
}

}  // namespace hone
