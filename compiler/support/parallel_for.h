// A loop whose iterations are independent, on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace hone {

// Calls work(i) once for every i in [0, count), on the calling thread and up to `threads` - 1 others, in any order.
// Returns when all calls have returned.
void ParallelFor(size_t count, int threads, const std::function<void(size_t)>& work);

}  // namespace hone
