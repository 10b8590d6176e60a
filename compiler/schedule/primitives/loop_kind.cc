#include "compiler/schedule/primitives/loop_kind.h"

#include <string>
#include <utility>

#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/data_parallel.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

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
