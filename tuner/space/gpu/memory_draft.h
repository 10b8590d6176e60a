// The draft of what memory takes for a launch that does little else: loads on their way at once, and sectors of which
// only a part is used.
#pragma once

#include <cstdint>

#include "tuner/space/gpu/gpu_model.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

// How a launch keeps memory busy.
struct Streaming {
  double thread_bytes = 0;  // that a thread has asked for before it waits; 0: it has nothing to wait for
  double idle_us = 0;       // that a block spends between one such wait and the next without loads on their way
};

// Microseconds of a launch whose memory_bytes come at the rate that its bytes in flight allow (Little's law: they are
// bandwidth times latency), and of whose other work a part does not overlap with that.
double StreamingMicroseconds(const LaunchWork& work, const Streaming& streaming, const GpuTarget& target);

// Bytes in the time of which memory gives one, where it is asked for runs of so many bytes in scattered places: whole
// sectors, and its turning to each place.
double SectorsOfRuns(double run_bytes);

// How so many threads agree on a sum (compiler/lower/threads/reduce_across_threads.cc): barriers, and elements that
// they have in shared memory for each that they agree on.
int64_t BarriersOfSum(int64_t threads);
int64_t ElementsOfSum(int64_t threads);
inline constexpr int64_t kBuffersOfSum = 4;  // at most

}  // namespace hone
