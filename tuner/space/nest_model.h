// What a nest costs, by arithmetic on its plan: registers and their latencies, loads, and from where the operands of a
// tile come given the order of the loops around it. Comparable with the drafts of stage.h.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "tuner/space/nest_plan.h"
#include "tuner/space/stage.h"

namespace hone {

class NestModel {
 public:
  NestModel(const StageContext& context, int block, const NestShape& shape);

  // Microseconds of the nest with the copies in front of it; nullopt when the plan is not legal: the tile does not fit
  // the registers, an unrolled loop does not divide, a piece would be empty, the code would be too long. Arithmetic
  // alone, no allocation.
  std::optional<double> Cost(const NestPlan& plan) const;

 private:
  static constexpr size_t kMostReads = 8;  // further ones are not counted
  using Sizes = std::array<int64_t, kMostIters>;
  using ByRead = std::array<double, kMostReads>;
  struct Read {
    std::array<bool, kMostIters> moves{};       // with each iteration variable
    std::array<int64_t, kMostIters> strides{};  // in bytes
    double bytes = 0;                           // of the whole operand
    bool with_vector = false;                   // moves with the vectorised variable
    bool gathered = false;                      // and its elements are apart
  };
  struct Registers {
    double accumulators = 1;  // vectors
    double loads = 0;         // for one step of k
    double held = 0;          // vectors of operands that are live at once
  };
  bool Legal(const NestPlan& plan) const;
  Registers RegistersOf(const NestPlan& plan, const Sizes& inner) const;
  // Cycles for a byte of each operand.
  ByRead StreamRates(const NestPlan& plan) const;
  double TileCycles(const NestPlan& plan, const Sizes& inner, const ByRead& rates) const;
  // Of all tiles in the first piece, in which no variable but one with a single piece has a tail.
  double PieceCycles(const NestPlan& plan, size_t variable, Sizes& inner, const ByRead& rates) const;
  bool RowsCollide(const Read& read, const Sizes& inner) const;
  double TileBytes(const NestPlan& plan, const Sizes& inner, size_t read) const;
  double CopyMicroseconds() const;
  bool of_lanes() const { return shape_.cut == ReductionCut::kLanes; }

  const BlockInfo& block_;
  NestShape shape_;
  Target target_;
  Machine machine_;
  int threads_;
  int vector_iter_;  // of the output's last dimension
  std::vector<Read> reads_;
  std::vector<int> spatial_;  // with more than one iteration
  std::vector<int> reduce_;
  double reduce_steps_ = 1;
  double epilogue_operations_ = 0;
  double whole_bytes_ = 0;  // of all reads
  double output_bytes_ = 0;
};

}  // namespace hone
