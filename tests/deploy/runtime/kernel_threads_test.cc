#include "deploy/runtime/run/kernel_threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "deploy/runtime/run/instance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/asleep.h"
#include "tests/deploy/runtime/sample_bundle.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<KernelThreads> SharedPool(int threads) {
  auto pool = KernelThreads::OfPool({.threads = threads}, KernelThreads::Users::kMany);
  EXPECT_TRUE(pool.ok()) << pool.error().message();
  return *pool;
}

std::shared_ptr<KernelThreads> Host(const HostThreads& host) {
  auto threads = KernelThreads::OfHost(host);
  EXPECT_TRUE(threads.ok()) << threads.error().message();
  return *threads;
}

std::unique_ptr<Instance> InstanceOn(std::shared_ptr<KernelThreads> threads) {
  static const auto bundle = Bundle::FromMemory(SampleMembers().Archive());
  EXPECT_TRUE(bundle.ok()) << bundle.error().message();
  auto instance = Instance::Create(*bundle, {.pool = std::move(threads)});
  EXPECT_TRUE(instance.ok()) << instance.error().message();
  return *std::move(instance);
}

// Runs with a = seed, seed + 1, .. and counts the outputs that are wrong.
int WrongOf(Instance& instance, int seed) {
  auto* a = reinterpret_cast<int32_t*>(instance.OwnInput(0));
  for (int i = 0; i < 16; ++i) a[i] = seed + i;
  if (!instance.Run().ok()) return 16;
  int32_t y[16];
  std::memcpy(y, instance.output(0), sizeof(y));
  int wrong = 0;
  for (int i = 0; i < 16; ++i) wrong += y[i] != 2 * (seed + i) + 100 * i;
  return wrong;
}

// The wrong outputs of four instances on the same threads, each run many times by a thread of its own.
int WrongOfFourAtOnce(const std::shared_ptr<KernelThreads>& threads) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int u = 0; u < 4; ++u) {
    users.emplace_back([&, u] {
      const auto instance = InstanceOn(threads);
      for (int round = 0; round < 500; ++round) wrong += WrongOf(*instance, 1000 * u + round);
    });
  }
  for (std::thread& user : users) user.join();
  return wrong;
}

TEST(SharedPool, ServesInstancesThatRunAtOnce) {
  for (const int threads : {1, 2, 3}) EXPECT_EQ(WrongOfFourAtOnce(SharedPool(threads)), 0) << threads;
}

TEST(SharedPool, LivesAsLongAsItsInstances) {
  auto pool = SharedPool(2);
  const std::weak_ptr<KernelThreads> alive = pool;
  auto first = InstanceOn(pool), second = InstanceOn(std::move(pool));
  EXPECT_EQ(first->threads(), 2);
  first.reset();
  EXPECT_EQ(WrongOf(*second, 5), 0);
  second.reset();
  EXPECT_TRUE(alive.expired());
}

TEST(SharedPool, TurnsComeInTheOrderInWhichTheyAreAskedFor) {
  const auto pool = SharedPool(1);
  std::vector<int> order;
  std::vector<std::thread> waiting;
  auto held = std::make_unique<KernelThreads::Turn>(*pool);
  for (int user = 0; user < 3; ++user) {
    std::atomic<pid_t> asks{0};
    waiting.emplace_back([&pool, &order, &asks, user] {
      asks = gettid();  // from here on it sleeps for its turn alone
      const KernelThreads::Turn turn(*pool);
      order.push_back(user);
    });
    while (asks == 0 || !IsAsleep(asks)) std::this_thread::yield();
  }
  held.reset();
  {
    const KernelThreads::Turn again(*pool);  // at once, and still after those that waited
    order.push_back(3);
  }
  for (std::thread& thread : waiting) thread.join();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
}

// A thread may run an instance that may use fewer CPUs than who made the pool: its CPU is kept free all the same.
TEST(SharedPool, KeepsItsWorkersOffACallerThatIsBoundToOneCpu) {
  const std::vector<int> cpus = AllowedCpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  const auto pool = SharedPool(2);
  HoneCall call{};
  pool->Serve(&call);
  for (const int cpu : cpus) {
    cpu_set_t of_worker;
    CPU_ZERO(&of_worker);
    std::thread([&] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
      call.parallel_for(
          call.pool,
          [](void* closure, int64_t, int64_t, int32_t thread) -> int32_t {
            if (thread == 1) sched_getaffinity(0, sizeof(cpu_set_t), static_cast<cpu_set_t*>(closure));
            return 0;
          },
          &of_worker, 2);
    }).join();
    EXPECT_FALSE(CPU_ISSET(cpu, &of_worker));
    EXPECT_EQ(CPU_COUNT(&of_worker), static_cast<int>(cpus.size()) - 1);
  }
}

TEST(SharedPool, LeavesNothingToSayAboutThreads) {
  const auto bundle = Bundle::FromMemory(SampleMembers().Archive());
  ASSERT_TRUE(bundle.ok());
  for (const auto& [threads, pin] : {std::pair(2, false), std::pair(0, true)}) {
    const auto instance = Instance::Create(*bundle, {.threads = threads, .pin = pin, .pool = SharedPool(3)});
    ASSERT_FALSE(instance.ok());
    EXPECT_EQ(instance.error().code(), RuntimeCode::kInvalidArgument);
    EXPECT_THAT(instance.error().message(), HasSubstr("given a pool of 3 threads"));
  }
}

// ---- the program's own threads ----

using Task = void (*)(void* argument, int32_t index);

// A thread for every task.
void ThreadEach(void* context, int32_t tasks, Task task, void* argument) {
  ++*static_cast<std::atomic<int>*>(context);
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < tasks; ++i) threads.emplace_back(task, argument, i);
  for (std::thread& thread : threads) thread.join();
}
// On the caller, the first task first, and the last one.
void Forwards(void* context, int32_t tasks, Task task, void* argument) {
  *static_cast<int*>(context) = tasks;
  for (int32_t i = 0; i < tasks; ++i) task(argument, i);
}
void Backwards(void* context, int32_t tasks, Task task, void* argument) {
  *static_cast<int*>(context) = tasks;
  for (int32_t i = tasks; i-- > 0;) task(argument, i);
}

TEST(HostThreads, RunTheTasksOfInstancesAtOnce) {
  std::atomic<int> loops{0};
  EXPECT_EQ(WrongOfFourAtOnce(Host({.threads = 3, .parallel_for = &ThreadEach, .context = &loops})), 0);
  EXPECT_EQ(loops, 4 * 500);  // one parallel loop in each run
}

TEST(HostThreads, CoverTheRangeOnceInOrderOfTasks) {
  for (const int threads : {1, 2, 3, 7}) {
    int tasks = 0;
    const auto host = Host({.threads = threads, .parallel_for = &Backwards, .context = &tasks});
    HoneCall call{};
    host->Serve(&call);
    EXPECT_EQ(call.num_threads, threads);
    for (const int64_t extent : {0, 1, 2, 5, 6, 7, 8, 100}) {
      std::vector<int> thread_of(static_cast<size_t>(extent), -1);
      EXPECT_EQ(call.parallel_for(
                    call.pool,
                    [](void* closure, int64_t begin, int64_t end, int32_t thread) -> int32_t {
                      auto& of = *static_cast<std::vector<int>*>(closure);
                      for (int64_t i = begin; i < end; ++i) of[static_cast<size_t>(i)] += 1 + thread;
                      return 0;
                    },
                    &thread_of, extent),
                0);
      EXPECT_TRUE(std::is_sorted(thread_of.begin(), thread_of.end()));
      for (int t = 0; t < threads; ++t) {
        const int64_t share = std::count(thread_of.begin(), thread_of.end(), t);
        EXPECT_GE(share, extent / threads);
        EXPECT_LE(share, extent / threads + 1);
      }
    }
  }
}

TEST(HostThreads, FirstTasksFailureWins) {
  const auto fail = [](void* closure, int64_t, int64_t, int32_t thread) -> int32_t {
    return thread >= *static_cast<int*>(closure) ? -100 - thread : 0;
  };
  for (const HostThreads::ParallelFor order : {&Forwards, &Backwards}) {
    int tasks = 0;
    const auto host = Host({.threads = 4, .parallel_for = order, .context = &tasks});
    HoneCall call{};
    host->Serve(&call);
    for (int first = 0; first < 5; ++first) {
      EXPECT_EQ(call.parallel_for(call.pool, fail, &first, 100), first < 4 ? -100 - first : 0);
    }
    EXPECT_EQ(tasks, 4);
  }
}

TEST(HostThreads, ATaskThatIsForgottenOrDoneTwiceFailsTheRun) {
  const auto forgets = [](void*, int32_t tasks, Task task, void* argument) {
    for (int32_t i = 1; i < tasks; ++i) task(argument, i);
  };
  const auto repeats = [](void*, int32_t tasks, Task task, void* argument) {
    for (int32_t i = 0; i < tasks; ++i) task(argument, i);
    task(argument, 0);
  };
  for (const HostThreads::ParallelFor wrong : {HostThreads::ParallelFor(forgets), HostThreads::ParallelFor(repeats)}) {
    const auto instance = InstanceOn(Host({.threads = 2, .parallel_for = wrong}));
    instance->OwnInput(0);
    const RuntimeError error = instance->Run();
    EXPECT_EQ(error.code(), RuntimeCode::kKernelFailed);
    EXPECT_THAT(error.message(), HasSubstr("kernel `add_w`: the program's parallel_for returned and had not called "
                                           "every task exactly once"));
  }
}

TEST(HostThreads, AbsurdNumbersAreRefused) {
  int tasks = 0;
  HostThreads host{.threads = -1, .parallel_for = &Backwards, .context = &tasks};
  EXPECT_EQ(KernelThreads::OfHost(host).error().code(), RuntimeCode::kInvalidArgument);
  host.threads = 1 << 20;
  EXPECT_EQ(KernelThreads::OfHost(host).error().code(), RuntimeCode::kInvalidArgument);
  host.threads = 0;
  EXPECT_EQ(Host(host)->threads(), static_cast<int>(AllowedCpus().size()));
}

}  // namespace
}  // namespace hone
