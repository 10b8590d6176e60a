#include "compiler/schedule/primitives/loop_kind.h"

#include <utility>

#include "compiler/arith/iter_map.h"
#include "compiler/arith/linear.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Do different iterations of the loop, all else equal, give different instances of the block?
bool TellsIterationsApart(const ProgramIndex& index, int block, const For& loop) {
  const BlockRealize& realize = index.realize(block);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (realize.block.iters[i].kind != IterKind::kSpatial) continue;
    const std::optional<int64_t> stride = StrideOf(realize.values[i], loop.var);
    if (stride.has_value() && *stride != 0) return true;
  }
  const VarRanges loops = RangesAround(index, block);
  Analyzer known(loops);
  return CheckBindings(realize, loops, known).ok();
}

// The iterations of the loop may run in any order, or at once: no two of them touch one element that one of them
// writes.
absl::Status CheckDataParallel(const ProgramIndex& index, int node, std::string_view primitive) {
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
    bool used = false;
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if (!UsesVar(realize.values[i], loop.var)) continue;
      if (block.iters[i].kind != IterKind::kSpatial) {
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
    if (!TellsIterationsApart(index, b, loop)) {
      return Refused(primitive, "(", loop.var, "): the bindings of block ", block.name,
                     " do not tell the iterations apart, so two of them "
                     "may write one element");
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
  static constexpr std::string_view kAxes[] = {"blockIdx.x",  "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y",
                                               "threadIdx.z", "vthread.x",  "vthread.y",  "vthread.z"};
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "bind"));
  const ProgramIndex& index = schedule.index();
  const For& loop = index.loop(node);
  HONE_RETURN_IF_ERROR(CheckSerial(loop, "bind"));
  bool found = false;
  for (const std::string_view axis : kAxes) found |= axis == thread_axis;
  if (!found)
    return Invalid("bind(", loop.var, "): there is no thread axis ", thread_axis,
                   "; there are blockIdx, threadIdx and vthread with .x, .y, .z");
  for (int n = index.parent(node); n >= 0; n = index.parent(n)) {
    if (index.IsLoop(n) && index.loop(n).thread == thread_axis) {
      return Refused("bind(", loop.var, "): loop ", index.loop(n).var, " around it is bound to ", thread_axis,
                     " already");
    }
  }
  HONE_RETURN_IF_ERROR(CheckDataParallel(index, node, "bind"));
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
