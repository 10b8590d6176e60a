// How long calls take that run on a pool's threads.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "deploy/runtime/run/thread_pool.h"

namespace hone {

// A call, and what has to be out of the caches before each: constants that come from memory inside a model.
struct TimedCall {
  std::function<void()> run;
  std::vector<std::span<const char>> cold;
};

// Microseconds: the least of a few runs, or where something is cold the median of some. Fewer runs where the call has
// plainly lost against `champion_us` (0: none).
double TimeCalls(const TimedCall& call, ThreadPool& pool, double champion_us);

}  // namespace hone
