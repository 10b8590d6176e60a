#include "compiler/schedule/primitives/reorder.h"

#include <algorithm>
#include <utility>

#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Iterations of the nest may run in another order when each is complete in itself: whatever a block in it reads of
// another block in it was produced in the same iteration.
absl::Status CheckIndependent(const ProgramIndex& index, const std::vector<int>& chain, const std::string& names) {
  const int innermost = chain.back();
  const std::vector<int> blocks = index.BlocksBelow(innermost);
  for (const int b : blocks) {
    const BlockRealize& realize = index.realize(b);
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if (realize.block.iters[i].kind == IterKind::kOpaque) {
        return Refused("reorder(", names, "): the order of ", realize.block.iters[i].var, " of block ",
                       realize.block.name, " counts");
      }
    }
    // An init runs before the instance at the start of the reduction, which must stay the first of its element: so it
    // does when every loop is of one kind, and not when a loop that was fused of both kinds was split and is taken
    // apart.
    for (const int n : realize.block.init ? chain : std::vector<int>()) {
      bool spatial = false, reduce = false;
      for (size_t i = 0; i < realize.values.size(); ++i) {
        if (UsesVar(realize.values[i], index.loop(n).var))
          (realize.block.iters[i].kind == IterKind::kSpatial ? spatial : reduce) = true;
      }
      if (spatial && reduce) {
        return Refused("reorder(", names, "): loop ", index.loop(n).var,
                       " runs over spatial and reduce variables of block ", realize.block.name,
                       " at once; reorder before fusing them");
      }
    }
    if (HasReduction(realize.block)) {
      VarRanges loops;
      for (int n = index.parent(b); n >= chain[0]; n = index.parent(n)) {
        if (index.IsLoop(n)) loops[index.loop(n).var] = Range{index.loop(n).min, index.loop(n).extent};
      }
      if (!IsInjective(realize.values, loops, realize.predicate)) {
        return Refused("reorder(", names, "): block ", realize.block.name,
                       " below computes some elements more than once, and sums of "
                       "different times would mix");
      }
    }
    if (UpdatesInPlace(realize.block)) {
      // An update after its own init was split off: a reduction only if what it updates is told apart by spatial
      // variables.
      bool reduces = std::any_of(realize.block.iters.begin(), realize.block.iters.end(),
                                 [](const IterVar& it) { return it.kind == IterKind::kReduce; });
      if (!reduces) return Refused("reorder(", names, "): block ", realize.block.name, " reads what it writes");
    }
  }
  if (blocks.size() < 2) return absl::OkStatus();
  for (const int consumer : blocks) {
    for (const BufferRegion& read : index.block(consumer).reads) {
      for (const int producer : blocks) {
        if (producer == consumer || !Writes(index.block(producer), read.buffer)) continue;
        if (!CoveredWithin(index, innermost, producer, consumer, read.buffer)) {
          return Refused("reorder(", names, "): block ", index.block(consumer).name, " may read of ", read.buffer,
                         " what block ", index.block(producer).name, " wrote in another iteration");
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Reorder(Schedule& schedule, std::vector<LoopRef> loops) {
  if (loops.empty()) return Invalid("reorder(): no loops given");
  const ProgramIndex& index = schedule.index();
  std::vector<int> order;  // as asked for
  std::string names;
  for (const LoopRef& ref : loops) {
    HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "reorder"));
    if (std::find(order.begin(), order.end(), node) != order.end()) {
      return Invalid("reorder(): loop ", index.loop(node).var, " is named twice");
    }
    order.push_back(node);
    names += Message(names.empty() ? "" : ", ", index.loop(node).var);
  }
  std::vector<int> places = order;  // parents come before children in node order
  std::sort(places.begin(), places.end());
  const int top = places.front(), bottom = places.back();
  std::vector<int> chain;  // every loop from top to bottom
  for (int n = bottom; n != top; n = index.parent(n)) {
    if (n < top || !index.IsLoop(n)) {
      return Refused("reorder(", names, "): loops ", index.loop(top).var, " and ", index.loop(bottom).var,
                     " are not in one nest without branches: ",
                     n < top ? "one is not inside the other" : "there are other statements between them");
    }
    chain.push_back(n);
  }
  chain.push_back(top);
  std::reverse(chain.begin(), chain.end());
  for (const int n : places) {
    if (std::find(chain.begin(), chain.end(), n) == chain.end()) {
      return Refused("reorder(", names, "): loop ", index.loop(n).var, " does not lie between loops ",
                     index.loop(top).var, " and ", index.loop(bottom).var);
    }
  }
  std::vector<int> arranged = chain;  // the new order of the chain
  for (size_t i = 0, next = 0; i < chain.size(); ++i) {
    if (std::find(places.begin(), places.end(), chain[i]) != places.end()) arranged[i] = order[next++];
  }
  if (arranged != chain) {
    for (size_t i = 0; i < arranged.size(); ++i) {
      const For& outer = index.loop(arranged[i]);
      for (size_t k = i; k < arranged.size(); ++k) {
        const Var& var = index.loop(arranged[k]).var;
        if (UsesVar(outer.min, var) || UsesVar(outer.extent, var)) {
          return Refused("reorder(", names, "): the bounds of loop ", outer.var, " depend on loop ", var,
                         ", which would be inside it");
        }
      }
    }
    HONE_RETURN_IF_ERROR(CheckIndependent(index, chain, names));
  }
  // ---- nothing below fails ----
  if (arranged != chain) {
    Stmt nest = index.loop(bottom).body;
    for (size_t i = arranged.size(); i-- > 0;) nest = WithBody(index.loop(arranged[i]), std::move(nest));
    schedule.SetBody(index.Replace(top, std::move(nest)));
  }
  schedule.Record(ReorderStep{.loops = std::move(loops)}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const ReorderStep& step) { return Reorder(schedule, step.loops); }

HONE_PRIMITIVES(reorder, ReorderStep)

}  // namespace hone
