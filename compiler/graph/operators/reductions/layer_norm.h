// What importing normalisations shares.
#pragma once

#include "absl/status/status.h"
#include "compiler/graph/operators/node_context.h"

namespace hone {

// Statistics are computed in float32 at least, which is all that the attribute stash_type may ask for.
absl::Status CheckStashType(NodeContext& context);

}  // namespace hone
