#include "compiler/schedule/replay.h"

#include "compiler/schedule/message.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

absl::StatusOr<Scope> ScopeOf(std::string_view text) {
  const std::optional<Scope> scope = ParseScope(text);
  if (!scope.has_value())
    return Invalid("there is no storage scope \"", text, "\"; there are global, local.thread, local, shared");
  return *scope;
}

// One step done again: the free function with the step's arguments. It records the step itself.
struct Applier {
  Schedule& s;

  absl::Status operator()(const GetBlockStep& step) const {
    if (step.func_name != "main" && step.func_name != s.func().name)  // "main" is whatever function there is
      return Invalid("get_block: there is one function, \"", s.func().name, "\", not \"", step.func_name, "\"");
    return GetBlock(s, step.name).status();
  }
  absl::Status operator()(const GetLoopsStep& step) const { return GetLoops(s, step.block).status(); }
  absl::Status operator()(const GetChildBlocksStep& step) const { return GetChildBlocks(s, step.parent).status(); }
  absl::Status operator()(const GetProducersStep& step) const { return GetProducers(s, step.block).status(); }
  absl::Status operator()(const GetConsumersStep& step) const { return GetConsumers(s, step.block).status(); }
  absl::Status operator()(const GetOutputBlocksStep&) const { return GetOutputBlocks(s).status(); }
  absl::Status operator()(const SplitStep& step) const { return Split(s, step.loop, step.factors).status(); }
  absl::Status operator()(const FuseStep& step) const { return Fuse(s, step.loops).status(); }
  absl::Status operator()(const ReorderStep& step) const { return Reorder(s, step.loops); }
  absl::Status operator()(const ParallelStep& step) const { return Parallel(s, step.loop); }
  absl::Status operator()(const VectorizeStep& step) const { return Vectorize(s, step.loop); }
  absl::Status operator()(const UnrollStep& step) const { return Unroll(s, step.loop); }
  absl::Status operator()(const BindStep& step) const { return Bind(s, step.loop, step.thread_axis); }
  absl::Status operator()(const AddUnitLoopStep& step) const { return AddUnitLoop(s, step.inner).status(); }
  absl::Status operator()(const CacheReadStep& step) const {
    HONE_ASSIGN_OR_RETURN(const Scope scope, ScopeOf(step.storage_scope));
    return CacheRead(s, step.block, Index(step.read_buffer_index), scope).status();
  }
  absl::Status operator()(const CacheWriteStep& step) const {
    HONE_ASSIGN_OR_RETURN(const Scope scope, ScopeOf(step.storage_scope));
    return CacheWrite(s, step.block, Index(step.write_buffer_index), scope).status();
  }
  absl::Status operator()(const SetScopeStep& step) const {
    HONE_ASSIGN_OR_RETURN(const Scope scope, ScopeOf(step.storage_scope));
    return SetScope(s, step.block, Index(step.buffer_index), scope);
  }
  absl::Status operator()(const ComputeAtStep& step) const {
    return ComputeAt(s, step.block, step.loop, step.preserve_unit_loops);
  }
  absl::Status operator()(const ReverseComputeAtStep& step) const {
    return ReverseComputeAt(s, step.block, step.loop, step.preserve_unit_loops);
  }
  absl::Status operator()(const ComputeInlineStep& step) const { return ComputeInline(s, step.block); }
  absl::Status operator()(const ReverseComputeInlineStep& step) const { return ReverseComputeInline(s, step.block); }
  absl::Status operator()(const DecomposeReductionStep& step) const {
    return DecomposeReduction(s, step.block, step.loop).status();
  }
  absl::Status operator()(const RfactorStep& step) const {
    return Rfactor(s, step.loop, Index(step.factor_axis)).status();
  }
  absl::Status operator()(const LayoutConstantStep& step) const {
    return LayoutConstant(s, step.block, Index(step.read_buffer_index), step.index_map);
  }
  absl::Status operator()(const TransformLayoutStep& step) const {
    return TransformLayout(s, step.block, step.buffer.index, step.buffer.kind, step.index_map);
  }
  absl::Status operator()(const AnnotateStep& step) const { return Annotate(s, step.target, step.key, step.value); }
  absl::Status operator()(const UnannotateStep& step) const { return Unannotate(s, step.target, step.key); }
  absl::Status operator()(const SamplePerfectTileStep& step) const {
    return SamplePerfectTile(s, step.loop, Index(step.n), step.max_innermost_factor, step.decision).status();
  }
  absl::Status operator()(const SampleCategoricalStep& step) const {
    return SampleCategorical(s, step.candidates, step.probs, Index(step.decision)).status();
  }
  absl::Status operator()(const SampleComputeLocationStep& step) const {
    return SampleComputeLocation(s, step.block, Index(step.decision)).status();
  }
  absl::Status operator()(const ChooseAlgorithmStep& step) const {
    return ChooseAlgorithm(s, step.block, step.algorithm).status();
  }
  absl::Status operator()(const SamplePartitionedTileStep& step) const {
    return SamplePartitionedTile(s, step.loop, Index(step.n), Index(step.partition_pos), step.innerpart_factor,
                                 step.decision)
        .status();
  }
  absl::Status operator()(const ReorderBlockIterVarStep& step) const {
    return ReorderBlockIterVar(s, step.block, step.new_order);
  }
  absl::Status operator()(const ReindexStep& step) const {
    return Reindex(s, step.block, step.buffer.index, step.buffer.kind).status();
  }
  absl::Status operator()(const TransformBlockLayoutStep& step) const {
    return TransformBlockLayout(s, step.block, step.index_map);
  }
  absl::Status operator()(const PadEinsumStep& step) const { return PadEinsum(s, step.block, step.padding); }
  absl::Status operator()(const DecomposePaddingStep& step) const {
    return DecomposePadding(s, step.block, step.loop).status();
  }
  absl::Status operator()(const FuseReductionEpilogueStep& step) const {
    return FuseReductionEpilogue(s, step.reduction_block, step.epilogue_block);
  }
  absl::Status operator()(const StorageAlignStep& step) const {
    return StorageAlign(s, step.block, Index(step.buffer_index), Index(step.axis), step.factor, step.offset);
  }
  absl::Status operator()(const PrefetchStep& step) const {
    return Prefetch(s, step.block, Index(step.read_buffer_index), step.loop, step.distance).status();
  }
  absl::Status operator()(const PackStep& step) const {
    HONE_ASSIGN_OR_RETURN(const Scope scope, ScopeOf(step.storage_scope));
    if (step.tails != "zero" && step.tails != "mask")
      return Invalid("pack: tails are \"zero\" or \"mask\", not \"", step.tails, "\"");
    return Pack(s, step.block, Index(step.read_buffer_index), step.loop, step.index_map,
                step.tails == "zero" ? PanelTails::kZero : PanelTails::kMask, scope)
        .status();
  }
  absl::Status operator()(const BlockizeStep& step) const { return Blockize(s, step.loop).status(); }
  absl::Status operator()(const TensorizeStep& step) const { return Tensorize(s, step.loop, step.intrinsic); }
  absl::Status operator()(const RegisterTileStep& step) const {
    return RegisterTile(s, step.loop, step.lanes, step.unroll);
  }

  // Numbers from a text may be anything; what no program can have becomes what every primitive refuses.
  static int Index(int64_t value) {
    return value < INT32_MIN || value > INT32_MAX ? INT32_MIN : static_cast<int>(value);
  }
};

}  // namespace

absl::Status ReplayStep(const Trace& trace, size_t i, Schedule& schedule) {
  const Step& step = trace.steps[i];
  const absl::Status applied = std::visit(Applier{schedule}, step);
  if (!applied.ok()) return Annotate(applied, Message("step ", i, " `", ToText(step), "`"));
  const int outputs = schedule.trace().outputs.back();
  if (outputs != trace.outputs[i] && trace.outputs[i] != 0) {
    return Refused("step ", i, " `", ToText(step), "`: it gave ", outputs, " outputs, the trace names ",
                   trace.outputs[i], "; the trace was made for another program");
  }
  return absl::OkStatus();
}

absl::StatusOr<Schedule> Replay(const Trace& trace, const PrimFunc& workload) {
  Schedule schedule(workload);
  for (size_t i = 0; i < trace.steps.size(); ++i) HONE_RETURN_IF_ERROR(ReplayStep(trace, i, schedule));
  return schedule;
}

}  // namespace hone
