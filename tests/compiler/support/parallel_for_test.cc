#include "compiler/support/parallel_for.h"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(ParallelFor, CallsEachIndexOnce) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{1000}}) {
    for (const int threads : {-1, 1, 3, 16}) {
      std::vector<std::atomic<int>> calls(count);
      ParallelFor(count, threads, [&](size_t i) { ++calls[i]; });
      for (const std::atomic<int>& c : calls) EXPECT_EQ(c, 1);
    }
  }
}

TEST(ParallelFor, RunsOnThatManyThreads) {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> waiting{0};
  ParallelFor(4, 4, [&](size_t) {
    ++waiting;
    while (waiting < 4) std::this_thread::yield();  // each call waits for the others: all run at the same time
    const std::lock_guard<std::mutex> guard(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 4u);
}

}  // namespace
}  // namespace hone
