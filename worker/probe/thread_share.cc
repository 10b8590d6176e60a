#include "worker/probe/thread_share.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "compiler/support/monotonic_clock.h"
#include "deploy/runtime/run/thread_pool.h"
#include "worker/probe/probe_kernels.h"

namespace hone {
namespace {

constexpr int64_t kBurst = 200'000;  // vectors multiplied and added
constexpr int kBursts = 3;

struct Burst {
  ProbeKernels::Fma fma;
  std::atomic<int> waiting;
  std::vector<Clock::time_point> began, ended;  // of each thread

  void Run(size_t thread) {
    began[thread] = Clock::now();
    fma.run(kBurst / fma.sums);
    ended[thread] = Clock::now();
  }
};

// From the first that begins, when all are there, to the last that ends: who has to wait for a processor counts too.
int32_t RunTogether(void* burst, int64_t, int64_t, int32_t thread) {
  Burst& b = *static_cast<Burst*>(burst);
  b.waiting.fetch_sub(1);
  while (b.waiting.load() > 0) {}
  b.Run(static_cast<size_t>(thread));
  return 0;
}

}  // namespace

double ShareOfThreads(const Target& target, int threads) {
  if (threads <= 1) return 1;
  const RuntimeResult<std::unique_ptr<ThreadPool>> pool =
      ThreadPool::Create({.threads = threads, .pin_workers = true, .pin_caller = true});
  if (!pool.ok()) return 1;
  const std::vector<ProbeKernels> widths = ProbeKernelsFor(target);
  const auto count = static_cast<size_t>(threads);
  Burst burst{widths.back().fma.back(), 0, std::vector<Clock::time_point>(count),
              std::vector<Clock::time_point>(count)};
  Clock::duration alone = Clock::duration::max(), together = alone;
  for (int i = 0; i < kBursts; ++i) {
    burst.Run(0);
    alone = std::min(alone, burst.ended[0] - burst.began[0]);
    burst.waiting = threads;
    (*pool)->Run(&RunTogether, &burst, threads);
    together = std::min(together, *std::ranges::max_element(burst.ended) - *std::ranges::min_element(burst.began));
  }
  return std::chrono::duration<double>(alone) / std::chrono::duration<double>(together);
}

}  // namespace hone
