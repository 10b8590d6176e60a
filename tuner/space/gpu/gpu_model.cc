#include "tuner/space/gpu/gpu_model.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

// Of a processor in a cycle: multiply-adds of float32, bytes of shared memory and first cache, bytes of the second
// cache (DeepGEMM's constants for sm_90; those of devices about which nothing is known are those of a core with
// vectors).
constexpr double kOperations = 128, kNearBytes = 128, kFarBytes = 64;
constexpr double kOperationsUnknown = 16, kNearBytesUnknown = 64, kFarBytesUnknown = 32;
constexpr double kLaunchUs = 3, kWaveUs = 0.5;  // of a launch, and of starting a wave of blocks
constexpr double kBarrierCycles = 40;
constexpr double kThreadsThatHideLatency = 512;  // of a processor that runs warps in turn
constexpr double kThreadsOfSums = 256;  // where each of them adds to many sums, of which none waits for another
constexpr double kFarCycles = 700;      // from asking the second cache until a step's operands are there
constexpr int64_t kMostResident = 32;
constexpr double kRest = 0.1;  // of what is not the slowest, so much does not overlap with it

int64_t RoundedUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

int64_t ResidentBlocks(const LaunchWork& work, const GpuTarget& target) {
  const int64_t threads = RoundedUp(std::max<int64_t>(work.threads, 1), target.lanes);
  int64_t resident = std::min(kMostResident, target.resident_threads / threads);
  if (work.shared_bytes > 0) resident = std::min(resident, target.resident_shared / work.shared_bytes);
  if (target.lanes > 1)
    resident = std::min(resident, target.registers / (threads * std::max<int64_t>(work.registers, 1)));
  return resident;
}

double LaunchMicroseconds(const LaunchWork& work, const GpuTarget& target) {
  const bool warps = target.lanes > 1;
  const double processors = static_cast<double>(target.processors);
  const double resident = static_cast<double>(std::max<int64_t>(1, ResidentBlocks(work, target)));
  const double waves = std::ceil(work.blocks / (processors * resident));
  // Of a last wave that is not full the processors share what there is.
  const double rounds = std::max(std::ceil(work.blocks / processors), (waves - 1) * resident + 1);
  const double active = std::min(rounds, resident) * static_cast<double>(work.threads);
  const double full = static_cast<double>(work.threads) / static_cast<double>(RoundedUp(work.threads, target.lanes));
  const double arithmetic = work.operations / ((warps ? kOperations : kOperationsUnknown) * full);
  const double near = work.near_bytes / (warps ? kNearBytes : kNearBytesUnknown);
  const double far = work.far_bytes / (warps ? kFarBytes : kFarBytesUnknown);
  const double slowest = std::max({arithmetic, near, far});
  const double ahead = static_cast<double>(work.ahead);
  const double overlapped = kRest / ahead * (arithmetic + near + far - slowest);
  // Loads that were started earlier hide latency as other warps do.
  const double hidden = !warps           ? 1
                        : work.steps > 0 ? std::min(1.0, active / kThreadsOfSums)
                                         : std::min(1.0, active * ahead / kThreadsThatHideLatency);
  const double block = (slowest + overlapped) / hidden + work.barriers * kBarrierCycles;
  // Steps follow one another no faster than their operands come, and where none are ahead the arithmetic waits too.
  const double waits = !warps ? 0 : work.steps * kFarCycles / std::max(1.0, ahead - 1) + (ahead > 1 ? 0 : block);
  const double busy_us = std::max(rounds * block, waves * waits) / static_cast<double>(target.mhz);
  const double memory_us = work.memory_bytes / (static_cast<double>(target.bandwidth) * 1000);
  return kLaunchUs + kWaveUs * waves + std::max(busy_us, memory_us);
}

}  // namespace hone
