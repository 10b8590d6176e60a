// The way of a build's reply that is larger than a message: through the daemon, in chunks, from the worker that built
// it to the one that asked for it. Both name it by its SHA-256.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "hone/v1/build.pb.h"
#include "worker/agent/session/session.h"

namespace hone {

// Of what others asked for, before it is reported. Where it does not fit into a Sync, its reply goes to the daemon, and
// the outcome names it. A daemon that has no room for it, or is away, is tried again for a while; the outcome is an
// infrastructure failure then, and a failure of the build where the reply is larger than any daemon carries.
void DepositIfLarge(Session& session, v1::BuildOutcome* outcome);

// The reply that `outcome` names, back in it. NotFound when the daemon has none such, or no longer, DataLoss when what
// it has is not what it is called.
absl::Status TakeDeposit(Session& session, absl::Duration timeout, v1::BuildOutcome* outcome);

}  // namespace hone
