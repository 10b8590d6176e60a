// map: a block without reduction at the root of the function.
//
//   for a: for b: for c: S      =>   parallel ab: for c0: vectorized c1: S
//
// The innermost loop is the last dimension of the output, so that stores are contiguous; a tail is masked.
#include <algorithm>

#include "compiler/schedule/locate.h"
#include "compiler/schedule/loop_kind.h"
#include "compiler/schedule/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nest_loops.h"
#include "tuner/space/stage.h"

namespace hone {
namespace {

class MapStage : public StageTemplate {
 public:
  MapStage(const StageContext& context, int block)
      : block_(context.info->blocks[static_cast<size_t>(block)]),
        target_(context.target),
        machine_(context.machine),
        threads_(context.threads) {
    const int last = block_.last_iter();
    const int64_t extent = last < 0 ? 1 : block_.extents[static_cast<size_t>(last)];
    const int bits = std::max(8, static_cast<int>(block_.output.type().bits));
    // The loops are in the order of the iteration variables, and the last of them must be the output's last dimension.
    if (last == static_cast<int>(block_.iters.size()) - 1 && block_.single_store && extent >= 4) {
      std::vector<int64_t> lanes{target_.lanes(std::max(bits, 32))};
      if (lanes[0] > 4 && extent < lanes[0]) lanes = {lanes[0], lanes[0] / 2};
      knobs_.push_back({"lanes", lanes});
      vector_ = true;
    }
    if (threads_ > 1 && block_.instances() > 1) knobs_.push_back({"parallel", {0, 1}});
  }

  const std::vector<Knob>& knobs() const override { return knobs_; }

  std::optional<double> Draft(std::span<const int> choice) const override {
    const int64_t lanes = vector_ ? knobs_[0].candidates[static_cast<size_t>(choice[0])] : 1;
    const int64_t last = block_.extents.empty() ? 1 : block_.extents.back();
    const int64_t vectors = (last + lanes - 1) / lanes * (block_.instances() / std::max<int64_t>(last, 1));
    double bytes = static_cast<double>(block_.instances() * block_.output.type().bytes());
    double gathers = 0;
    for (const BlockInfo::Access& read : block_.reads) {
      bytes += static_cast<double>(std::min(read.elements, block_.instances()) * read.buffer.type().bytes());
      if (!read.strides.empty() && (!read.affine || std::abs(read.strides.back()) > 1))
        gathers += static_cast<double>(lanes);
    }
    const double compute =
        static_cast<double>(vectors) * (block_.operations / machine_.fma_per_cycle(target_.vector_bits) + 1 + gathers);
    const double cycles = std::max(compute, bytes / BytesPerCycle(target_, machine_, bytes / threads_));
    const double us = cycles / machine_.cycles_per_us();
    return RunsInParallel(choice) ? ParallelTime(machine_, us, ParallelTasks(lanes), threads_) : us;
  }

  absl::Status Apply(Schedule& schedule, std::span<const int> choice) const override {
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, block_.name));
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(schedule, block));
    if (loops.empty()) return absl::OkStatus();
    if (vector_) {
      const int64_t lanes = knobs_[0].candidates[static_cast<size_t>(choice[0])];
      HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, loops.back(), {-1, lanes}));
      HONE_RETURN_IF_ERROR(Vectorize(schedule, parts[1]));
      loops.back() = parts[0];
    }
    if (!RunsInParallel(choice)) return absl::OkStatus();
    if (vector_ && loops.size() > 1) loops.pop_back();  // rows are shared out, not pieces of them
    return FuseAndParallel(schedule, loops);
  }

 private:
  bool RunsInParallel(std::span<const int> choice) const {
    return knobs_.size() > (vector_ ? 1u : 0u) && choice[vector_ ? 1 : 0] == 1;
  }
  int64_t ParallelTasks(int64_t lanes) const {
    const int64_t last = block_.extents.back();
    if (!vector_) return block_.instances();
    return block_.extents.size() > 1 ? block_.instances() / std::max<int64_t>(last, 1) : (last + lanes - 1) / lanes;
  }

  const BlockInfo& block_;
  Target target_;
  Machine machine_;
  int threads_;
  bool vector_ = false;
  std::vector<Knob> knobs_;
};

}  // namespace

std::unique_ptr<StageTemplate> MakeMapStage(const StageContext& context, int block) {
  return std::make_unique<MapStage>(context, block);
}

}  // namespace hone
