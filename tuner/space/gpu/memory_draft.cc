#include "tuner/space/gpu/memory_draft.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

// Of a load from memory that is busy, about twice that of one alone: 40 KB a processor are in flight on an H100.
constexpr double kLatencyUs = 1.5;
// Of its share of memory's bandwidth a processor can draw so much.
constexpr double kMostOfShare = 1.5;
// In the time of which memory turns to another place.
constexpr double kOpeningBytes = 16;

constexpr int64_t kPartsOfRound = 8;
// For so much of its time a processor that has one block at once does not read, between that and the next.
constexpr double kAlone = 0.3;
constexpr double kRest = 0.1;  // of what is not memory's, so much does not overlap with it

// The factor, at least 1, by which the launch needs longer for its bytes than memory at full bandwidth does.
double Slowdown(const LaunchWork& work, const Streaming& streaming, const GpuTarget& target) {
  if (target.lanes == 1 || streaming.thread_bytes == 0) return 1;  // caches of which nothing is known fetch ahead
  const double processors = static_cast<double>(target.processors);
  const double resident = static_cast<double>(std::max<int64_t>(1, ResidentBlocks(work, target)));
  const double blocks = std::min(resident, work.blocks / processors);  // on average; below 1 where some have none
  const double of_block = static_cast<double>(work.threads) * streaming.thread_bytes;
  const double needed = static_cast<double>(target.bandwidth) * 1000 / processors * (kLatencyUs + streaming.idle_us);
  // Processors that have blocks do the work of those that have none only as far as their own part of the way goes.
  const double in_flight = std::min(1.0, blocks) * std::min(std::max(1.0, blocks) * of_block, kMostOfShare * needed);
  return std::max(1.0, needed / in_flight);
}

}  // namespace

double StreamingMicroseconds(const LaunchWork& work, const Streaming& streaming, const GpuTarget& target) {
  LaunchWork slowed = work, without = work;
  const double resident = static_cast<double>(std::max<int64_t>(1, ResidentBlocks(work, target)));
  const double first = static_cast<double>(target.processors) * resident;  // blocks that start at once
  const double succeed = std::max(0.0, 1 - first / work.blocks);
  slowed.memory_bytes *= Slowdown(work, streaming, target) * (1 + kAlone * succeed / resident);
  without.memory_bytes = 0;
  return LaunchMicroseconds(slowed, target) + kRest * LaunchMicroseconds(without, target);
}

double SectorsOfRuns(double run_bytes) {
  return (std::ceil(run_bytes / kSectorBytes) * kSectorBytes + kOpeningBytes) / run_bytes;
}

int64_t BarriersOfSum(int64_t threads) {
  int64_t barriers = 1;
  for (int64_t parts = threads; parts > kPartsOfRound; parts = (parts + kPartsOfRound - 1) / kPartsOfRound) ++barriers;
  return barriers;
}

int64_t ElementsOfSum(int64_t threads) {
  int64_t elements = threads;
  for (int64_t parts = threads; parts > kPartsOfRound;) {
    parts = (parts + kPartsOfRound - 1) / kPartsOfRound;
    elements += parts;
  }
  return elements;
}

}  // namespace hone
