#include "tuner/space/stage.h"

#include <algorithm>

namespace hone {

double ParallelTime(const Machine& machine, double work_us, int64_t tasks, int threads) {
  if (tasks <= 1 || threads <= 1) return work_us;
  const int64_t rounds = (tasks + threads - 1) / threads;  // of the busiest thread
  return work_us * static_cast<double>(rounds) / static_cast<double>(tasks) + machine.fork_us +
         machine.piece_us * static_cast<double>(rounds);
}

double BytesPerCycle(const Target& target, const Machine& machine, double footprint) {
  // A level serves all of what takes up to this share of it, and nothing of twice as much.
  constexpr double kServed = 0.6;
  struct Beyond {
    int64_t capacity;  // of a level
    double rate;       // of the next one
  };
  double cycles = 1 / machine.l1;  // for a byte
  for (const Beyond& level :
       {Beyond{target.l1d, machine.l2}, Beyond{target.l2, machine.l3}, Beyond{target.l3, machine.memory}}) {
    const double served = kServed * static_cast<double>(level.capacity);
    const double missing = served > 0 ? std::clamp(footprint / served - 1, 0.0, 1.0) : 1;
    cycles += missing * (1 / level.rate - cycles);
  }
  return kWithOtherWork / cycles;
}

std::vector<int64_t> DivisorsUpTo(int64_t n, int64_t limit) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= n && d <= limit; ++d) {
    if (n % d == 0) found.push_back(d);
  }
  return found;
}

std::vector<int64_t> BlocksOfK(const BlockInfo& block, int along) {
  constexpr int64_t kLongReduction = 512;  // in all; of a shorter one the panels are in cache anyway
  constexpr int64_t kShortestBlock = 64;
  constexpr int64_t kMostBlocks = 16;
  int64_t steps = 1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (!block.spatial(i)) steps *= block.extents[static_cast<size_t>(i)];
  }
  const int64_t extent = block.extents[static_cast<size_t>(along)];
  if (steps < kLongReduction || extent < 2 * kShortestBlock) return {1};
  return DivisorsUpTo(extent, std::min(kMostBlocks, extent / kShortestBlock));
}

}  // namespace hone
