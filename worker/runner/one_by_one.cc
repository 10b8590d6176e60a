#include "worker/runner/one_by_one.h"

#include <algorithm>

#include "worker/runner/poison.h"

namespace hone {
namespace {

constexpr int64_t kMostPoisonedBytes = 64 << 20;  // by each thread in one loop

struct Loop {
  const OneByOne& how;
  HoneTaskFn fn;
  void* closure;
  int64_t extent;
  int64_t every;  // of so many iterations the first one's memory is poisoned

  static int32_t RunRange(void* argument, int64_t begin, int64_t end, int32_t thread) {
    const Loop& loop = *static_cast<const Loop*>(argument);
    int32_t result = 0;
    for (int64_t i = begin; i < end && result == 0; ++i) {
      if ((i - begin) % loop.every == 0) {
        Poison(loop.how.thread_scratch + thread * loop.how.thread_scratch_stride,
               static_cast<size_t>(loop.how.thread_scratch_bytes), loop.how.set);
        PoisonStack(loop.how.set);
      }
      const int64_t iteration = loop.extent - 1 - i;
      result = loop.fn(loop.closure, iteration, iteration + 1, thread);
    }
    return result;
  }
};

}  // namespace

int32_t OneByOne::ParallelFor(void* pool, HoneTaskFn fn, void* closure, int64_t extent) {
  const OneByOne& how = *static_cast<const OneByOne*>(pool);
  const int64_t of_thread = extent / how.pool->threads() + 1;
  const int64_t at_a_time = how.thread_scratch_bytes + static_cast<int64_t>(kPoisonedStack);
  const int64_t most = std::max<int64_t>(1, kMostPoisonedBytes / at_a_time);
  Loop loop{how, fn, closure, extent, (of_thread + most - 1) / most};
  return how.pool->Run(&Loop::RunRange, &loop, extent);
}

}  // namespace hone
