#include "tests/bench/stopwatch.h"

#include <algorithm>
#include <chrono>

#include "worker/runner/cache_flush.h"

namespace hone {
namespace {

constexpr double kPlainlyLost = 1.3;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double TimeWarm(const TimedCall& call, double champion_us) {
  double best = 1e30;
  const double limit = Now() + 0.25;
  for (int run = 0; run < 25 && (run < 4 || Now() < limit); ++run) {
    const double start = Now();
    int calls = 0;
    do {
      call.run();
      ++calls;
    } while (Now() - start < 100e-6);
    if (run > 0) best = std::min(best, (Now() - start) * 1e6 / calls);  // the first run meets cold caches
    if (run >= 2 && champion_us > 0 && best > kPlainlyLost * champion_us) break;
  }
  return best;
}

double TimeCold(const TimedCall& call, ThreadPool& pool, double champion_us) {
  std::vector<double> samples;
  const double limit = Now() + 0.25;
  for (int run = 0; run < 15 && (run < 5 || Now() < limit); ++run) {
    for (const std::span<const char> memory : call.cold) FlushFromCaches(memory);
    pool.Run([](void*, int64_t, int64_t, int32_t) -> int32_t { return 0; }, nullptr, pool.threads());  // awake
    const double start = Now();
    call.run();
    if (run > 0) samples.push_back((Now() - start) * 1e6);
    if (run == 3 && champion_us > 0 && *std::min_element(samples.begin(), samples.end()) > kPlainlyLost * champion_us)
      break;
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

}  // namespace

double TimeCalls(const TimedCall& call, ThreadPool& pool, double champion_us) {
  return call.cold.empty() ? TimeWarm(call, champion_us) : TimeCold(call, pool, champion_us);
}

}  // namespace hone
