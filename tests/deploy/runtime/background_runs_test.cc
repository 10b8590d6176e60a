#include "deploy/runtime/run/background_runs.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "deploy/runtime/run/instance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/asleep.h"
#include "tests/deploy/runtime/sample_bundle.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

// What a run or a callback waits at until the test lets it pass.
class Gate {
 public:
  void Pass() {
    reached_.set_value();
    open_.get_future().wait();
  }
  void AwaitSomebody() { reached_.get_future().wait(); }
  void Open() { open_.set_value(); }

 private:
  std::promise<void> reached_, open_;
};

// A thread that does `work`, once it sleeps in there or has done it.
class Waiter {
 public:
  explicit Waiter(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          id_ = gettid();
          work();
          done_ = true;
        }) {
    while (!done_ && (id_ == 0 || !IsAsleep(id_))) std::this_thread::yield();
  }
  ~Waiter() { thread_.join(); }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// Whether `wait`, on another thread that sleeps in it until `open`, comes back when a callback has returned.
bool ComesAfter(const std::atomic<bool>& returned, const std::function<void()>& wait,
                const std::function<void()>& open) {
  bool after = false;
  {
    const Waiter waiter([&] {
      wait();
      after = returned;
    });
    open();
  }
  return after;
}

TEST(BackgroundRuns, OneIsUnderWayWhileItsStarterGoesOn) {
  Gate gate;
  int runs = 0;
  bool told = false;
  BackgroundRuns background(
      [&]() -> RuntimeError {
        gate.Pass();
        ++runs;
        return {};
      },
      false);
  EXPECT_FALSE(background.running());
  EXPECT_TRUE(background.Wait().ok());
  ASSERT_TRUE(background.Start([&](const RuntimeError& result) { told = result.ok(); }).ok());
  gate.AwaitSomebody();
  EXPECT_TRUE(background.running());
  const RuntimeError second = background.Start([](const RuntimeError&) { FAIL() << "was refused"; });
  EXPECT_EQ(second.code(), RuntimeCode::kBusy);
  EXPECT_THAT(second.message(), HasSubstr("is under way"));
  gate.Open();
  EXPECT_TRUE(background.Wait().ok());
  EXPECT_FALSE(background.running());
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(told);
}

TEST(BackgroundRuns, WaitSaysWhatCameOfTheLastOne) {
  int runs = 0;
  BackgroundRuns background(
      [&]() -> RuntimeError {
        ++runs;
        if (runs == 1) return {RuntimeCode::kKernelFailed, "the first"};
        if (runs == 2) throw std::runtime_error("the second");
        return {};
      },
      false);
  RuntimeCode told = RuntimeCode::kOk;
  ASSERT_TRUE(background.Start([&](const RuntimeError& result) { told = result.code(); }).ok());
  for (int again = 0; again < 2; ++again) EXPECT_EQ(background.Wait().message(), "the first");
  EXPECT_EQ(told, RuntimeCode::kKernelFailed);
  ASSERT_TRUE(background.Start(nullptr).ok());
  EXPECT_EQ(background.Wait().code(), RuntimeCode::kInternal);
  EXPECT_THAT(background.Wait().message(), HasSubstr("the second"));
  ASSERT_TRUE(background.Start(nullptr).ok());
  EXPECT_TRUE(background.Wait().ok());
}

TEST(BackgroundRuns, ACallbackStartsTheNextOneAndWaitIsForAll) {
  int runs = 0;
  BackgroundRuns background(
      [&]() -> RuntimeError {
        ++runs;
        return {};
      },
      false);
  BackgroundRuns::Callback next;
  next = [&](const RuntimeError&) {
    EXPECT_FALSE(background.running());
    EXPECT_EQ(background.Wait().code(), RuntimeCode::kInvalidArgument);
    if (runs < 100) { EXPECT_TRUE(background.Start(next).ok()); }
  };
  ASSERT_TRUE(background.Start(next).ok());
  EXPECT_TRUE(background.Wait().ok());
  EXPECT_EQ(runs, 100);
}

TEST(BackgroundRuns, WaitIsForTheCallbackToo) {
  Gate gate;
  std::atomic<bool> returned{false};
  BackgroundRuns background([]() -> RuntimeError { return {}; }, false);
  ASSERT_TRUE(background
                  .Start([&](const RuntimeError&) {
                    gate.Pass();
                    returned = true;
                  })
                  .ok());
  gate.AwaitSomebody();
  EXPECT_TRUE(ComesAfter(
      returned, [&] { EXPECT_TRUE(background.Wait().ok()); }, [&] { gate.Open(); }));
}

// The run is over when its callback is called, so that whom it tells may go on.
TEST(BackgroundRuns, TheNextOneMayBeStartedDuringACallbackAndBeginsAfterIt) {
  Gate gate;
  std::atomic<bool> returned{false};
  bool next_came_after = false;
  int runs = 0;
  BackgroundRuns background(
      [&]() -> RuntimeError {
        if (++runs == 2) next_came_after = returned;
        return {};
      },
      false);
  ASSERT_TRUE(background
                  .Start([&](const RuntimeError&) {
                    gate.Pass();
                    returned = true;
                  })
                  .ok());
  gate.AwaitSomebody();
  EXPECT_FALSE(background.running());
  EXPECT_TRUE(background.Start(nullptr).ok());
  gate.Open();
  EXPECT_TRUE(background.Wait().ok());
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(next_came_after);
}

TEST(BackgroundRuns, DestructionWaitsForRunAndCallback) {
  Gate in_run, in_callback;
  std::atomic<bool> returned{false};
  auto background = std::make_unique<BackgroundRuns>(
      [&]() -> RuntimeError {
        in_run.Pass();
        return {};
      },
      false);
  BackgroundRuns& runs = *background;
  ASSERT_TRUE(runs.Start([&](const RuntimeError&) {
                    EXPECT_EQ(runs.Start(nullptr).code(), RuntimeCode::kBusy);  // it is on its way out
                    in_callback.Pass();
                    returned = true;
                  })
                  .ok());
  in_run.AwaitSomebody();
  const auto open = [&] {
    in_run.Open();
    in_callback.AwaitSomebody();
    in_callback.Open();
  };
  EXPECT_TRUE(ComesAfter(
      returned, [&] { background.reset(); }, open));
}

TEST(BackgroundRuns, ACallbackMayDestroyThem) {
  for (const bool starts_another : {false, true}) {
    std::atomic<int> runs{0};
    std::promise<pid_t> destroyed;
    auto* background = new BackgroundRuns(
        [&]() -> RuntimeError {
          ++runs;
          return {};
        },
        false);
    ASSERT_TRUE(background
                    ->Start([&](const RuntimeError&) {
                      if (starts_another) { EXPECT_TRUE(background->Start(nullptr).ok()); }
                      delete background;
                      destroyed.set_value(gettid());
                    })
                    .ok());
    const std::string thread = "/proc/self/task/" + std::to_string(destroyed.get_future().get());
    while (access(thread.c_str(), F_OK) == 0) std::this_thread::yield();  // until it has ended
    EXPECT_EQ(runs, 1);
  }
}

// The CPUs that a run may be on.
int CpusOfARun(bool pin) {
  cpu_set_t set;
  CPU_ZERO(&set);
  BackgroundRuns background(
      [&set]() -> RuntimeError {
        sched_getaffinity(0, sizeof(set), &set);
        return {};
      },
      pin);
  EXPECT_TRUE(background.Start(nullptr).ok());
  EXPECT_TRUE(background.Wait().ok());
  if (pin) { EXPECT_TRUE(CPU_ISSET(AllowedCpus()[0], &set)); }
  return CPU_COUNT(&set);
}

TEST(BackgroundRuns, AreOnTheCpuOfAPinnedCallerOnlyWhereTheyArePinned) {
  const auto pinned = ThreadPool::Create({.threads = 1, .pin_caller = true});
  ASSERT_TRUE(pinned.ok());
  EXPECT_EQ(CpusOfARun(true), 1);
  EXPECT_EQ(CpusOfARun(false), static_cast<int>(AllowedCpus().size()));
}

// ---- of instances ----

std::shared_ptr<const Bundle> Sample() {
  auto bundle = Bundle::FromMemory(SampleMembers().Archive());
  EXPECT_TRUE(bundle.ok()) << bundle.error().message();
  return *bundle;
}

TEST(InstanceInBackground, IsNotRunTwiceAtOnceAndItsDestructionWaits) {
  struct Held {
    Gate gate;
    std::atomic<bool> done{false};
  } held;
  const auto threads =
      KernelThreads::OfHost({.threads = 2,
                             .parallel_for =
                                 [](void* context, int32_t tasks, void (*task)(void*, int32_t), void* argument) {
                                   static_cast<Held*>(context)->gate.Pass();
                                   for (int32_t i = 0; i < tasks; ++i) task(argument, i);
                                   static_cast<Held*>(context)->done = true;
                                 },
                             .context = &held});
  ASSERT_TRUE(threads.ok());
  auto made = Instance::Create(Sample(), {.pool = *threads});
  ASSERT_TRUE(made.ok());
  std::unique_ptr<Instance> instance = *std::move(made);
  instance->OwnInput(0);
  ASSERT_TRUE(instance->StartRun(nullptr).ok());
  held.gate.AwaitSomebody();
  EXPECT_TRUE(instance->running());
  EXPECT_EQ(instance->Run().code(), RuntimeCode::kBusy);
  EXPECT_EQ(instance->StartRun(nullptr).code(), RuntimeCode::kBusy);
  bool waited = false;
  {
    const Waiter waiter([&] {
      instance.reset();
      waited = held.done;
    });
    held.gate.Open();
  }
  EXPECT_TRUE(waited);
}

TEST(InstanceInBackground, WhatIsWrongWithTheInputsCameOfTheRun) {
  auto instance = Instance::Create(Sample(), {});
  ASSERT_TRUE(instance.ok());
  ASSERT_TRUE((*instance)->StartRun(nullptr).ok());
  const RuntimeError error = (*instance)->Wait();
  EXPECT_EQ(error.code(), RuntimeCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("input `a` has not been set"));
}

TEST(InstanceInBackground, ManyOnASharedPool) {
  const auto pool = KernelThreads::OfPool({.threads = 2}, KernelThreads::Users::kMany);
  ASSERT_TRUE(pool.ok());
  std::vector<std::unique_ptr<Instance>> instances;
  for (int n = 0; n < 4; ++n) instances.push_back(*Instance::Create(Sample(), {.pool = *pool}));
  for (int round = 0; round < 200; ++round) {
    for (int n = 0; n < 4; ++n) {
      auto* a = reinterpret_cast<int32_t*>(instances[n]->OwnInput(0));
      for (int i = 0; i < 16; ++i) a[i] = round * i + n;
      ASSERT_TRUE(instances[n]->StartRun(nullptr).ok());
    }
    for (int n = 0; n < 4; ++n) {
      ASSERT_TRUE(instances[n]->Wait().ok());
      const auto* y = reinterpret_cast<const int32_t*>(instances[n]->output(0));
      for (int i = 0; i < 16; ++i) ASSERT_EQ(y[i], 2 * (round * i + n) + 100 * i);
    }
  }
}

}  // namespace
}  // namespace hone
