// The threads that an instance runs its kernels on: a pool (thread_pool.h) of its own or one that instances share, or
// the threads of the program around it, by a function of the program's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "deploy/runtime/error.h"
#include "deploy/runtime/kernel_abi.h"
#include "deploy/runtime/run/thread_pool.h"

namespace hone {

// The program's threads in place of a pool's.
struct HostThreads {
  // Calls task(argument, index) once for every index in [0, tasks), on threads and in an order of its choice, and
  // returns when all have returned. May be called by several threads at once. Throws nothing.
  using ParallelFor = void (*)(void* context, int32_t tasks, void (*task)(void* argument, int32_t index),
                               void* argument);
  int threads = 0;  // the most tasks that it is given at a time; 0: as many as CPUs allowed
  ParallelFor parallel_for = nullptr;
  void* context = nullptr;
};

class KernelThreads {
 public:
  enum class Users { kOne, kMany };
  // A pool of the runtime's, for one instance or for many. The errors are those of ThreadPool::Create.
  static RuntimeResult<std::shared_ptr<KernelThreads>> OfPool(const ThreadPool::Options& options, Users users);
  // kInvalidArgument for a negative or absurd number of threads.
  static RuntimeResult<std::shared_ptr<KernelThreads>> OfHost(const HostThreads& host);

  KernelThreads(const KernelThreads&) = delete;

  int threads() const { return pool_ != nullptr ? pool_->threads() : host_.threads; }
  // Fills in num_threads, parallel_for and pool. This must outlive the calls.
  void Serve(HoneCall* call);

  // A run's time with the threads. A pool serves one caller at a time, so that runs on a shared one follow each other
  // in the order in which they came; those on one's own pool, or on the program's threads, do not wait.
  class Turn {
   public:
    explicit Turn(KernelThreads& threads);
    ~Turn();
    Turn(const Turn&) = delete;

   private:
    KernelThreads& threads_;
  };

 private:
  KernelThreads() = default;

  std::unique_ptr<ThreadPool> pool_;  // null: host_ counts
  HostThreads host_;
  bool by_turns_ = false;
  std::mutex mutex_;  // of what follows
  std::condition_variable next_turn_;
  uint64_t came_ = 0, left_ = 0;  // runs; the one that came as number left_ has its turn
};

// What a kernel returns when HostThreads::parallel_for came back before it had called every task once.
inline constexpr int32_t kTasksNotCalledOnce = INT32_MIN;

}  // namespace hone
