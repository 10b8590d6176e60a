#include "worker/agent/device_probe.h"

#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "compiler/support/file.h"
#include "compiler/support/stopwatch.h"

namespace hone {
namespace {

// Sixteen chains hide the latency of two pipes of four cycles, and then some.
constexpr int kChains = 16;

// Where the chains start, their factor and their summand: read at run time, so that no chain is known to equal another.
volatile float chain_starts[kChains + 2] = {.1f, .2f,  .3f,  .4f,  .5f,  .6f,  .7f,  .8f,   .9f,
                                            1.f, 1.1f, 1.2f, 1.3f, 1.4f, 1.5f, 1.6f, .999f, .001f};

// One step of every chain, `steps` times; the result keeps the work from being dropped. Vector types of GCC and Clang,
// so that one text serves every width.
#define HONE_FMA_LOOP(name, attribute, lanes)                               \
  attribute float name(int64_t steps) {                                     \
    typedef float Vector __attribute__((vector_size(4 * (lanes))));         \
    Vector sums[kChains], a, b;                                             \
    for (int c = 0; c < kChains; ++c) sums[c] = Vector{} + chain_starts[c]; \
    a = Vector{} + chain_starts[kChains];                                   \
    b = Vector{} + chain_starts[kChains + 1];                               \
    for (int64_t s = 0; s < steps; ++s) {                                   \
      for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * a + b;          \
    }                                                                       \
    Vector total = sums[0];                                                 \
    for (int c = 1; c < kChains; ++c) total += sums[c];                     \
    return total[0];                                                        \
  }

// GCC contracts to multiply-adds only when told so in a strict language mode; Clang does within an expression anyway.
#if defined(__clang__)
#define HONE_CONTRACT
#else
#define HONE_CONTRACT __attribute__((optimize("O3,fast-math")))
#endif

#if defined(__x86_64__)
HONE_FMA_LOOP(FmaLoop512, HONE_CONTRACT __attribute__((target("avx512f,fma"), noinline)), 16)
HONE_FMA_LOOP(FmaLoop256, HONE_CONTRACT __attribute__((target("avx2,fma"), noinline)), 8)
#endif
HONE_FMA_LOOP(FmaLoop128, HONE_CONTRACT __attribute__((noinline)), 4)

struct FmaKernel {
  float (*run)(int64_t);
  int lanes;
};

FmaKernel WidestKernel([[maybe_unused]] const Target& target) {
#if defined(__x86_64__)
  if (target.has("avx512f")) return {FmaLoop512, 16};
  if (target.has("avx2") && target.has("fma")) return {FmaLoop256, 8};
#endif
  return {FmaLoop128, 4};
}

double ThreadSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double MeasurePeakGflops(const Target& target, int threads) {
  const FmaKernel kernel = WidestKernel(target);
  constexpr int64_t kSteps = 200000;
  constexpr int kAttempts = 40;  // about a millisecond each
  // By the processor time of each thread: what else runs on the machine does not count.
  const auto gflops = [&kernel] {
    const double start = ThreadSeconds();
    volatile float sink = kernel.run(kSteps);
    (void)sink;
    return 2.0 * kernel.lanes * kChains * kSteps / (ThreadSeconds() - start) / 1e9;
  };
  double best = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {  // the best: a peak is what the machine can do
    std::vector<double> others(static_cast<size_t>(threads - 1));
    std::vector<std::thread> running;
    for (double& other : others) running.emplace_back([&other, &gflops] { other = gflops(); });
    double all = gflops();
    for (std::thread& thread : running) thread.join();
    for (const double other : others) all += other;
    best = std::max(best, all);
  }
  return best;
}

double MeasureCopyGbps(const Target& target) {
  const size_t bytes = static_cast<size_t>(std::clamp<int64_t>(target.l3 * 2, 16 << 20, 128 << 20));
  std::vector<char> from(bytes, 1), to(bytes, 2);
  double best = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Clock::time_point start = Clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    best = std::max(best, 2.0 * static_cast<double>(bytes) / SecondsSince(start) / 1e9);
    from[static_cast<size_t>(attempt)] = to[bytes - 1];
  }
  return best;
}

v1::DeviceProfile ProbeDevice(const Target& target, int threads) {
  v1::DeviceProfile profile;
  profile.set_device_class(DeviceClass(target));
  profile.set_target(target.text);
  profile.set_cores(target.cores);
  profile.set_l1d_bytes(target.l1d);
  profile.set_l2_bytes(target.l2);
  profile.set_l3_bytes(target.l3);
  profile.set_vector_bits(target.vector_bits);
  profile.set_peak_gflops_1(MeasurePeakGflops(target, 1));
  profile.set_peak_gflops_all(threads > 1 ? MeasurePeakGflops(target, threads) : profile.peak_gflops_1());
  profile.set_memory_gbps(MeasureCopyGbps(target));
  utsname system{};
  if (::uname(&system) == 0) (*profile.mutable_facts())["kernel"] = system.release;
  return profile;
}

}  // namespace hone
