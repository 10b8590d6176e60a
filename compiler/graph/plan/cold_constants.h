// Which kernels of a model find their constants in memory, not in a cache, whenever they are called.
#pragma once

#include "compiler/graph/plan/plan.h"

namespace hone {

// In a model whose constants exceed what one program may count on of a last cache, sets the attribute kColdConstants
// (ir/annotations.h) of every task whose own constants exceed a first cache; fewer are back at once. The bounds are
// those of no machine, since a task and its records are the same on all of them.
void MarkColdConstants(Plan& plan);

}  // namespace hone
