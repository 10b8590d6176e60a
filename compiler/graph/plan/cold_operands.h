// Which operands of a model's kernels are in memory, not in a cache, whenever they are called.
#pragma once

#include "compiler/graph/plan/plan.h"

namespace hone {

// In a model whose constants exceed what one program may count on of a last cache, sets attributes (ir/annotations.h):
// kColdConstants of every task whose own constants exceed a first cache; fewer are back at once. kColdOutputs of every
// task that writes more than that to an output of the model, in all of its steps: by the next call the constants have
// been read. The bounds are those of no machine, since a task and its records are the same on all of them.
void MarkColdOperands(Plan& plan);

}  // namespace hone
