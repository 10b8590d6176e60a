// What cold constants add to the time of a nest: they come from memory, in part while other work is done. From where
// all other operands come is in nest_sources.cc.
#include <algorithm>
#include <cmath>

#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/nest_model.h"

namespace hone {
namespace {

// Work and memory side by side, each to this power: where cold constants are asked for a panel ahead, of long panels
// and of those in blocks of k, and of streams.
constexpr double kPanelsAhead = 1.6, kBlocksAhead = 2;
// The same of panels that two do not fit the first cache together, where so few tiles pass over each.
constexpr double kFewTilesAhead = 1.1;
constexpr int64_t kFewTiles = 4;
// Of a thread's rate from memory, what one stream through it reaches. Measured on a core of Zen 3, by streams: one 10.0
// to 12, two 18.7 GB/s, and by two cores together 18.5 and 25.7.
constexpr double kOfOneStream = 0.55;
constexpr double kLinesOnTheirWay = 16;  // from memory, by which a thread reaches its rate
constexpr double kPrefetchCycles = 2;    // to ask for a line ahead

}  // namespace

bool NestModel::IsStream(const NestPlan& plan) const {
  bool any = false;
  for (size_t r = 0; r < reads_.size(); ++r) {
    if (!reads_[r].cold) continue;
    any = true;
    if (!InPanels(plan, r) && !of_lanes()) return false;
    for (const int iter : spatial_) {
      const size_t i = static_cast<size_t>(iter);
      if (!reads_[r].moves[i] && plan.pieces[i] * plan.steps[i] > 1) return false;
    }
  }
  return any;
}

bool NestModel::PassesByFewTiles(const NestPlan& plan) const {
  const Sizes tile = TileSizes(plan, plan.inner);
  return TilesOfRows(block_, shape_, plan) <= kFewTiles &&
         std::any_of(reads_.begin(), reads_.end(), [&](const Read& read) {
           return read.cold && 2 * read.region.Elements(tile) * read.element > static_cast<double>(target_.l1d);
         });
}

double NestModel::WithCold(const NestPlan& plan, const Registers& registers, double work) const {
  double bytes = 0;    // of one thread
  double of_step = 0;  // for one iteration of the reduction in a tile
  for (size_t r = 0; r < reads_.size(); ++r) {
    if (!reads_[r].cold) continue;
    bytes += reads_[r].bytes * ShareOfThread(plan, reads_[r].moves);
    of_step += registers.vectors_of[r] * VectorBits(plan) / 8;
  }
  if (bytes == 0) return work;
  double rate = kWithOtherWork * std::min(machine_.memory, machine_.memory_all / threads_);
  double cycles = 0;
  double ahead = 0;  // the share that comes while other work is done
  double power = plan.k_parts > 1 ? kBlocksAhead : kPanelsAhead;
  if (IsStream(plan)) {
    power = kBlocksAhead;
    const int64_t streams = of_lanes() ? plan.inner[static_cast<size_t>(vector_iter_)] : plan.streams;
    rate = std::min(rate, static_cast<double>(streams) * kOfOneStream * machine_.memory);
    const double instructions = (registers.accumulators + registers.loads) / of_step * kLine;  // for a line
    ahead = plan.prefetch ? 1 : std::min(1.0, kInFlight / instructions / kLinesOnTheirWay);
    // Blocks of k leave a stream for the next panel's, which begins with a line that nobody has asked for.
    const double runs = bytes / of_step / reduce_steps_ * static_cast<double>(plan.k_parts);
    if (!of_lanes() && plan.k_parts > 1) cycles += runs * kLinesOnTheirWay * kLine / rate;
  } else {
    if (PassesByFewTiles(plan)) power = kFewTilesAhead;
    if (plan.prefetch)  // all but the first panel
      ahead = OneSetOfRows(block_, shape_, plan) ? 1 : 1 - 1 / static_cast<double>(plan.steps[vector_iter_]);
  }
  if (plan.prefetch) cycles += bytes / kLine * kPrefetchCycles;
  const double cold = (bytes / rate + cycles) / machine_.cycles_per_us();
  return cold * (1 - ahead) + std::pow(std::pow(work, power) + std::pow(cold * ahead, power), 1 / power);
}

}  // namespace hone
