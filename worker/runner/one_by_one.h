// Parallel loops whose iterations run one by one, the last first, each with scratch of its thread and a stack that hold
// what is none (poison.h). Iterations of a parallel loop are independent, in whichever order and on whichever thread
// they run: who reads what another iteration left in scratch, or what an earlier one wrote elsewhere, shows it in the
// outputs here, where in the usual order it may find the right value by chance.
#pragma once

#include <cstdint>

#include "deploy/runtime/kernel_abi.h"
#include "deploy/runtime/run/thread_pool.h"

namespace hone {

struct OneByOne {
  ThreadPool* pool = nullptr;
  char* thread_scratch = nullptr;  // as in HoneCall
  int64_t thread_scratch_stride = 0;
  int64_t thread_scratch_bytes = 0;  // of each area, from its start
  int set = 0;                       // of inputs: which poison

  // As HoneCall::parallel_for takes it; `pool` is a OneByOne. Of long loops not every iteration finds its memory
  // poisoned, but so many as take some 10 ms of a thread, evenly spread.
  static int32_t ParallelFor(void* pool, HoneTaskFn fn, void* closure, int64_t extent);
};

}  // namespace hone
