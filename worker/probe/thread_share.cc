#include "worker/probe/thread_share.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "compiler/support/monotonic_clock.h"
#include "deploy/runtime/run/thread_pool.h"
#include "worker/probe/probe_kernels.h"
#include "worker/probe/together.h"

namespace hone {
namespace {

constexpr int64_t kBurst = 200'000;  // vectors multiplied and added
constexpr int kBursts = 3;

}  // namespace

double ShareOfThreads(const Target& target, int threads) {
  if (threads <= 1) return 1;
  const RuntimeResult<std::unique_ptr<ThreadPool>> pool =
      ThreadPool::Create({.threads = threads, .pin_workers = true, .pin_caller = true});
  if (!pool.ok()) return 1;
  const std::vector<ProbeKernels> widths = ProbeKernelsFor(target);
  const ProbeKernels::Fma fma = widths.back().fma.back();
  std::vector<Clock::time_point> began(static_cast<size_t>(threads)), ended = began;
  const auto run = [&](int thread) {
    began[static_cast<size_t>(thread)] = Clock::now();
    fma.run(kBurst / fma.sums);
    ended[static_cast<size_t>(thread)] = Clock::now();
  };
  Clock::duration alone = Clock::duration::max(), together = alone;
  for (int i = 0; i < kBursts; ++i) {
    run(0);
    alone = std::min(alone, ended[0] - began[0]);
    RunTogether(**pool, run);
    // From the first that begins to the last that ends: who has to wait for a processor counts too.
    together = std::min(together, *std::ranges::max_element(ended) - *std::ranges::min_element(began));
  }
  return std::chrono::duration<double>(alone) / std::chrono::duration<double>(together);
}

}  // namespace hone
