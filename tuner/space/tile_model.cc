#include "tuner/space/tile_model.h"

#include <algorithm>
#include <cmath>

#include "tuner/space/stage.h"

namespace hone {
namespace {

constexpr double kTileOverhead = 20;   // cycles: init, loop set-up
constexpr double kLoopOverhead = 1.5;  // cycles of an iteration
constexpr double kGatherLanes = 8;     // cycles to put the lanes of one vector together, or to add them up

}  // namespace

TileModel::TileModel(const SketchContext& context, const Sketch& sketch, int block)
    : block_(context.block(block)),
      target_(context.target),
      machine_(context.machine),
      threads_(context.threads),
      partial_(sketch.at(block).partial),
      along_(sketch.at(block).along),
      vector_iter_(block_.last_iter()),
      iters_(block_.iters.size()) {
  const bool lanes_of_k = partial_ == SketchBlock::Partial::kLanesOfK;
  const size_t vector = static_cast<size_t>(lanes_of_k ? along_ : vector_iter_);
  for (size_t r = 0; r < block_.reads.size(); ++r) {
    const BlockInfo::Access& access = block_.reads[r];
    Read read;
    for (size_t i = 0; i < iters_; ++i) read.moves[i] = access.strides[i] != 0 || !access.affine;
    read.bytes = static_cast<double>(access.elements * access.buffer.type().bytes());
    read.with_vector = read.moves[vector];
    const std::vector<int>& packed = sketch.at(block).packed;
    const bool in_panels = std::find(packed.begin(), packed.end(), static_cast<int>(r)) != packed.end();
    read.gathered = read.with_vector && !in_panels && access.strides[vector] != 1;
    reads_.push_back(read);
  }
  for (int i = 0; i < static_cast<int>(iters_); ++i) {
    if (!block_.spatial(i)) {
      reduce_steps_ *= static_cast<double>(block_.extents[static_cast<size_t>(i)]);
    } else if (block_.extents[static_cast<size_t>(i)] > 1) {
      spatial_.push_back(i);
    }
  }
  if (sketch.at(block).epilogue >= 0) {
    epilogue_ = true;
    epilogue_operations_ = context.block(sketch.at(block).epilogue).operations;
  }
}

std::optional<double> TileModel::Cost(const TilePlan& plan) const {
  const bool lanes_of_k = partial_ == SketchBlock::Partial::kLanesOfK;
  const bool blocks_of_k = partial_ == SketchBlock::Partial::kBlocksOfK;
  double elements = 1, tiles = 1, tail = 1;
  for (const int iter : spatial_) {
    const size_t i = static_cast<size_t>(iter);
    elements *= static_cast<double>(plan.inner[i]);
    tiles *= static_cast<double>(plan.steps[i] * plan.pieces[i]);
    // Masks are cheap along vectors; elsewhere a tail keeps a branch for every row.
    if (iter != vector_iter_ && block_.extents[i] % plan.inner[i] != 0) tail *= 1.3;
  }
  const double accumulators = lanes_of_k ? elements : elements / static_cast<double>(plan.lanes);
  const double vectors_of_n =
      lanes_of_k ? 1 : static_cast<double>(plan.inner[static_cast<size_t>(vector_iter_)]) / plan.lanes;
  double loads = 0, held = 0;
  for (const Read& read : reads_) {
    double rows = 1;
    for (const int iter : spatial_) {
      const size_t i = static_cast<size_t>(iter);
      if (read.moves[i] && (lanes_of_k || iter != vector_iter_)) rows *= static_cast<double>(plan.inner[i]);
    }
    if (!read.with_vector) {
      loads += rows;
      continue;
    }
    loads += rows * vectors_of_n * (read.gathered ? kGatherLanes * 2 : 1);
    held += lanes_of_k ? std::min(rows, 2.0) : vectors_of_n;
  }
  if (accumulators + held + 1 > target_.vector_registers) return std::nullopt;

  const double k_blocks = blocks_of_k ? static_cast<double>(plan.partial) : 1;
  const double steps =
      reduce_steps_ / k_blocks / (lanes_of_k ? static_cast<double>(plan.partial) : 1);  // of one pass over a tile
  const double fma_per_cycle = machine_.fma_per_cycle(target_.vector_bits);
  const double in_flight = std::min(1.0, accumulators / (machine_.fma_latency * fma_per_cycle));
  const double operations = std::max(1.0, block_.operations / 2);
  const double core = steps * std::max(accumulators * operations / (fma_per_cycle * in_flight),
                                       loads / machine_.loads_per_cycle(target_.vector_bits));
  const double stream = StreamedCycles(plan);
  double cycles = std::max(core, stream) + 0.3 * std::min(core, stream);
  cycles += steps / static_cast<double>(plan.unroll) * kLoopOverhead + kTileOverhead;
  if (blocks_of_k) cycles += 3 * accumulators;  // read, add, write
  cycles *= tail * k_blocks;
  if (lanes_of_k) cycles += kGatherLanes * accumulators;
  cycles += accumulators * (epilogue_ ? 3 + epilogue_operations_ : 2) * (lanes_of_k ? 4 : 1);
  return ParallelTime(machine_, tiles * cycles / machine_.cycles_per_us(), plan.Pieces(), threads_);
}

// Going outwards through the loops over tiles, an operand that a loop does not move is met again after everything below
// that loop was touched once: so far away it lives. One that every loop moves comes from where it was before.
double TileModel::StreamedCycles(const TilePlan& plan) const {
  std::array<double, 8> touched{};  // bytes of each operand below the loop so far
  std::array<double, 8> tile{};
  std::array<double, 8> distance{};
  const size_t reads = std::min(reads_.size(), touched.size());
  const double k_blocks = partial_ == SketchBlock::Partial::kBlocksOfK ? static_cast<double>(plan.partial) : 1;
  double whole = 0;
  for (size_t r = 0; r < reads; ++r) {
    touched[r] = reads_[r].bytes;
    whole += reads_[r].bytes;
    for (const int iter : spatial_) {
      const size_t i = static_cast<size_t>(iter);
      if (reads_[r].moves[i])
        touched[r] *= std::min(1.0, static_cast<double>(plan.inner[i]) / static_cast<double>(block_.extents[i]));
    }
    if (along_ >= 0 && reads_[r].moves[static_cast<size_t>(along_)]) touched[r] /= k_blocks;
    tile[r] = touched[r];
  }
  const auto pass = [&](int iter) {  // one loop further out
    const size_t i = static_cast<size_t>(iter);
    if (plan.steps[i] == 1) return;
    double all = 0;
    for (size_t r = 0; r < reads; ++r) all += touched[r];
    for (size_t r = 0; r < reads; ++r) {
      if (reads_[r].moves[i]) {
        touched[r] *= static_cast<double>(plan.steps[i]);
      } else if (distance[r] == 0) {
        distance[r] = all;
      }
    }
  };
  if (!plan.vector_outside) pass(vector_iter_);
  for (size_t s = spatial_.size(); s-- > 0;) {
    if (spatial_[s] != vector_iter_) pass(spatial_[s]);
  }
  if (plan.vector_outside) pass(vector_iter_);
  double cycles = 0;
  for (size_t r = 0; r < reads; ++r) {
    cycles +=
        tile[r] / BytesPerCycle(target_, machine_, distance[r] > 0 ? distance[r] : std::max(whole / threads_, tile[r]));
  }
  return cycles;
}

}  // namespace hone
