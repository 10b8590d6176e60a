// Equality and hash of steps, over their fields: two steps are the same exactly when their texts are.
#pragma once

#include <cstdint>

#include "compiler/schedule/step.h"

namespace hone {

bool SameStep(const Step& a, const Step& b);
// Agrees with SameStep; the same in every process.
uint64_t HashOf(const Step& step);

}  // namespace hone
