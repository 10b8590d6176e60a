// What a multi-level tile costs, by arithmetic: registers and their latencies, loads, and from where the operands of a
// tile come given the order of the loops around it. Comparable with the drafts of the templates (stage.h).
#pragma once

#include <optional>
#include <vector>

#include "tuner/space/sketch.h"

namespace hone {

class TileModel {
 public:
  TileModel(const SketchContext& context, const Sketch& sketch, int block);

  // Microseconds; nullopt when the tile does not fit the registers. Arithmetic alone, no allocation.
  std::optional<double> Cost(const TilePlan& plan) const;

 private:
  struct Read {
    std::array<bool, kMostIters> moves{};  // with each iteration variable
    double bytes = 0;                      // of the whole operand
    bool with_vector = false;              // moves with the vectorised variable
    bool gathered = false;                 // and its elements are apart
  };
  double StreamedCycles(const TilePlan& plan) const;

  const BlockInfo& block_;
  Target target_;
  Machine machine_;
  int threads_;
  SketchBlock::Partial partial_;
  int along_;        // with partial: the reduce variable that is cut
  int vector_iter_;  // of the output's last dimension
  size_t iters_;
  std::vector<Read> reads_;
  std::vector<int> spatial_;  // with more than one iteration
  double reduce_steps_ = 1;
  double epilogue_operations_ = 0;
  bool epilogue_ = false;
};

}  // namespace hone
