// The pool that kernels run on, in the tuner's runner and in a deployed program alike.
//
// Iterations are split statically into contiguous ranges, one for each thread, so that a kernel's time is predictable
// and a thread finds in its cache what it left there. The calling thread is worker 0. Idle workers spin for about
// `spin_us` microseconds and then sleep on a futex; each has a cache line of its own. A pool that pins nothing keeps
// its workers off the CPU that its caller is on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "deploy/runtime/error.h"
#include "deploy/runtime/kernel_abi.h"

namespace hone {

// The CPUs this thread may run on, or might before a pool pinned it, in ascending order; never empty.
std::vector<int> AllowedCpus();

class ThreadPool {
 public:
  static constexpr int kMaxThreads = 1024;
  struct Options {
    int threads = 0;           // the caller included; 0: as many as CPUs allowed
    bool pin_workers = false;  // worker t runs on the t-th allowed CPU alone (round robin when there are more workers)
    bool pin_caller =
        false;  // and so does the thread that creates the pool, as worker 0; undone by the destructor, on that thread
    double spin_us = 50;
  };

  // kOutOfMemory when the system gives no more threads; kInvalidArgument for a negative or absurd number of threads.
  static RuntimeResult<std::unique_ptr<ThreadPool>> Create(const Options& options);
  static RuntimeResult<std::unique_ptr<ThreadPool>> Create(int threads) { return Create(Options{.threads = threads}); }
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int threads() const;

  // Runs fn over [0, extent), returns when every range is done: 0, or the first (lowest thread's) non-zero result.
  // One caller at a time, whichever thread; a call from inside a task runs the whole range on that task's thread.
  int32_t Run(HoneTaskFn fn, void* closure, int64_t extent);

  // The same as HoneCall::parallel_for takes it; `pool` is a ThreadPool.
  static int32_t ParallelFor(void* pool, HoneTaskFn fn, void* closure, int64_t extent) {
    return static_cast<ThreadPool*>(pool)->Run(fn, closure, extent);
  }

 private:
  struct Impl;
  explicit ThreadPool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone
