#include "compiler/schedule/trace/replay.h"

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status ReplayStep(const Trace& trace, size_t i, Schedule& schedule) {
  const Step& step = trace.steps[i];
  const absl::Status applied = step.Apply(schedule);
  if (!applied.ok()) return Annotate(applied, Message("step ", i, " `", ToText(step), "`"));
  const int outputs = schedule.trace().outputs.back();
  if (outputs != trace.outputs[i] && trace.outputs[i] != 0) {
    return Refused("step ", i, " `", ToText(step), "`: it gave ", outputs, " outputs, the trace names ",
                   trace.outputs[i], "; the trace was made for another program");
  }
  return absl::OkStatus();
}

absl::StatusOr<Schedule> Replay(const Trace& trace, const PrimFunc& workload) {
  if (workload.body.As<BlockRealize>() == nullptr) return absl::InvalidArgumentError("the workload has no root block");
  Schedule schedule(workload);
  for (size_t i = 0; i < trace.steps.size(); ++i) HONE_RETURN_IF_ERROR(ReplayStep(trace, i, schedule));
  return schedule;
}

}  // namespace hone
