// What a nest pays for the kernels before and after it, which ran on all cores: what another core wrote last, or will
// read next, passes through the last cache instead of staying in the second one of this core.
//
// Which thread has what is taken to be the same for every tensor between kernels: thread t of T has the t-th part of
// its outermost dimension. That is what the pool makes of a nest whose first loop over pieces is of that dimension
// (deploy/runtime/run/thread_pool.h). A nest that is cut along it reads what its own core wrote; one cut along columns
// alone finds one T-th of what it reads, and leaves as little for the next kernel. Nothing of this shows when a kernel
// is timed alone, where the same thread reads the same operands in every run. The idea is that of affinity scheduling
// (E. P. Markatos, T. J. LeBlanc, "Using processor affinity in loop scheduling on shared-memory multiprocessors",
// IEEE TPDS 5(4), 1994).
#include <algorithm>
#include <cmath>

#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/nest_model.h"

namespace hone {

int NestModel::RowsOfBuffer(const std::vector<int64_t>& strides) const {
  int rows = -1;
  int64_t most = 0;
  for (int i = 0; i < static_cast<int>(strides.size()); ++i) {
    const int64_t stride = std::abs(strides[static_cast<size_t>(i)]);
    if (block_.extents[static_cast<size_t>(i)] == 1 || stride < most) continue;
    // The taps of a window move what its place moves.
    if (block_.spatial(i)) {
      if (stride > most || rows < 0) rows = i;
    } else if (stride > most) {
      rows = -1;
    }
    most = stride;
  }
  return rows;
}

void NestModel::FindHandedOn(const WorkloadInfo& info) {
  const BlockInfo* last = shape_.epilogue >= 0 ? &info.blocks[static_cast<size_t>(shape_.epilogue)] : &block_;
  if (!last->writes_param) return;
  handed_on_bytes_ = output_bytes_;
  for (const BlockInfo::Access& read : last->reads) {
    const bool beside = last != &block_ && !read.constant && info.Producer(read.buffer) < 0;
    const double bytes = static_cast<double>(read.elements * read.buffer.type().bytes());
    if (beside && bytes >= output_bytes_) handed_on_bytes_ += bytes;
  }
  for (const int iter : block_.output_iters) {
    if (iter < 0 || block_.extents[static_cast<size_t>(iter)] == 1) continue;
    if (rows_of_results_ < 0) rows_of_results_ = iter;
    moves_results_[static_cast<size_t>(iter)] = true;
  }
}

double NestModel::OwnShare(const NestPlan& plan, int rows) const {
  const bool cut_outside = std::any_of(spatial_.begin(), spatial_.end(), [&](int iter) {
    return iter < rows && plan.pieces[static_cast<size_t>(iter)] > 1;
  });
  const int64_t parts = rows < 0 || cut_outside ? 1 : plan.pieces[static_cast<size_t>(rows)];
  return static_cast<double>(std::min<int64_t>(threads_, parts)) / threads_;
}

// Blocks of another nest (NestShape::pieces_of) are blocks of its rows.
double NestModel::HandoverMicroseconds(const NestPlan& plan) const {
  if (threads_ == 1 || stays()) return 0;
  const double near = 1 / BytesPerCycle(target_, machine_, static_cast<double>(target_.l2) / 2);
  const double far = 1 / BytesPerCycle(target_, machine_, static_cast<double>(target_.l2) * 2);
  const Sizes row = RowOfTiles(plan);
  const auto cycles = [&](double bytes, int64_t run_bytes, int rows) {
    return bytes * (1 - OwnShare(plan, rows)) * ((run_bytes < kPrefetched ? 2 : 1) * far - near);
  };
  double all = 0;
  for (size_t r = 0; r < reads_.size(); ++r) {
    const Read& read = reads_[r];
    const bool computed_here = ((plan.near | plan.in_tile) >> r & 1) != 0;
    if (read.constant || (read.made_here && !computed_here)) continue;
    all += cycles(read.bytes * ShareOfThread(plan, read.moves), read.region.RunBytes(row), read.rows);
  }
  if (handed_on_bytes_ > 0) {
    const int64_t run = row[static_cast<size_t>(vector_iter_)] * block_.output.type().bytes();
    all += cycles(handed_on_bytes_ * ShareOfThread(plan, moves_results_), run, rows_of_results_);
  }
  return all / machine_.cycles_per_us();
}

}  // namespace hone
