// Whether the iterations of a loop may be run at once: by lanes of a vector, by tasks, by threads of a GPU.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "compiler/schedule/analysis/program_index.h"

namespace hone {

// OK where no two iterations of the loop touch one element that one of them writes, and of threads no two that differ
// along any axis of their launch, unless those of `axis` (empty: the loop is bound to none) reduce together. Otherwise
// Refused, in words that begin with the primitive: "vectorize", "parallel" or "bind".
absl::Status CheckDataParallel(const ProgramIndex& index, int node, std::string_view primitive,
                               std::string_view axis = "");

}  // namespace hone
