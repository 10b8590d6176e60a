#include "deploy/runtime/run/thread_pool.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "deploy/runtime/run/invoke.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/machine_code.h"

namespace hone {
namespace {

std::unique_ptr<ThreadPool> Pool(int threads, bool pin = false) {
  auto pool = ThreadPool::Create({.threads = threads, .pin_workers = pin, .pin_caller = pin});
  EXPECT_TRUE(pool.ok()) << pool.error().message();
  return std::move(*pool);
}

struct Marks {
  explicit Marks(int64_t extent) : count(extent), thread(extent) {}
  static int32_t Mark(void* closure, int64_t begin, int64_t end, int32_t thread) {
    auto& marks = *static_cast<Marks*>(closure);
    for (int64_t i = begin; i < end; ++i) {
      ++marks.count[i];
      marks.thread[i] = thread;
    }
    return 0;
  }
  std::vector<int> count, thread;
};

TEST(ThreadPool, CoversTheRangeOnceInOrderOfThreads) {
  for (const int threads : {1, 2, 3, 7}) {
    const auto pool = Pool(threads);
    for (const int64_t extent : {0, 1, 2, 3, 5, 6, 7, 8, 100, 1000}) {
      Marks marks(extent);
      EXPECT_EQ(pool->Run(&Marks::Mark, &marks, extent), 0);
      EXPECT_EQ(std::accumulate(marks.count.begin(), marks.count.end(), 0), extent);
      for (int64_t i = 0; i < extent; ++i) {
        EXPECT_EQ(marks.count[i], 1);
        if (i > 0) { EXPECT_LE(marks.thread[i - 1], marks.thread[i]); }
        EXPECT_LT(marks.thread[i], threads);
      }
      // Shares differ by one at most.
      for (int t = 0; t < threads; ++t) {
        const int64_t share = std::count(marks.thread.begin(), marks.thread.end(), t);
        EXPECT_GE(share, extent / threads);
        EXPECT_LE(share, extent / threads + 1);
      }
    }
  }
}

TEST(ThreadPool, ManyRoundsOfChangingExtent) {
  const auto pool = Pool(4);
  std::atomic<int64_t> sum{0};
  const auto add = [](void* closure, int64_t begin, int64_t end, int32_t) -> int32_t {
    *static_cast<std::atomic<int64_t>*>(closure) += end - begin;
    return 0;
  };
  int64_t expected = 0;
  for (int round = 0; round < 20000; ++round) {
    const int64_t extent = round % 6;  // sometimes fewer than threads: some sit a round out
    pool->Run(add, &sum, extent);
    expected += extent;
    if (round % 4000 == 0) usleep(2000);  // long enough for the workers to fall asleep
  }
  EXPECT_EQ(sum, expected);
}

TEST(ThreadPool, FirstThreadsFailureWins) {
  const auto pool = Pool(4);
  const auto fail = [](void* closure, int64_t, int64_t, int32_t thread) -> int32_t {
    return thread >= *static_cast<int*>(closure) ? 100 + thread : 0;
  };
  for (int first = 0; first < 5; ++first) EXPECT_EQ(pool->Run(fail, &first, 100), first < 4 ? 100 + first : 0);
}

TEST(ThreadPool, LoopInsideATaskRunsOnThatThread) {
  const auto pool = Pool(3);
  struct State {
    ThreadPool* pool;
    std::atomic<int> wrong{0};
  } state{pool.get()};
  const auto outer = [](void* closure, int64_t, int64_t, int32_t thread) -> int32_t {
    struct Inner {
      State* state;
      int32_t thread;
    } inner{static_cast<State*>(closure), thread};
    return inner.state->pool->Run(
        [](void* c, int64_t begin, int64_t end, int32_t t) -> int32_t {
          const auto& in = *static_cast<Inner*>(c);
          if (begin != 0 || end != 10 || t != in.thread) ++in.state->wrong;
          return 0;
        },
        &inner, 10);
  };
  EXPECT_EQ(pool->Run(outer, &state, 3), 0);
  EXPECT_EQ(state.wrong, 0);
}

TEST(ThreadPool, ManyPoolsInManyThreads) {
  std::vector<std::thread> users;
  std::atomic<int64_t> sum{0};
  for (int u = 0; u < 4; ++u) {
    users.emplace_back([&sum] {
      for (int round = 0; round < 20; ++round) {
        const auto pool = Pool(1 + round % 3);
        for (int i = 0; i < 50; ++i) {
          pool->Run(
              [](void* c, int64_t begin, int64_t end, int32_t) -> int32_t {
                *static_cast<std::atomic<int64_t>*>(c) += end - begin;
                return 0;
              },
              &sum, 17);
        }
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(sum, 4 * 20 * 50 * 17);
}

// The CPUs that each thread of the pool is on, and whether each may run nowhere else.
struct Placement {
  std::mutex mutex;
  std::set<int> cpus;
  bool alone = true;
};
void Place(ThreadPool& pool, Placement* placement) {
  pool.Run(
      [](void* closure, int64_t, int64_t, int32_t) -> int32_t {
        auto& seen = *static_cast<Placement*>(closure);
        cpu_set_t set;
        sched_getaffinity(0, sizeof(set), &set);
        const std::lock_guard lock(seen.mutex);
        seen.alone &= CPU_COUNT(&set) == 1;
        seen.cpus.insert(sched_getcpu());
        return 0;
      },
      placement, pool.threads());
}

TEST(ThreadPool, PinsEachThreadToItsCpuAndLetsTheCallerGo) {
  const std::vector<int> before = AllowedCpus();
  cpu_set_t set_before, set_after;
  sched_getaffinity(0, sizeof(set_before), &set_before);
  {
    const auto pool = Pool(static_cast<int>(before.size()), true);
    Placement seen;
    Place(*pool, &seen);
    EXPECT_TRUE(seen.alone);
    EXPECT_EQ(seen.cpus.size(), before.size());
  }
  sched_getaffinity(0, sizeof(set_after), &set_after);
  EXPECT_TRUE(CPU_EQUAL(&set_before, &set_after));
}

// Two bundles that are timed in turn: the first one's pool has pinned the caller when the second one's is made.
TEST(ThreadPool, ASecondPoolOfAPinnedCallerHasAllCpusAsWell) {
  const int cpus = static_cast<int>(AllowedCpus().size());
  cpu_set_t set_before, set_after;
  sched_getaffinity(0, sizeof(set_before), &set_before);
  auto first = Pool(cpus, true);
  auto second = Pool(cpus, true);
  Placement seen;
  Place(*second, &seen);
  EXPECT_TRUE(seen.alone);
  EXPECT_EQ(seen.cpus.size(), static_cast<size_t>(cpus));
  first.reset();
  Placement later;
  Place(*second, &later);
  EXPECT_EQ(later.cpus, seen.cpus);
  second.reset();
  sched_getaffinity(0, sizeof(set_after), &set_after);
  EXPECT_TRUE(CPU_EQUAL(&set_before, &set_after));
}

// Where the caller of a pool that pins nothing is when its part begins, and whether the worker may run there.
struct Beside {
  int caller = -1;
  cpu_set_t worker{};
};

TEST(ThreadPool, AWorkerIsNotWokenOnTheCallersCpu) {
  if (AllowedCpus().size() < 2) GTEST_SKIP() << "one CPU";
  const auto pool = Pool(2);
  int kept_off = 0;
  for (int round = 0; round < 100; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // both sleep, and the caller may wake elsewhere
    Beside seen;
    pool->Run(
        [](void* closure, int64_t, int64_t, int32_t thread) -> int32_t {
          auto& beside = *static_cast<Beside*>(closure);
          if (thread == 0) beside.caller = sched_getcpu();
          if (thread == 1) sched_getaffinity(0, sizeof(beside.worker), &beside.worker);
          return 0;
        },
        &seen, 2);
    if (!CPU_ISSET(seen.caller, &seen.worker)) ++kept_off;
  }
  EXPECT_GE(kept_off, 80);  // all, but for rounds in which the caller is moved meanwhile
}

TEST(ThreadPool, AbsurdNumbersAreRefused) {
  EXPECT_EQ(ThreadPool::Create(-1).error().code(), RuntimeCode::kInvalidArgument);
  EXPECT_EQ(ThreadPool::Create(1 << 20).error().code(), RuntimeCode::kInvalidArgument);
  EXPECT_EQ(Pool(0)->threads(), static_cast<int>(AllowedCpus().size()));
}

// ---- invocation ----

KernelSet AddSet() {
  KernelSet set;
  set.symbol = "add";
  const KernelTensor tensor{"int32", {16}, 64};
  set.params = {tensor, tensor, tensor};
  set.prepared = {{1, "add_prepare0", tensor, 0, 0}};
  set.scratch_bytes = 100;
  set.thread_scratch_bytes = 10;
  return set;
}

TEST(Invocation, PreparesOnceAndRuns) {
  const Image image = *Image::Load(ImageOf({{"add", AddKernel(16)}, {"add_prepare0", CopyKernel(0, 1, 64)}}));
  const auto pool = Pool(2);
  RuntimeResult<Invocation> add = Invocation::Create(image, AddSet(), *pool);
  ASSERT_TRUE(add.ok()) << add.error().message();
  alignas(64) int32_t a[16], b[16], c[16];
  for (int i = 0; i < 16; ++i) a[i] = i, b[i] = 100 * i;
  void* const tensors[] = {a, b, c};
  ASSERT_TRUE(add->Prepare(tensors).ok());
  for (int32_t& x : b) x = -1;  // the packed copy is what counts from now on
  add->Bind(tensors);
  EXPECT_EQ(add->Run(), 0);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(c[i], 101 * i);
}

TEST(Invocation, RefusesWhatDoesNotFit) {
  const Image image = *Image::Load(ImageOf({{"add", ReturnKernel(3)}, {"fail", ReturnKernel(5)}}));
  const auto pool = Pool(1);
  EXPECT_THAT(Invocation::Create(image, AddSet(), *pool).error().message(), testing::HasSubstr("add_prepare0"));
  KernelSet set = AddSet();
  set.prepared[0].param = 3;
  EXPECT_EQ(Invocation::Create(image, set, *pool).error().code(), RuntimeCode::kInvalidArgument);
  set.prepared[0].param = 1;
  set.prepared[0].symbol = "fail";
  RuntimeResult<Invocation> invocation = Invocation::Create(image, set, *pool);
  ASSERT_TRUE(invocation.ok());
  void* const tensors[3] = {};
  EXPECT_THAT(invocation->Prepare(tensors).message(), testing::HasSubstr("`fail` returned 5"));
  invocation->Bind(tensors);
  EXPECT_EQ(invocation->Run(), 3);
  set.scratch_bytes = -1;
  EXPECT_FALSE(Invocation::Create(image, set, *pool).ok());
}

}  // namespace
}  // namespace hone
