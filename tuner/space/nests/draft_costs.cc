#include "tuner/space/nests/draft_costs.h"

#include <algorithm>

namespace hone {
namespace {

// A level serves all of what takes up to this share of it, and nothing of twice as much.
constexpr double kServed = 0.6;
constexpr int64_t kLineBytes = 64;

}  // namespace

double ParallelTime(const Machine& machine, double work_us, int64_t tasks, int threads) {
  if (tasks <= 1 || threads <= 1) return work_us;
  const int64_t rounds = (tasks + threads - 1) / threads;  // of the busiest thread
  return work_us * static_cast<double>(rounds) / static_cast<double>(tasks) + machine.fork_us +
         machine.piece_us * static_cast<double>(rounds);
}

double BytesPerCycle(const Target& target, const Machine& machine, double footprint) {
  struct Beyond {
    int64_t capacity;  // of a level
    double rate;       // of the next one
  };
  double cycles = 1 / machine.l1;  // for a byte
  for (const Beyond& level :
       {Beyond{target.l1d, machine.l2}, Beyond{target.l2, machine.l3}, Beyond{target.l3, machine.memory}}) {
    const double served = kServed * static_cast<double>(level.capacity);
    if (served > 0 && footprint <= served) continue;  // drafts ask by the hundred thousand, most for little
    const double missing = served > 0 ? std::min(footprint / served - 1, 1.0) : 1;
    cycles += missing * (1 / level.rate - cycles);
  }
  return kWithOtherWork / cycles;
}

double FootprintOfThreads(const Target& target, int threads, double bytes) {
  return bytes <= kServed * static_cast<double>(target.l2) ? bytes : bytes * threads;
}

double StoreCycles(const NestContext& context, const Written& written, double footprint, bool past_caches) {
  const double near = BytesPerCycle(context.target, context.machine, footprint / context.threads);
  const double memory = kWithOtherWork * context.machine.memory, bytes = written.bytes;
  if (!past_caches && written.cold) return 2 * bytes / memory;
  if (!past_caches) {
    const double served = kServed * static_cast<double>(context.target.l2);
    const double fetched = std::clamp(footprint / context.threads / served - 1, 0.0, 1.0);
    return (1 + fetched) * bytes / near;
  }
  const double read_again = bytes / memory - bytes / BytesPerCycle(context.target, context.machine, bytes);
  return bytes / memory + std::max(0.0, read_again);
}

bool CanStream(const NestContext& context, int block) {
  const BlockInfo& writer = context.info->blocks[static_cast<size_t>(block)];
  const Buffer& output = writer.output;
  const int64_t bytes = output.type().bytes();
  if (context.target.arch != "x86_64" || !writer.writes_param || writer.reduces || !writer.single_store) return false;
  if (writer.last_iter() < 0 || writer.instances() * bytes <= context.target.l2) return false;
  int touch = 0;  // blocks that write or read it
  for (const BlockInfo& other : context.info->blocks) {
    touch += other.output == output ? 1 : 0;
    for (const BlockInfo::Access& read : other.reads) touch += read.buffer == output ? 1 : 0;
  }
  return touch == 1 && ConstantValue(output.shape().back()).value_or(1) * bytes % kLineBytes == 0;
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
