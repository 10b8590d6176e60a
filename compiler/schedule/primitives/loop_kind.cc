#include "compiler/schedule/primitives/loop_kind.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/interval_set.h"
#include "compiler/arith/iter_map.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/reduction.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The size m * c of an index that ends in x % m * c; otherwise that of the domain.
Expr SizeOf(const Expr& value, const Expr& domain) {
  Expr size = domain;
  ForEachExpr(value, [&](const Expr& e) {
    const Binary* scaled = e.As<Binary>();
    const bool times = scaled != nullptr && scaled->op == BinaryOp::kMul && ConstantValue(scaled->b).has_value();
    const Binary* remainder = (times ? scaled->a : e).As<Binary>();
    const bool found =
        remainder != nullptr && remainder->op == BinaryOp::kFloorMod && ConstantValue(remainder->b).has_value();
    if (found) size = times ? remainder->b * scaled->b : remainder->b;
    return !found;
  });
  return size;
}

// One number made of the values that depend on the loop, so that where it differs they differ: those of fused loops,
// f // 8 and f % 8, give f.
Expr Joined(const BlockRealize& realize, const Var& loop) {
  Expr joined = IntConst(0);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (realize.block.iters[i].kind != IterKind::kSpatial || !UsesVar(realize.values[i], loop)) continue;
    joined = joined * SizeOf(realize.values[i], realize.block.iters[i].domain.extent) + realize.values[i];
  }
  return joined;
}

// True if distinct iterations of the loop, all else equal, give distinct instances of the block (the bindings are
// injective in its variable).
bool IsInjective(const ProgramIndex& index, int block, const For& loop) {
  const BlockRealize& realize = index.realize(block);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (realize.block.iters[i].kind != IterKind::kSpatial) continue;
    const std::optional<int64_t> stride = StrideOf(realize.values[i], loop.var);
    if (stride.has_value() && *stride != 0) return true;
  }
  const VarRanges loops = RangesAround(index, block);
  Analyzer known(loops);
  if (const std::optional<int64_t> stride = StrideOf(known.Simplify(Joined(realize, loop.var)), loop.var);
      stride.value_or(0) != 0)
    return true;
  return CheckBindings(realize, loops, known).ok();
}

bool UsesAny(const Expr& e, const std::vector<Var>& vars) {
  return std::ranges::any_of(vars, [&](const Var& var) { return UsesVar(e, var); });
}

// Returns whether all that is added up in one element is added in one iteration of the loop, which moves spatial
// variables of the block alone. It is where the loops inside move either spatial variables or others: an iteration that
// writes the element has all of its sum then. A loop inside that moves both, such as one made of fused loops of either
// kind, may carry the element over to the next iteration, unless it moves it by less than this loop does.
bool KeepsSumsTogether(const ProgramIndex& index, int node, int block) {
  const BlockRealize& realize = index.realize(block);
  const auto moved_by = [&](const Var& var, bool spatial) {
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if ((realize.block.iters[i].kind == IterKind::kSpatial) == spatial && UsesVar(realize.values[i], var))
        return true;
    }
    return false;
  };
  const Var& var = index.loop(node).var;
  std::vector<Var> spatial = {var}, others;
  VarRanges inside;
  bool mixed = false;
  for (const int n : index.LoopsBetween(node, block)) {
    const For& loop = index.loop(n);
    if (IsConst(loop.extent, 1)) continue;
    inside[loop.var] = Range{loop.min, loop.extent};
    const bool is_spatial = moved_by(loop.var, true), is_other = moved_by(loop.var, false);
    mixed |= is_spatial && is_other;
    if (is_spatial) spatial.push_back(loop.var);
    if (is_other) others.push_back(loop.var);
  }
  for (const Expr& part : Conjuncts(realize.predicate)) mixed |= UsesAny(part, spatial) && UsesAny(part, others);
  if (!mixed) return true;
  Analyzer known(RangesAround(index, block));
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (realize.block.iters[i].kind != IterKind::kSpatial) continue;
    const std::optional<int64_t> stride = StrideOf(realize.values[i], var);
    const std::optional<int64_t> values = MaxExtent(EvalSet(realize.values[i], ToSets(inside), known), known);
    if (stride.has_value() && values.has_value() && *values <= std::abs(*stride)) return true;
  }
  return false;
}

// Returns whether threads can reduce together: x = x OP v, in any order.
bool ReducesInAnyOrder(const Block& block) {
  const Store* store = block.body.As<Store>();
  return store != nullptr && MatchUpdate(*store).has_value();
}

bool HasWhile(const Block& block) {
  bool found = false;
  ForEachStmt(block.body, [&](const Stmt& stmt) {
    found |= stmt.As<While>() != nullptr;
    return !found;
  });
  return found;
}

// The iterations of the loop may run in any order, or at once: no two of them touch one element that one of them
// writes, unless the threads of `reducing_axis` (empty: none) reduce together.
absl::Status CheckDataParallel(const ProgramIndex& index, int node, std::string_view primitive,
                               std::string_view reducing_axis = "") {
  const For& loop = index.loop(node);
  if (IsConst(loop.extent, 1)) return absl::OkStatus();
  for (const int b : index.BlocksBelow(node)) {
    const BlockRealize& realize = index.realize(b);
    const Block& block = realize.block;
    if (block.writes.empty() && primitive == "vectorize") {
      return Refused(
          primitive, "(", loop.var, "): block ", block.name,
          " below writes nothing, so it is there for its effect, once an iteration; vectorize a loop inside");
    }
    if (primitive == "vectorize" && HasWhile(block)) {
      return Refused(primitive, "(", loop.var, "): block ", block.name,
                     " below has a while loop, which may end at another time in each lane; unroll the loop, or make it "
                     "parallel");
    }
    bool used = false, must_be_injective = true;  // in the loop's variable, but for a reduction by threads
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if (!UsesVar(realize.values[i], loop.var)) continue;
      const bool together = block.iters[i].kind == IterKind::kReduce && reducing_axis.starts_with("threadIdx") &&
                            ReducesInAnyOrder(block);
      if (together) must_be_injective = false;
      if (block.iters[i].kind != IterKind::kSpatial && !together) {
        return Refused(primitive, "(", loop.var, "): the loop runs over ", block.iters[i].var, " of block ", block.name,
                       ", a ", block.iters[i].kind == IterKind::kReduce ? "reduction" : "variable whose order counts",
                       "; choose a loop of spatial variables, or rfactor the reduction first");
      }
      used = true;
    }
    bool shared = false;  // somebody outside the loop sees what the block writes
    for (const BufferRegion& write : block.writes) shared |= !IsPrivateTo(index, node, write.buffer);
    if (!shared && primitive != "vectorize") continue;
    if (!used) {
      return Refused(primitive, "(", loop.var, "): block ", block.name,
                     " below does not depend on the loop, so every iteration writes the "
                     "same elements; move the block out of the loop");
    }
    if (must_be_injective && !KeepsSumsTogether(index, node, b)) {
      return Refused(primitive, "(", loop.var, "): a loop inside moves both what block ", block.name,
                     " writes and what it adds up, so the sum of one element may be spread over iterations; split the "
                     "spatial and the reduce loops before they are fused");
    }
    if (must_be_injective && !IsInjective(index, b, loop)) {
      return Refused(primitive, "(", loop.var, "): the bindings of block ", block.name,
                     " do not tell the iterations apart, so two of them "
                     "may write one element");
    }
  }
  return absl::OkStatus();
}

// A loop over threads inside one over the same axis: the copy into shared memory that all threads do together, once for
// all iterations of the loop outside. So nothing inside may depend on that, and what is written must be seen by all.
absl::Status CheckBoundAgain(const ProgramIndex& index, int node, int outer) {
  const For &loop = index.loop(node), &around = index.loop(outer);
  const std::string where =
      Message("bind(", loop.var, "): loop ", around.var, " around it is bound to ", around.thread);
  if (!around.thread.starts_with("threadIdx")) return Refused(where, " already");
  if (!ConstantValue(loop.extent).has_value() || ConstantValue(loop.extent) != ConstantValue(around.extent)) {
    return Refused(where, " already, with the extent ", around.extent, ", not ", loop.extent,
                   "; split by the number of threads");
  }
  for (const int b : index.BlocksBelow(node)) {
    const BlockRealize& realize = index.realize(b);
    bool depends = UsesVar(realize.predicate, around.var);
    for (const Expr& value : realize.values) depends |= UsesVar(value, around.var);
    for (const int n : index.LoopsBetween(outer, b))
      depends |= UsesVar(index.loop(n).min, around.var) || UsesVar(index.loop(n).extent, around.var);
    if (depends) {
      return Refused(where, " already, and block ", realize.block.name,
                     " depends on that; threads do together what all of them need");
    }
    for (const BufferRegion& write : realize.block.writes) {
      if (!IsSharedByThreads(write.buffer.scope())) {
        return Refused(where, " already, and block ", realize.block.name, " writes ", write.buffer, ", in scope ",
                       ToText(write.buffer.scope()), "; threads do together what goes to shared memory");
      }
      if (write.buffer.scope() != Scope::kWarp) continue;
      const std::optional<ThreadExtents> threads = ThreadsAround(index, node);
      if (!threads.has_value() || WarpAxisOf(*threads, ThreadAxisNumber(around.thread)) != WarpAxis::kLanes) {
        return Refused(where, " already, along which threads are of several warps, and block ", realize.block.name,
                       " writes ", write.buffer, ", of which each warp has its own; give it the scope shared");
      }
    }
    if (UpdatesInPlace(realize.block) || HasReduction(realize.block)) {
      return Refused(where, " already, and block ", realize.block.name,
                     " would update its result once for each of them");
    }
  }
  return absl::OkStatus();
}

void SetKind(Schedule& schedule, int node, ForKind kind, std::string thread) {
  For loop = schedule.index().loop(node);
  loop.kind = kind;
  loop.thread = std::move(thread);
  schedule.SetBody(schedule.index().Replace(node, Stmt::Make(std::move(loop))));
}

absl::Status CheckSerial(const For& loop, std::string_view primitive) {
  if (loop.kind == ForKind::kSerial) return absl::OkStatus();
  return Refused(primitive, "(", loop.var, "): the loop is ", Describe(loop.kind), " already");
}

}  // namespace

absl::Status Parallel(Schedule& schedule, LoopRef ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "parallel"));
  const ProgramIndex& index = schedule.index();
  const For& loop = index.loop(node);
  HONE_RETURN_IF_ERROR(CheckSerial(loop, "parallel"));
  for (int n = index.parent(node); n >= 0; n = index.parent(n)) {
    if (!index.IsLoop(n)) continue;
    const ForKind kind = index.loop(n).kind;
    if (kind == ForKind::kParallel || kind == ForKind::kVectorized) {
      return Refused("parallel(", loop.var, "): it lies inside loop ", index.loop(n).var, ", which is ", Describe(kind),
                     "; fuse the two and make that parallel");
    }
  }
  for (int n = node + 1; n < index.node(node).end; ++n) {
    if (index.IsLoop(n) && index.loop(n).kind == ForKind::kParallel) {
      return Refused("parallel(", loop.var, "): loop ", index.loop(n).var, " inside it is parallel already");
    }
  }
  HONE_RETURN_IF_ERROR(CheckDataParallel(index, node, "parallel"));
  // ---- nothing below fails ----
  SetKind(schedule, node, ForKind::kParallel, "");
  schedule.Record(ParallelStep{.loop = ref}, {});
  return absl::OkStatus();
}

absl::Status Vectorize(Schedule& schedule, LoopRef ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "vectorize"));
  const ProgramIndex& index = schedule.index();
  const For& loop = index.loop(node);
  HONE_RETURN_IF_ERROR(CheckSerial(loop, "vectorize"));
  const std::optional<int64_t> extent = ConstantValue(loop.extent);
  if (!extent.has_value()) return Refused("vectorize(", loop.var, "): the extent ", loop.extent, " is not a constant");
  if (*extent > 1024) {
    return Refused("vectorize(", loop.var, "): the extent ", *extent,
                   " is above 1024 lanes; split the loop and vectorize the inner part");
  }
  for (int n = node + 1; n < index.node(node).end; ++n) {
    if (index.IsLoop(n)) {
      if (index.loop(n).kind == ForKind::kVectorized) {
        return Refused("vectorize(", loop.var, "): loop ", index.loop(n).var, " inside it is vectorized already");
      }
      if (index.loop(n).kind == ForKind::kParallel) {
        return Refused("vectorize(", loop.var, "): loop ", index.loop(n).var, " inside it is parallel");
      }
      if (UsesVar(index.loop(n).extent, loop.var) || UsesVar(index.loop(n).min, loop.var)) {
        return Refused("vectorize(", loop.var, "): the bounds of loop ", index.loop(n).var, " inside depend on it");
      }
    }
  }
  for (int n = index.parent(node); n >= 0; n = index.parent(n)) {
    if (index.IsLoop(n) && index.loop(n).kind == ForKind::kVectorized) {
      return Refused("vectorize(", loop.var, "): it lies inside loop ", index.loop(n).var,
                     ", which is vectorized already");
    }
  }
  HONE_RETURN_IF_ERROR(CheckDataParallel(index, node, "vectorize"));
  // ---- nothing below fails ----
  SetKind(schedule, node, ForKind::kVectorized, "");
  schedule.Record(VectorizeStep{.loop = ref}, {});
  return absl::OkStatus();
}

absl::Status Unroll(Schedule& schedule, LoopRef ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "unroll"));
  const For& loop = schedule.index().loop(node);
  HONE_RETURN_IF_ERROR(CheckSerial(loop, "unroll"));
  const std::optional<int64_t> extent = ConstantValue(loop.extent);
  if (!extent.has_value()) return Refused("unroll(", loop.var, "): the extent ", loop.extent, " is not a constant");
  if (*extent > 1024) {
    return Refused("unroll(", loop.var, "): ", *extent,
                   " copies of the body, above 1024; split the loop and unroll the inner part");
  }
  // ---- nothing below fails ----
  SetKind(schedule, node, ForKind::kUnrolled, "");
  schedule.Record(UnrollStep{.loop = ref}, {});
  return absl::OkStatus();
}

absl::Status Bind(Schedule& schedule, LoopRef ref, std::string thread_axis) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "bind"));
  const ProgramIndex& index = schedule.index();
  const For& loop = index.loop(node);
  HONE_RETURN_IF_ERROR(CheckSerial(loop, "bind"));
  bool found = false;
  for (const auto& kind : {kBlockAxes, kThreadAxes, kVirtualThreadAxes})
    for (const std::string_view axis : kind) found |= axis == thread_axis;
  if (!found)
    return Invalid("bind(", loop.var, "): there is no thread axis ", thread_axis,
                   "; there are blockIdx, threadIdx and vthread with .x, .y, .z");
  for (int n = index.parent(node); n >= 0; n = index.parent(n)) {
    if (index.IsLoop(n) && index.loop(n).thread == thread_axis) HONE_RETURN_IF_ERROR(CheckBoundAgain(index, node, n));
  }
  HONE_RETURN_IF_ERROR(CheckDataParallel(index, node, "bind", thread_axis));
  // ---- nothing below fails ----
  SetKind(schedule, node, ForKind::kThreadBinding, thread_axis);
  schedule.Record(BindStep{.loop = ref, .thread_axis = std::move(thread_axis)}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const ParallelStep& step) { return Parallel(schedule, step.loop); }

absl::Status Apply(Schedule& schedule, const VectorizeStep& step) { return Vectorize(schedule, step.loop); }

absl::Status Apply(Schedule& schedule, const UnrollStep& step) { return Unroll(schedule, step.loop); }

absl::Status Apply(Schedule& schedule, const BindStep& step) { return Bind(schedule, step.loop, step.thread_axis); }

HONE_PRIMITIVES(loop_kind, ParallelStep, VectorizeStep, UnrollStep, BindStep)

}  // namespace hone
