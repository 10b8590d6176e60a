// Parallel loops whose iterations run one by one, as some sets of inputs are verified.
#include "worker/runner/one_by_one.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "gtest/gtest.h"
#include "worker/runner/poison.h"

namespace hone::testing {
namespace {

constexpr int kThreads = 3;
constexpr int64_t kArea = 256, kUsed = 192;

// What iterations saw, in the order in which they began.
struct Seen {
  struct One {
    int64_t begin, end;
    int32_t thread;
    bool poisoned;  // its scratch
  };
  std::vector<char> scratch = std::vector<char>(kThreads * kArea);
  std::vector<One> iterations;
  std::mutex mutex;
  int64_t fails = -1;

  int32_t Run(int64_t extent) {
    const RuntimeResult<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(kThreads);
    OneByOne how = {(*pool).get(), scratch.data(), kArea, kUsed, 1};
    const auto task = [](void* closure, int64_t begin, int64_t end, int32_t thread) -> int32_t {
      auto& seen = *static_cast<Seen*>(closure);
      char* area = seen.scratch.data() + thread * kArea;
      const std::lock_guard<std::mutex> lock(seen.mutex);
      seen.iterations.push_back({begin, end, thread, IsPoisoned(area, 0, kUsed, 1)});
      std::memset(area, 0, kUsed);
      return begin == seen.fails ? 7 : 0;
    };
    return OneByOne::ParallelFor(&how, task, this, extent);
  }
};

TEST(OneByOne, EveryIterationRunsOnceAndFindsNothingOfAnother) {
  for (const int64_t extent : {0, 1, 2, 3, 100}) {
    Seen seen;
    EXPECT_EQ(seen.Run(extent), 0);
    std::vector<int64_t> order;
    for (const Seen::One& one : seen.iterations) {
      EXPECT_EQ(one.end, one.begin + 1);
      EXPECT_TRUE(one.poisoned) << one.begin << " of " << extent;
      order.push_back(one.begin);
    }
    std::sort(order.begin(), order.end());
    ASSERT_EQ(static_cast<int64_t>(order.size()), extent);
    for (int64_t i = 0; i < extent; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
    for (int32_t thread = 0; thread < kThreads; ++thread) {
      int64_t before = extent;
      for (const Seen::One& one : seen.iterations) {
        if (one.thread != thread) continue;
        EXPECT_LT(one.begin, before) << "the last come first";
        before = one.begin;
      }
    }
  }
}

TEST(OneByOne, OfALongLoopIterationsAllAlongFindPoison) {
  Seen seen;
  constexpr int64_t kExtent = 300'000;
  EXPECT_EQ(seen.Run(kExtent), 0);
  ASSERT_EQ(static_cast<int64_t>(seen.iterations.size()), kExtent);
  std::vector<int64_t> poisoned;
  for (const Seen::One& one : seen.iterations) {
    if (one.poisoned) poisoned.push_back(one.begin);
  }
  std::sort(poisoned.begin(), poisoned.end());
  EXPECT_GT(poisoned.size(), 1000u);
  EXPECT_LT(static_cast<int64_t>(poisoned.size()), kExtent);
  for (size_t i = 1; i < poisoned.size(); ++i) ASSERT_LT(poisoned[i] - poisoned[i - 1], kExtent / 500);
}

TEST(OneByOne, AFailureIsTold) {
  Seen seen;
  seen.fails = 50;
  EXPECT_EQ(seen.Run(100), 7);
}

}  // namespace
}  // namespace hone::testing
