// What several threads do at once, in probes.
#pragma once

#include <functional>

#include "deploy/runtime/run/thread_pool.h"

namespace hone {

// Runs `work(thread)` on every thread of the pool; it begins when all are there.
void RunTogether(ThreadPool& pool, const std::function<void(int)>& work);

}  // namespace hone
