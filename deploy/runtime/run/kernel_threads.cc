#include "deploy/runtime/run/kernel_threads.h"

#include <algorithm>
#include <atomic>
#include <string>

namespace hone {
namespace {

constexpr int kMaxThreads = ThreadPool::kMaxThreads;

// One parallel loop on the program's threads: task t is the t-th of `tasks` contiguous ranges, as in a pool.
struct HostLoop {
  HoneTaskFn fn;
  void* closure;
  int64_t share, more;          // the first `more` ranges take one more
  std::atomic<int32_t> to_run;  // tasks. Also orders what they wrote before what the caller reads
  // The first task that failed, and how: its index above its result. kNone when none did.
  static constexpr int64_t kNone = INT64_MAX;
  std::atomic<int64_t> failed{kNone};

  static void RunTask(void* argument, int32_t index) {
    auto& loop = *static_cast<HostLoop*>(argument);
    const int64_t begin = index * loop.share + std::min<int64_t>(index, loop.more);
    const int64_t end = begin + loop.share + (index < loop.more ? 1 : 0);
    const int32_t result = loop.fn(loop.closure, begin, end, index);
    if (result != 0) {
      const int64_t failure = (int64_t{index} << 32) | static_cast<uint32_t>(result);
      int64_t first = loop.failed.load(std::memory_order_relaxed);
      while (failure < first && !loop.failed.compare_exchange_weak(first, failure, std::memory_order_relaxed)) {}
    }
    loop.to_run.fetch_sub(1, std::memory_order_release);
  }
};

int32_t HostParallelFor(void* pool, HoneTaskFn fn, void* closure, int64_t extent) {
  const auto& host = *static_cast<const HostThreads*>(pool);
  const int32_t tasks = static_cast<int32_t>(std::min<int64_t>(host.threads, extent));
  if (extent <= 0) return 0;
  if (tasks == 1) return fn(closure, 0, extent, 0);
  HostLoop loop{.fn = fn, .closure = closure, .share = extent / tasks, .more = extent % tasks, .to_run = tasks};
  host.parallel_for(host.context, tasks, &HostLoop::RunTask, &loop);
  if (loop.to_run.load(std::memory_order_acquire) != 0) return kTasksNotCalledOnce;
  const int64_t failed = loop.failed.load(std::memory_order_relaxed);
  return failed == HostLoop::kNone ? 0 : static_cast<int32_t>(failed);
}

}  // namespace

RuntimeResult<std::shared_ptr<KernelThreads>> KernelThreads::OfPool(const ThreadPool::Options& options, Users users) {
  RuntimeResult<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(options);
  if (!pool.ok()) return pool.error();
  std::shared_ptr<KernelThreads> threads(new KernelThreads);
  threads->pool_ = *std::move(pool);
  threads->by_turns_ = users == Users::kMany;
  return threads;
}

RuntimeResult<std::shared_ptr<KernelThreads>> KernelThreads::OfHost(const HostThreads& host) {
  if (host.threads < 0 || host.threads > kMaxThreads) {
    return RuntimeError(RuntimeCode::kInvalidArgument, "threads of the program: " + std::to_string(host.threads) +
                                                           " are named, 1 to " + std::to_string(kMaxThreads) +
                                                           " can be used");
  }
  std::shared_ptr<KernelThreads> threads(new KernelThreads);
  threads->host_ = host;
  if (host.threads == 0) threads->host_.threads = static_cast<int>(std::min<size_t>(AllowedCpus().size(), kMaxThreads));
  return threads;
}

void KernelThreads::Serve(HoneCall* call) {
  call->num_threads = threads();
  call->parallel_for = pool_ != nullptr ? &ThreadPool::ParallelFor : &HostParallelFor;
  call->pool = pool_ != nullptr ? static_cast<void*>(pool_.get()) : &host_;
}

KernelThreads::Turn::Turn(KernelThreads& threads) : threads_(threads) {
  if (!threads_.by_turns_) return;
  std::unique_lock lock(threads_.mutex_);
  const uint64_t number = threads_.came_++;
  threads_.next_turn_.wait(lock, [&] { return threads_.left_ == number; });
}

KernelThreads::Turn::~Turn() {
  if (!threads_.by_turns_) return;
  {
    const std::lock_guard lock(threads_.mutex_);
    ++threads_.left_;
  }
  threads_.next_turn_.notify_all();
}

}  // namespace hone
