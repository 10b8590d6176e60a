// rows: every row is a block of threads, and every block of the function does its part of the row there.
//
//   for i: for k: B[i] += A[i, k]                 blockIdx.x i: for k0: threadIdx.x k1: B[i] += A[i, k]
//   for i: for j: C[i, j] = f(A[i, j], B[i])  =>                for j0: threadIdx.x j1: C[i, j] = f(A[i, j], B[i])
#include <algorithm>

#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"
#include "tuner/space/nest_loops.h"

namespace hone {
namespace {

constexpr int64_t kFewestThreads = 32, kMostThreads = 256;

// Binds the loops of a block from depth `outer` on, those of the last of them, or of all where it does not reduce.
absl::Status ShareOut(Schedule& schedule, BlockRef block, size_t outer, bool reduces, int64_t threads) {
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> own, InnerLoops(schedule, block, outer));
  if (own.empty()) return absl::OkStatus();  // one element: the first thread's
  LoopRef columns = own.back();
  if (!reduces) { HONE_ASSIGN_OR_RETURN(columns, FuseAll(schedule, own)); }
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, columns, {-1, threads}));
  return Bind(schedule, parts[1], "threadIdx.x");
}

}  // namespace

std::optional<RowsPlan> PlanRows(const GpuContext& context) {
  const int last = static_cast<int>(context.info.blocks.size()) - 1;
  const BlockInfo& sink = context.block(last);
  RowsPlan plan;
  plan.is_row.assign(sink.iters.size(), false);
  bool sums = sink.reduces;
  for (int b = 0; b <= last; ++b) {
    const BlockInfo& block = context.block(b);
    const bool fits = block.single_store && WritesAtItsOwnVariables(block) == !block.reduces &&
                      !(block.reduces && !(block.splits && AddsAlongMemory(block))) &&
                      block.writes_param == (b == last) && !IsGpuProduct(context.info, b);
    if (!fits) return std::nullopt;
    sums = sums || block.reduces;
    for (const BlockInfo::Access& read : sink.reads) {
      if (!(read.buffer == block.output) || read.elements >= sink.instances()) continue;  // not one of each row
      for (size_t i = 0; i < sink.iters.size(); ++i)
        if (read.strides[i] != 0) plan.is_row[i] = true;
    }
  }
  if (!sums) return std::nullopt;
  for (size_t i = 0; i < sink.iters.size(); ++i)
    if (sink.reduces && sink.spatial(static_cast<int>(i))) plan.is_row[i] = true;
  int64_t rows = 1;
  for (size_t i = 0; i < sink.iters.size(); ++i) rows *= plan.is_row[i] ? sink.extents[i] : 1;
  int64_t columns = 1, bytes = 0;
  for (int b = 0; b <= last; ++b) {
    const BlockInfo& block = context.block(b);
    if (block.instances() % rows != 0) return std::nullopt;  // it does not go by these rows
    columns = std::max(columns, block.instances() / rows);
    if (b < last) bytes += (*block.output.NumElements() / rows + 1) * block.output.type().bytes();
    if (block.reduces) bytes += kMostThreads * block.output.type().bytes();
  }
  plan.threads = std::clamp(PowerOfTwoFrom(columns), kFewestThreads, std::min(kMostThreads, context.target.threads));
  // Every buffer starts at a multiple of 128 bytes.
  bytes += 256 * static_cast<int64_t>(context.info.blocks.size());
  if (columns < 2 || bytes > context.target.shared) return std::nullopt;
  return plan;
}

absl::Status ScheduleRows(Schedule& schedule, const GpuContext& context, const RowsPlan& plan) {
  const int last = static_cast<int>(context.info.blocks.size()) - 1;
  const BlockInfo& sink = context.block(last);
  HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, sink.name));
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> rest, GetLoops(schedule, ref));
  HONE_ASSIGN_OR_RETURN(const auto by_iter, LoopsOfIters(schedule, ref, rest));
  std::vector<LoopRef> rows;
  for (size_t i = 0; i < sink.iters.size(); ++i) {
    if (!by_iter[i].has_value() || !plan.is_row[i]) continue;
    rows.push_back(*by_iter[i]);
    std::erase(rest, *by_iter[i]);
  }
  if (rows.empty()) return absl::FailedPreconditionError("rows: there is one row");
  std::vector<LoopRef> order = rows;
  order.insert(order.end(), rest.begin(), rest.end());
  if (order.size() > 1) HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  HONE_ASSIGN_OR_RETURN(const LoopRef row, FuseAll(schedule, rows));
  HONE_RETURN_IF_ERROR(Bind(schedule, row, "blockIdx.x"));
  HONE_RETURN_IF_ERROR(ShareOut(schedule, ref, 1, sink.reduces, plan.threads));
  for (int b = last - 1; b >= 0; --b) {
    const BlockInfo& info = context.block(b);
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, info.name));
    HONE_RETURN_IF_ERROR(ComputeAt(schedule, block, row));
    HONE_RETURN_IF_ERROR(SetScope(schedule, block, 0, Scope::kShared));
    HONE_RETURN_IF_ERROR(ShareOut(schedule, block, 1, info.reduces, plan.threads));
  }
  return absl::OkStatus();
}

}  // namespace hone
