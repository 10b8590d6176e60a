// Random schedules of the shapes that GPUs want: a tiled product through shared memory, a reduction by the threads of a
// block, a softmax of which every block does a row.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/random.h"
#include "tests/compiler/schedule/workload_table.h"

namespace hone::testing {

struct ThreadSchedule {
  SmallWorkload workload;
  std::string shape;  // "product", "pipelined product", "asynchronous product", "reduction", "softmax"
  Schedule schedule;
};

// Sizes with tails, thread counts that divide nothing, scopes, places and kinds of loops drawn from the random numbers.
ThreadSchedule DrawThreadSchedule(Random& random);

// A product of large tiles, whose results the threads stage in shared memory, where operands were, and copy from there
// together; one in two with a pipeline.
ThreadSchedule DrawStagedProduct(Random& random);

// A product by the warps of a block: fragments of mma.sync in registers, tiles in shared memory that all threads fetch
// together, asynchronously in a pipeline or not. No schedule: a program as LowerThreads takes it.
struct WarpProgram {
  SmallWorkload workload;
  PrimFunc program;
};
WarpProgram DrawWarpProduct(Random& random);

}  // namespace hone::testing
