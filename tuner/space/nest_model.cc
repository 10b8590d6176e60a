#include "tuner/space/nest_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone {
namespace {

constexpr double kTileOverhead = 16;    // cycles: loop set-up, the first results of a chain
constexpr double kLoopExit = 8;         // cycles: a branch that was foreseen otherwise, in part hidden
constexpr double kIteration = 0.6;      // cycles of an iteration's own arithmetic that other work does not hide
constexpr double kGatherLanes = 8;      // cycles to put the lanes of one vector together, or to add them up
constexpr double kMostUnrolled = 1024;  // accumulations in the body of the innermost loop
constexpr double kNotHidden = 0.25;     // of what is shorter, arithmetic or traffic
constexpr int64_t kLine = 64;           // bytes of a cache line
constexpr int64_t kPage = 4096;         // bytes: of a way of the first cache, whose index is within a page

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

NestModel::NestModel(const StageContext& context, int block, const NestShape& shape)
    : block_(context.info->blocks[static_cast<size_t>(block)]),
      shape_(shape),
      target_(context.target),
      machine_(context.machine),
      threads_(context.threads),
      vector_iter_(block_.last_iter()) {
  const size_t vector = static_cast<size_t>(of_lanes() ? shape_.along : vector_iter_);
  for (size_t r = 0; r < std::min(block_.reads.size(), kMostReads); ++r) {
    const BlockInfo::Access& access = block_.reads[r];
    Read read;
    for (size_t i = 0; i < block_.iters.size(); ++i) {
      read.moves[i] = access.strides[i] != 0 || !access.affine;
      read.strides[i] = access.strides[i] * access.buffer.type().bytes();
    }
    read.bytes = static_cast<double>(access.elements * access.buffer.type().bytes());
    read.with_vector = read.moves[vector];
    const bool in_panels =
        std::find(shape_.panels.begin(), shape_.panels.end(), static_cast<int>(r)) != shape_.panels.end();
    read.gathered = read.with_vector && !in_panels && access.strides[vector] != 1;
    whole_bytes_ += read.bytes;
    reads_.push_back(read);
  }
  double results = 1;
  for (int i = 0; i < static_cast<int>(block_.iters.size()); ++i) {
    const int64_t extent = block_.extents[static_cast<size_t>(i)];
    if (!block_.spatial(i)) {
      reduce_steps_ *= static_cast<double>(extent);
      reduce_.push_back(i);
      continue;
    }
    results *= static_cast<double>(extent);
    if (extent > 1) spatial_.push_back(i);
  }
  output_bytes_ = results * block_.output.type().bytes();
  if (shape_.epilogue >= 0)
    epilogue_operations_ = context.info->blocks[static_cast<size_t>(shape_.epilogue)].operations;
}

bool NestModel::Legal(const NestPlan& plan) const {
  double copies = static_cast<double>(plan.unroll) * RegistersOf(plan, plan.inner).accumulators;
  if (plan.window) copies *= reduce_steps_ / static_cast<double>(block_.extents[static_cast<size_t>(reduce_.back())]);
  if (copies > kMostUnrolled) return false;
  for (const int iter : spatial_) {
    const size_t i = static_cast<size_t>(iter);
    const int64_t tiles = CeilDiv(block_.extents[i], plan.inner[i]);
    // Every piece has something to do; else it is another plan.
    if (CeilDiv(tiles, plan.steps[i]) != plan.pieces[i]) return false;
  }
  if (reduce_.empty()) return true;
  int64_t last = block_.extents[static_cast<size_t>(reduce_.back())];
  if (shape_.along == reduce_.back()) last = CeilDiv(last, plan.k_parts);
  if (last % plan.unroll != 0) return false;
  const Registers registers = RegistersOf(plan, plan.inner);
  return registers.accumulators + registers.held + 1 <= target_.vector_registers;
}

NestModel::Registers NestModel::RegistersOf(const NestPlan& plan, const Sizes& inner) const {
  Registers found;
  double elements = 1;
  for (const int iter : spatial_) {
    if (iter != vector_iter_ || of_lanes()) elements *= static_cast<double>(inner[static_cast<size_t>(iter)]);
  }
  const double vectors =
      of_lanes() ? 1 : static_cast<double>(CeilDiv(inner[static_cast<size_t>(vector_iter_)], plan.lanes));
  found.accumulators = elements * vectors;
  for (const Read& read : reads_) {
    double rows = 1;
    for (const int iter : spatial_) {
      const size_t i = static_cast<size_t>(iter);
      if (read.moves[i] && (of_lanes() || iter != vector_iter_)) rows *= static_cast<double>(inner[i]);
    }
    if (!read.with_vector) {
      found.loads += rows;
      continue;
    }
    found.loads += rows * vectors * (read.gathered ? kGatherLanes * 2 : 1);
    found.held += of_lanes() ? std::min(rows, 2.0) : vectors;
  }
  return found;
}

std::optional<double> NestModel::Cost(const NestPlan& plan) const {
  if (!Legal(plan)) return std::nullopt;
  const ByRead rates = StreamRates(plan);
  Sizes inner = plan.inner;
  const int64_t pieces = plan.Pieces();
  const double piece = PieceCycles(plan, 0, inner, rates) / machine_.cycles_per_us();
  return ParallelTime(machine_, piece * static_cast<double>(pieces), pieces, threads_) + CopyMicroseconds();
}

double NestModel::PieceCycles(const NestPlan& plan, size_t variable, Sizes& inner, const ByRead& rates) const {
  if (variable == spatial_.size()) return TileCycles(plan, inner, rates);
  const size_t i = static_cast<size_t>(spatial_[variable]);
  const int64_t rows = std::min(block_.extents[i], plan.steps[i] * plan.inner[i]);
  const int64_t full = rows / plan.inner[i], tail = rows % plan.inner[i];
  double cycles = 0;
  if (full > 0) cycles += static_cast<double>(full) * PieceCycles(plan, variable + 1, inner, rates);
  if (tail > 0) {
    inner[i] = tail;
    cycles += PieceCycles(plan, variable + 1, inner, rates);
    inner[i] = plan.inner[i];
  }
  return cycles;
}

double NestModel::TileCycles(const NestPlan& plan, const Sizes& inner, const ByRead& rates) const {
  const Registers registers = RegistersOf(plan, inner);
  const double accumulators = registers.accumulators;
  const double parts = static_cast<double>(plan.k_parts);
  const double steps = reduce_steps_ / (of_lanes() ? parts : 1);  // of all blocks of k together
  const double fma_per_cycle = machine_.fma_per_cycle(target_.vector_bits);
  const double in_flight = std::min(1.0, accumulators / (machine_.fma_latency * fma_per_cycle));
  const double operations = std::max(1.0, block_.operations / 2);
  const double core = steps * std::max(accumulators * operations / (fma_per_cycle * in_flight),
                                       registers.loads / machine_.loads_per_cycle(target_.vector_bits));
  double stream = 0;
  for (size_t r = 0; r < reads_.size(); ++r) {
    double bytes = TileBytes(plan, inner, r);
    // Rows that share a few sets of the first cache push each other out before the rest of a line is used.
    if (!reads_[r].with_vector && RowsCollide(reads_[r], inner)) bytes *= static_cast<double>(kLine) / 4;
    stream += bytes * rates[r];
  }
  double cycles = std::max(core, stream) + kNotHidden * std::min(core, stream);

  double innermost = 1;  // iterations of the innermost reduce loop in one go
  if (!reduce_.empty() && !plan.window) {
    innermost = static_cast<double>(block_.extents[static_cast<size_t>(reduce_.back())]);
    if (shape_.along == reduce_.back()) innermost /= parts;
  }
  const double runs = std::max(1.0, steps / std::max(1.0, innermost) / (plan.window ? reduce_steps_ : 1));
  cycles +=
      runs * kLoopExit + steps / static_cast<double>(plan.unroll) * (plan.window ? 0 : kIteration) + kTileOverhead;
  if (of_lanes()) {
    cycles += kGatherLanes * accumulators;
  } else if (plan.k_parts > 1) {
    cycles += (parts + 1) * accumulators * 2.5;  // set to nothing, then for each block: read, add, write
  }
  const double results = of_lanes() ? accumulators * 4 : accumulators;
  cycles += results * (shape_.epilogue >= 0 ? 2 + 0.6 * epilogue_operations_ : 1.5);
  const double written = accumulators * (of_lanes() ? 4 : target_.vector_bits / 8);
  return cycles + written / BytesPerCycle(target_, machine_, (output_bytes_ + whole_bytes_) / threads_);
}

double NestModel::TileBytes(const NestPlan&, const Sizes& inner, size_t read) const {
  double bytes = reads_[read].bytes;
  for (const int iter : spatial_) {
    const size_t i = static_cast<size_t>(iter);
    if (!reads_[read].moves[i]) continue;
    bytes *= std::min(1.0, static_cast<double>(inner[i]) / static_cast<double>(block_.extents[i]));
  }
  return bytes;
}

// Whether more rows of a tile fall on one set of the first cache than it has ways: their distance is a multiple of a
// large power of two.
bool NestModel::RowsCollide(const Read& read, const Sizes& inner) const {
  const int64_t ways = std::max<int64_t>(2, target_.l1d / kPage);
  int64_t rows = 1;
  int64_t sets = kPage / kLine;
  for (const int iter : spatial_) {
    const size_t i = static_cast<size_t>(iter);
    if (iter == vector_iter_ || !read.moves[i] || inner[i] == 1) continue;
    rows *= inner[i];
    const int64_t stride = std::abs(read.strides[i]);
    if (stride % kLine != 0) return false;  // they walk through the sets
    sets = std::min(sets, kPage / std::gcd(stride, kPage));
  }
  return rows > ways && CeilDiv(rows, std::max<int64_t>(1, sets)) > ways - 2;
}

// Going outwards through the loops over tiles, an operand that a loop does not move is met again after everything below
// that loop was touched once: so far away it lives. One that every loop moves comes from where it was before.
NestModel::ByRead NestModel::StreamRates(const NestPlan& plan) const {
  ByRead touched{};  // bytes of each operand below the loop so far
  ByRead distance{};
  const bool blocks = shape_.cut == ReductionCut::kBlocks && plan.k_parts > 1;
  for (size_t r = 0; r < reads_.size(); ++r) {
    touched[r] = TileBytes(plan, plan.inner, r);
    if (blocks && reads_[r].moves[static_cast<size_t>(shape_.along)]) touched[r] /= static_cast<double>(plan.k_parts);
  }
  const auto pass = [&](int iter) {  // one loop further out
    const size_t i = static_cast<size_t>(iter);
    if (plan.steps[i] == 1) return;
    double all = 0;
    for (size_t r = 0; r < reads_.size(); ++r) all += touched[r];
    for (size_t r = 0; r < reads_.size(); ++r) {
      if (reads_[r].moves[i]) {
        touched[r] *= static_cast<double>(plan.steps[i]);
      } else if (distance[r] == 0) {
        distance[r] = all;
      }
    }
  };
  if (!plan.panels_outside) pass(vector_iter_);
  for (size_t s = spatial_.size(); s-- > 0;) {
    if (spatial_[s] != vector_iter_) pass(spatial_[s]);
  }
  if (plan.panels_outside) pass(vector_iter_);
  ByRead rates{};
  for (size_t r = 0; r < reads_.size(); ++r) {
    const double far = distance[r] > 0 ? distance[r] : std::max((whole_bytes_ + output_bytes_) / threads_, touched[r]);
    rates[r] = 1 / BytesPerCycle(target_, machine_, far);
  }
  return rates;
}

// Variable operands are copied into panels in front of the nest; constants are packed when the kernel is deployed.
double NestModel::CopyMicroseconds() const {
  double us = 0;
  for (const int r : shape_.panels) {
    const BlockInfo::Access& access = block_.reads[static_cast<size_t>(r)];
    if (access.constant) continue;
    const double bytes = static_cast<double>(access.elements * access.buffer.type().bytes());
    const double cycles =
        static_cast<double>(access.elements) + 2 * bytes / BytesPerCycle(target_, machine_, 2 * bytes);
    us += ParallelTime(machine_, cycles / machine_.cycles_per_us(), threads_, threads_);
  }
  return us;
}

}  // namespace hone
