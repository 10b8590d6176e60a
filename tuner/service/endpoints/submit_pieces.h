// A request of Submit in messages that are small enough to be sent, and put together again.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/tune.pb.h"

namespace hone {

// At least one message, the first with everything but tasks, anchors and parts. InvalidArgument when a task, or what is
// in the first, is larger than a message may be (kLongestMessage).
absl::StatusOr<std::vector<v1::SubmitRequest>> SplitSubmit(const v1::SubmitRequest& request);

// Adds the next message of a request to those before, which `whole` holds. InvalidArgument when it goes on with a part
// that is not there.
absl::Status AppendPiece(v1::SubmitRequest piece, v1::SubmitRequest& whole);

}  // namespace hone
