// The refs inside a step, whatever its type.
#pragma once

#include "absl/functional/function_ref.h"
#include "compiler/schedule/step.h"

namespace hone {

void ForEachRef(const Step& step, absl::FunctionRef<void(int step, int output)> visit);
// As above; what visit sets takes the ref's place.
void RewriteRefs(Step& step, absl::FunctionRef<void(int& step, int& output)> visit);

}  // namespace hone
