#include "worker/builder/read_request.h"

#include "compiler/ir/wire_numeric.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"

namespace hone {

absl::StatusOr<PrimFunc> ReadWorkload(const v1::BuildRequest& request) {
  HONE_ASSIGN_OR_RETURN(PrimFunc workload, ParsePrimFunc(request.workload()));
  HONE_RETURN_IF_ERROR(Annotate(Verify(workload), "the workload"));
  return workload;
}

absl::StatusOr<ScheduledProgram> ReadCandidate(const v1::BuildRequest& request, const PrimFunc& workload) {
  HONE_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(request.trace()));
  if (NumericLevelOf(trace) > FromWire(request.numeric())) {
    return absl::InvalidArgumentError("the trace chooses an algorithm that numeric level strict does not allow");
  }
  HONE_ASSIGN_OR_RETURN(const Schedule schedule, Replay(trace, workload));
  return schedule.Program();
}

}  // namespace hone
