// rows: every row is a block of threads, and every block of the function does its part of the row there.
//
//   for i: for k: B[i] += A[i, k]                 blockIdx.x i: for k0: threadIdx.x k1: B[i] += A[i, k]
//   for i: for j: C[i, j] = f(A[i, j], B[i])  =>                for j0: threadIdx.x j1: C[i, j] = f(A[i, j], B[i])
#include <algorithm>
#include <cmath>

#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"
#include "tuner/space/nests/nest_loops.h"

namespace hone {
namespace {

constexpr int64_t kFewestThreads = 32;
constexpr int64_t kRoomOfBuffer = 256;  // bytes beside the elements: every buffer starts at a multiple of 128

// Binds the loops of a block from depth `outer` on, those of the last of them, or of all where it does not reduce.
absl::Status ShareOut(Schedule& schedule, BlockRef block, size_t outer, bool reduces, int64_t threads) {
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> own, InnerLoops(schedule, block, outer));
  if (own.empty()) return absl::OkStatus();  // one element: the first thread's
  LoopRef columns = own.back();
  if (!reduces) { HONE_ASSIGN_OR_RETURN(columns, FuseAll(schedule, own)); }
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, columns, {-1, threads}));
  return Bind(schedule, parts[1], "threadIdx.x");
}

// What is the same for all choices.
struct Rows {
  std::vector<bool> is_row;  // of each iteration variable of the last block
  int64_t rows = 1;
  int64_t columns = 1;       // of the block with most of them
  int64_t bytes = 0;         // of shared memory: of a row,
  int64_t thread_bytes = 0;  //                   and for each thread of it
};

// Which variables of the last block are rows: those by which it reads what there is one of for each row.
std::optional<std::vector<bool>> IsRow(const GpuContext& context) {
  const int last = static_cast<int>(context.info.blocks.size()) - 1;
  const BlockInfo& sink = context.block(last);
  std::vector<bool> is_row(sink.iters.size(), false);
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
        if (read.strides[i] != 0) is_row[i] = true;
    }
  }
  if (!sums) return std::nullopt;
  for (size_t i = 0; i < sink.iters.size(); ++i)
    if (sink.reduces && sink.spatial(static_cast<int>(i))) is_row[i] = true;
  return is_row;
}

std::optional<Rows> FindRows(const GpuContext& context) {
  const std::optional<std::vector<bool>> is_row = IsRow(context);
  if (!is_row.has_value()) return std::nullopt;
  const int last = static_cast<int>(context.info.blocks.size()) - 1;
  Rows found{.is_row = *is_row};
  for (size_t i = 0; i < found.is_row.size(); ++i) found.rows *= found.is_row[i] ? context.block(last).extents[i] : 1;
  for (int b = 0; b <= last; ++b) {
    const BlockInfo& block = context.block(b);
    if (block.instances() % found.rows != 0) return std::nullopt;  // it does not go by these rows
    found.columns = std::max(found.columns, block.instances() / found.rows);
    const int64_t element = block.output.type().bytes();
    if (b < last) found.bytes += (*block.output.NumElements() / found.rows + 1) * element;
    if (block.reduces) found.thread_bytes += element;
    found.bytes += kRoomOfBuffer;
  }
  return found.columns < 2 ? std::nullopt : std::optional(found);
}

class RowsNest : public GpuNest {
 public:
  RowsNest(GpuContextRef context, Rows rows)
      : GpuNest("rows", context, static_cast<int>(context->info.blocks.size()) - 1), rows_(std::move(rows)) {
    const int64_t most = std::max(kFewestThreads, PowerOfTwoFrom(rows_.columns));
    AddKnob("threads", {8, 16, 32, 64, 128, 256, 512, 1024}, std::min(most, target().threads));
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override {
    LaunchWork work{.blocks = static_cast<double>(rows_.rows), .threads = values[0]};
    work.shared_bytes = rows_.bytes + rows_.thread_bytes * values[0];
    if (work.shared_bytes > target().shared) return std::nullopt;
    for (const BlockInfo& block : context_->info.blocks) {
      const double instances = static_cast<double>(block.instances()) / work.blocks;
      const double threads = static_cast<double>(values[0]);
      work.operations += std::ceil(instances / threads) * threads * std::max(1.0, block.operations);
      for (const BlockInfo::Access& read : block.reads) work.near_bytes += instances * read.buffer.type().bytes();
      if (block.reduces) work.barriers += 1 + std::log2(threads);
      for (const BlockInfo::Access& read : block.reads) {
        const bool made_here = context_->info.Producer(read.buffer) >= 0;
        if (!made_here) work.memory_bytes += static_cast<double>(read.elements * read.buffer.type().bytes());
      }
    }
    work.far_bytes = work.memory_bytes / work.blocks;
    return LaunchMicroseconds(work, target());
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override;

 private:
  const Rows rows_;
};

absl::Status RowsNest::Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const {
  Schedule& schedule = build.schedule;
  const BlockInfo& sink = info();
  HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, sink.name));
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> rest, GetLoops(schedule, ref));
  HONE_ASSIGN_OR_RETURN(const auto by_iter, LoopsOfIters(schedule, ref, rest));
  std::vector<LoopRef> rows;
  for (size_t i = 0; i < sink.iters.size(); ++i) {
    if (!by_iter[i].has_value() || !rows_.is_row[i]) continue;
    rows.push_back(*by_iter[i]);
    std::erase(rest, *by_iter[i]);
  }
  if (rows.empty()) return absl::FailedPreconditionError("rows: there is one row");
  std::vector<LoopRef> order = rows;
  order.insert(order.end(), rest.begin(), rest.end());
  if (order.size() > 1) HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  HONE_ASSIGN_OR_RETURN(const LoopRef row, FuseAll(schedule, rows));
  HONE_RETURN_IF_ERROR(Bind(schedule, row, "blockIdx.x"));
  HONE_RETURN_IF_ERROR(ShareOut(schedule, ref, 1, sink.reduces, values[0]));
  for (int b = block_ - 1; b >= 0; --b) {
    const BlockInfo& before = context_->block(b);
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, before.name));
    HONE_RETURN_IF_ERROR(ComputeAt(schedule, block, row));
    HONE_RETURN_IF_ERROR(SetScope(schedule, block, 0, Scope::kShared));
    HONE_RETURN_IF_ERROR(ShareOut(schedule, block, 1, before.reduces, values[0]));
  }
  return absl::OkStatus();
}

}  // namespace

GpuNestRef MakeRowsNest(GpuContextRef context) {
  std::optional<Rows> rows = FindRows(*context);
  return rows.has_value() ? std::make_shared<RowsNest>(std::move(context), *std::move(rows)) : nullptr;
}

}  // namespace hone
