// The verifier: what every pass and primitive may rely on.
//
// Checks: variables are used inside their scope and defined once; types agree; a block's values and domains match in number;
// regions name buffers in scope with as many ranges as dimensions; stores and loads have as many indices as the buffer has
// dimensions; params, then allocations, define every buffer used; constant indices lie inside the shape. It names the rule
// broken and the place: "store-rank: block Y: Y[vi] has 1 index, the buffer has 2 dimensions".
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace hone {

absl::Status Verify(const PrimFunc& f);

}  // namespace hone
