// What the agent makes of a builder's answer. A compiler that was given a stranger's program wrote it: it is carried to
// the daemon in a message of ours, which must stay one that can be read.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "hone/v1/build.pb.h"
#include "hone/v1/common.pb.h"

namespace hone {

// DataLoss when the bytes are no answer to the request of that id, or IsBuildReply says no.
absl::Status ReadBuildReply(const std::string& bytes, uint64_t id, v1::BuildReply* reply);
// Whether what goes into an outcome has the size that it has in earnest, wherever the reply comes from.
bool IsBuildReply(const v1::BuildReply& reply);

// The outcome of a trial whose program that is: of a failure its kind and the reason, else no kind yet.
v1::Outcome OutcomeOfBuild(const v1::BuildOutcome& built);
// That of a trial whose task could not be prepared: nobody's where the machine, the network or the sandbox was in the
// way, its own where the workload is at fault.
v1::Outcome OutcomeOfUnprepared(const absl::Status& status);
// The longest reason that an outcome states has 400 bytes.
void SetFailure(v1::Outcome* outcome, v1::OutcomeKind kind, const std::string& detail);

}  // namespace hone
