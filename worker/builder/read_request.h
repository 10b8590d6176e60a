// What a build request says, read and checked before any code is generated.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/program.h"
#include "hone/v1/build.pb.h"

namespace hone {

// The workload, which the verifier passed.
absl::StatusOr<PrimFunc> ReadWorkload(const v1::BuildRequest& request);
// The workload by the request's trace.
absl::StatusOr<ScheduledProgram> ReadCandidate(const v1::BuildRequest& request, const PrimFunc& workload);

}  // namespace hone
