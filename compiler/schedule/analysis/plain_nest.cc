#include "compiler/schedule/analysis/plain_nest.h"

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"

namespace hone {

absl::StatusOr<PlainNest> FindPlainNest(const ProgramIndex& index, int node, const std::string& where) {
  const BlockRealize& realize = index.realize(node);
  const std::vector<int> loops = index.LoopsAbove(node);
  for (const int n : loops) {
    const For& loop = index.loop(n);
    if (index.BlocksBelow(n).size() != 1 || !(index.IsLoop(n + 1) || n + 1 == node)) {
      return Refused(where, ": loop ", loop.var, " holds more than the block; do this before other blocks move there");
    }
    if (loop.kind != ForKind::kSerial) {
      return Refused(where, ": loop ", loop.var, " is ", Describe(loop.kind), "; do this before it is made so");
    }
  }
  if (!IsConst(realize.predicate, 1))
    return Refused(where, ": the block runs only where ", realize.predicate, "; do this before its loops are split");
  PlainNest nest;
  std::vector<bool> taken(loops.size(), false);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const IterVar& iter = realize.block.iters[i];
    const std::optional<int64_t> extent = ConstantValue(iter.domain.extent);
    if (!extent.has_value() || *extent < 1 || !IsConst(iter.domain.min, 0))
      return Refused(where, ": the domain of ", iter.var, " is not [0, a number)");
    nest.extents.push_back(*extent);
    nest.loops.push_back(-1);
    const VarRef* use = realize.values[i].As<VarRef>();
    for (size_t k = 0; use != nullptr && k < loops.size(); ++k) {
      const For& loop = index.loop(loops[k]);
      if (taken[k] || !loop.var.SameAs(use->var) || !IsConst(loop.min, 0) || !IsConst(loop.extent, *extent)) continue;
      taken[k] = true;
      nest.loops.back() = loops[k];
    }
    if (nest.loops.back() < 0 && !(*extent == 1 && IsConst(realize.values[i], 0))) {
      return Refused(where, ": ", iter.var, " is ", realize.values[i],
                     ", not a loop over its whole domain; do this before its loops are split, fused or moved");
    }
  }
  for (size_t k = 0; k < loops.size(); ++k) {
    if (!taken[k] && !IsConst(index.loop(loops[k]).extent, 1))
      return Refused(where, ": loop ", index.loop(loops[k]).var, " is none of the block's iteration variables");
  }
  return nest;
}

}  // namespace hone
