#include "compiler/support/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace hone {

void ParallelFor(size_t count, int threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  const auto serve = [&] {
    for (size_t i; (i = next++) < count;) work(i);
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min(count, static_cast<size_t>(std::max(threads, 1))); ++t) others.emplace_back(serve);
  serve();
  for (std::thread& other : others) other.join();
}

}  // namespace hone
