// rows: a reduction along memory, a row to a value (sums and maxima of softmax and layer norm).
//
//   for r: for k: C[r] += f(A[r, k])    =>   parallel r: { for k0: vectorized k1: P[k1] += f(A[r, k0, k1])
//                                                          for k1: C[r] += P[k1] }
// P is in registers. Several vectors of partial results hide the latency of the addition.
#include <algorithm>

#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/nest_loops.h"
#include "tuner/space/nests/simple_nest.h"

namespace hone {
namespace {

class RowNest : public SimpleNest {
 public:
  RowNest(const NestContext& context, int block)
      : block_(context.info->blocks[static_cast<size_t>(block)]),
        target_(context.target),
        machine_(context.machine),
        threads_(context.threads) {
    for (size_t i = 0; i < block_.iters.size(); ++i) {
      if (block_.spatial(static_cast<int>(i))) {
        rows_ *= block_.extents[i];
        ++spatial_;
        continue;
      }
      for (const BlockInfo::Access& read : block_.reads) {
        if (read.strides[i] == 1 && block_.extents[i] > 1) along_ = static_cast<int>(i);
      }
    }
    const int lanes = target_.lanes(std::max(32, static_cast<int>(block_.output.type().bits)));
    if (along_ >= 0 && block_.splits && block_.extents[static_cast<size_t>(along_)] >= lanes) {
      std::vector<int64_t> vectors;  // of partial results
      for (const int64_t n : {1, 2, 4, 8}) {
        if (n * lanes <= block_.extents[static_cast<size_t>(along_)]) vectors.push_back(n);
      }
      knobs_.push_back({"vectors", vectors});
      lanes_ = lanes;
    }
    if (threads_ > 1 && rows_ > 1) knobs_.push_back({"parallel", {0, 1}});
  }

  const std::vector<Knob>& knobs() const override { return knobs_; }

  std::optional<double> Draft(std::span<const int> choice) const override {
    const double vectors = lanes_ > 0 ? static_cast<double>(knobs_[0].candidates[static_cast<size_t>(choice[0])]) : 1;
    const double steps = static_cast<double>(block_.instances()) / std::max(1, lanes_);
    const double latency = machine_.fma_latency / vectors;  // of an addition, about
    const double cycles = steps * std::max(latency, block_.operations / machine_.fma_per_cycle(target_.vector_bits)) +
                          static_cast<double>(rows_) * (10 + vectors * std::max(1, lanes_) * 0.5);
    const double us = cycles / machine_.cycles_per_us();
    return RunsInParallel(choice) ? ParallelTime(machine_, us, rows_, threads_) : us;
  }

  absl::Status Apply(Schedule& schedule, std::span<const int> choice) const override {
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, block_.name));
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, GetLoops(schedule, block));
    std::vector<LoopRef> rows(loops.begin(), loops.begin() + spatial_);
    if (lanes_ > 0) {
      HONE_ASSIGN_OR_RETURN(
          rows, KeepPartialResults(schedule, block, loops, knobs_[0].candidates[static_cast<size_t>(choice[0])]));
    }
    return RunsInParallel(choice) && !rows.empty() ? FuseAndParallel(schedule, std::move(rows)) : absl::OkStatus();
  }

 private:
  bool RunsInParallel(std::span<const int> choice) const {
    return knobs_.size() > (lanes_ > 0 ? 1u : 0u) && choice[lanes_ > 0 ? 1 : 0] == 1;
  }

  // Gives the loops over rows that are left.
  absl::StatusOr<std::vector<LoopRef>> KeepPartialResults(Schedule& schedule, BlockRef block,
                                                          const std::vector<LoopRef>& loops, int64_t vectors) const {
    const LoopRef along = loops[static_cast<size_t>(along_)];
    std::vector<LoopRef> order(loops.begin() + spatial_, loops.end());
    std::erase(order, along);
    order.push_back(along);
    if (order.size() > 1) HONE_RETURN_IF_ERROR(Reorder(schedule, order));
    HONE_ASSIGN_OR_RETURN(const BlockRef partial, SplitIntoLanes(schedule, block, along, vectors * lanes_));
    // What is left around the block: loops over rows (those of one iteration are gone), then the one over the lanes.
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> rows, GetLoops(schedule, block));
    rows.pop_back();
    if (!rows.empty()) HONE_RETURN_IF_ERROR(ComputeAt(schedule, partial, rows.back()));
    HONE_RETURN_IF_ERROR(FinishLanes(schedule, block, partial, rows.size(), vectors, lanes_));
    return rows;
  }

  const BlockInfo& block_;
  Target target_;
  Machine machine_;
  int threads_;
  int64_t rows_ = 1;
  int spatial_ = 0;  // loops over rows, the outer ones
  int along_ = -1;   // the reduce variable that moves along memory
  int lanes_ = 0;    // 0: rows are too short for vectors
  std::vector<Knob> knobs_;
};

}  // namespace

std::unique_ptr<SimpleNest> MakeRowNest(const NestContext& context, int block) {
  return std::make_unique<RowNest>(context, block);
}

}  // namespace hone
