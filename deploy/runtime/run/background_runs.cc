#include "deploy/runtime/run/background_runs.h"

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "deploy/runtime/run/thread_pool.h"

namespace hone {
namespace {

void BindTo(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof(set), &set);  // where a sandbox refuses, the thread runs where its starter does
}

// On a thread of ours an exception would end the program.
RuntimeError ResultOf(const BackgroundRuns::Run& run) {
  try {
    return run();
  } catch (const std::exception& e) { return {RuntimeCode::kInternal, std::string("unexpected: ") + e.what()}; }
}

}  // namespace

RuntimeError RunIsUnderWay() {
  return {RuntimeCode::kBusy, "a run of the instance is under way; wait until it is over, or make another instance"};
}

struct BackgroundRuns::State {
  Run run;
  bool pin;
  std::mutex mutex;  // of all below; `running` is read without it
  std::condition_variable changed;
  std::thread thread;
  bool started = false;  // a run that the thread has not begun
  bool calling = false;  // a callback
  bool stop = false;
  Callback callback = nullptr;  // of the run that started last
  RuntimeError result;          // of the run that ended last
  std::atomic<bool> running{false};

  bool IsThread() const { return thread.get_id() == std::this_thread::get_id(); }
  RuntimeError StartThread(const std::shared_ptr<State>& self);
  void Loop();
};

void BackgroundRuns::State::Loop() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return started || stop; });
    if (!started) return;
    started = false;
    const Callback call = std::move(callback);
    lock.unlock();
    const RuntimeError came = ResultOf(run);
    lock.lock();
    result = came;
    calling = true;
    running.store(false, std::memory_order_release);
    lock.unlock();
    if (call != nullptr) call(came);
    lock.lock();
    calling = false;
    changed.notify_all();
  }
}

RuntimeError BackgroundRuns::State::StartThread(const std::shared_ptr<State>& self) {
  // Not the one CPU that a pool has pinned the calling thread to, unless it is the CPU that such a caller has.
  std::vector<int> cpus = AllowedCpus();
  const bool bind = cpus.size() > 1;
  if (pin) cpus.resize(1);
  try {
    thread = std::thread([self, bind, cpus] {
      if (bind) BindTo(cpus);
      self->Loop();
    });
  } catch (const std::system_error&) {
    return {RuntimeCode::kOutOfMemory,
            "the system gives no thread for runs that nobody waits for; run and wait instead"};
  }
  return {};
}

BackgroundRuns::BackgroundRuns(Run run, bool pin) : state_(std::make_shared<State>()) {
  state_->run = std::move(run);
  state_->pin = pin;
}

BackgroundRuns::~BackgroundRuns() {
  std::unique_lock lock(state_->mutex);
  if (!state_->thread.joinable()) return;
  state_->stop = true;
  const bool from_callback = state_->IsThread();
  if (from_callback) {
    state_->started = false;  // what the callback started, if anything, would find nothing to run
    state_->thread.detach();
    return;
  }
  state_->changed.notify_all();
  lock.unlock();
  state_->thread.join();
}

RuntimeError BackgroundRuns::Start(Callback callback) {
  const std::lock_guard lock(state_->mutex);
  if (state_->running.load(std::memory_order_relaxed) || state_->stop) return RunIsUnderWay();
  if (!state_->thread.joinable()) {
    if (RuntimeError error = state_->StartThread(state_)) return error;
  }
  state_->callback = std::move(callback);
  state_->started = true;
  state_->running.store(true, std::memory_order_release);
  state_->changed.notify_all();
  return {};
}

RuntimeError BackgroundRuns::Wait() {
  std::unique_lock lock(state_->mutex);
  if (state_->IsThread()) {
    return {RuntimeCode::kInvalidArgument,
            "a callback waits for the run that called it; that is over, and the next one begins when it returns"};
  }
  state_->changed.wait(lock, [&] { return !state_->running.load(std::memory_order_relaxed) && !state_->calling; });
  return state_->result;
}

bool BackgroundRuns::running() const { return state_->running.load(std::memory_order_acquire); }

}  // namespace hone
