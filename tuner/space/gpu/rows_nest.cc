// rows: every row is the work of some threads of a block, and every block of the function does its part of the row
// there.
//
//   for i: for k: B[i] += A[i, k]                 blockIdx.x, threadIdx.y i:
//   for i: for j: C[i, j] = f(A[i, j], B[i])  =>    for k0: threadIdx.x k1: registers R = A[i, k..];  for k2: B[i] += R
//                                                   for j0: threadIdx.x j1: for j2, vectorized: C[i, j] = f(A[i, j],
//                                                   B[i])
//
// What there is one of for each row is in registers of all its threads, what there are more of in shared memory.
#include <algorithm>

#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"
#include "tuner/space/gpu/memory_draft.h"
#include "tuner/space/nests/nest_loops.h"

namespace hone {
namespace {

constexpr int64_t kFewestThreads = 32;
constexpr int64_t kRoomOfBuffer = 128;  // bytes beside the elements: every buffer starts at a multiple of it
constexpr int64_t kMostWidth = 8;
constexpr int64_t kMostInRegisters = 32;  // elements of a row that a thread has at once

// What is the same for all choices.
struct Rows {
  std::vector<bool> is_row;  // of each iteration variable of the last block
  size_t last_row = 0;       // the innermost of them that takes several values, or one of them
  int64_t rows = 1;
  int64_t columns = 1;       // of the block with most of them
  int64_t run = kMostWidth;  // neighbours in memory that end with a row of every block: a power of 2
  int64_t widest = 1;        // bytes of an element
  // Of shared memory: of a row, of each element that its threads have for a sum, and beside those.
  int64_t bytes = 0, sum_bytes = 0, room = 0;
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

// The innermost iteration variable that is not along rows: -1 where a row has one instance of the block.
int Innermost(const BlockInfo& block, int64_t rows) {
  if (block.instances() == rows) return -1;
  if (block.reduces) return block.last_reduce_iter();
  for (int i = static_cast<int>(block.iters.size()) - 1; i >= 0; --i)
    if (block.extents[static_cast<size_t>(i)] > 1) return i;
  return -1;
}

std::optional<Rows> FindRows(const GpuContext& context) {
  const std::optional<std::vector<bool>> is_row = IsRow(context);
  if (!is_row.has_value()) return std::nullopt;
  const int last = static_cast<int>(context.info.blocks.size()) - 1;
  Rows found{.is_row = *is_row};
  for (size_t i = 0; i < found.is_row.size(); ++i) {
    const int64_t extent = context.block(last).extents[i];
    if (!found.is_row[i]) continue;
    found.rows *= extent;
    if (extent > 1 || !found.is_row[found.last_row]) found.last_row = i;
  }
  for (int b = 0; b <= last; ++b) {
    const BlockInfo& block = context.block(b);
    if (block.instances() % found.rows != 0) return std::nullopt;  // it does not go by these rows
    found.columns = std::max(found.columns, block.instances() / found.rows);
    const int64_t element = block.output.type().bytes();
    if (const int innermost = Innermost(block, found.rows); innermost >= 0) {
      const int64_t extent = block.extents[static_cast<size_t>(innermost)];
      found.run = std::min(found.run, extent & -extent);
    }
    for (const BlockInfo::Access& read : block.reads)
      found.widest = std::max<int64_t>(found.widest, read.buffer.type().bytes());
    found.widest = std::max(found.widest, element);
    const int64_t of_row = *block.output.NumElements() / found.rows;
    if (b < last && of_row > 1) found.bytes += of_row * element;
    if (block.reduces) found.sum_bytes += element;
    found.room += kRoomOfBuffer * (block.reduces ? kBuffersOfSum : 1);
  }
  return found.columns < 2 ? std::nullopt : std::optional(found);
}

class RowsNest : public GpuNest {
 public:
  RowsNest(GpuContextRef context, Rows rows)
      : GpuNest("rows", context, static_cast<int>(context->info.blocks.size()) - 1), rows_(std::move(rows)) {
    const int64_t most = std::max(kFewestThreads, PowerOfTwoFrom(rows_.columns));
    AddKnob("threads", {8, 16, 32, 64, 128, 256, 512, 1024}, std::min(most, target().threads));
    AddKnob("width", {1, 2, 4, 8}, std::min(rows_.run, kVectorBytes / rows_.widest));
    const int64_t extent = info().extents[rows_.last_row];
    AddKnob("rows", {1, 2, 4, 8, 16}, extent & -extent);
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override;
  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override;

 private:
  static constexpr double kStartUs = 0.5;  // in which a block takes the place of another
  static constexpr double kRoundUs = 0.1;  // in which threads agree
  static constexpr double kAgainUs = 0.6;  // in which a part of a row comes again, from a cache
  static constexpr double kOperationsOfLoad = 2;

  // Of so many vectors that a thread takes of a row, those that are on their way together: a power of 2 where not all.
  static int64_t AtOnce(int64_t turns, int64_t width) {
    const int64_t most = kMostInRegisters / width;
    return turns <= most ? turns : most / 2;
  }

  // How a block's instances of a row are shared out.
  struct Shares {
    int64_t threads, width;
  };
  // From depth `outer` of its loops on: those over its elements, or the last of those over its terms.
  absl::Status ShareOut(Schedule& schedule, const BlockInfo& block, BlockRef ref, size_t outer, Shares shares) const;
  // Before each vector of terms is added up it is loaded as a whole.
  absl::Status LoadVectors(Schedule& schedule, const BlockInfo& block, BlockRef ref, LoopRef thread) const;
  // Whether a row of a buffer that a block makes is one element, in registers of every thread of the row.
  bool OneOfEachRow(const BlockInfo& block) const { return *block.output.NumElements() == rows_.rows; }

  const Rows rows_;
};

std::optional<double> RowsNest::Cost(std::span<const int64_t> values, const SketchPlan&) const {
  const int64_t threads = values[0], width = values[1], rows = values[2];
  LaunchWork work{.blocks = static_cast<double>(rows_.rows / rows), .threads = threads * rows};
  work.shared_bytes = rows_.room + rows * (rows_.bytes + rows_.sum_bytes * ElementsOfSum(threads));
  if (work.threads > target().threads || work.shared_bytes > target().shared) return std::nullopt;
  const auto turns_of = [&](int64_t instances) { return (instances + threads * width - 1) / (threads * width); };
  const int64_t turns = turns_of(rows_.columns), at_once = AtOnce(turns, width);
  work.registers = 24 + at_once * width;
  Streaming streaming;
  double rounds = 0, read_bytes = 0;
  std::vector<Buffer> seen;
  for (const BlockInfo& block : context_->info.blocks) {
    const int64_t of_row = block.instances() / rows_.rows;
    const double loads = static_cast<double>(block.reads.size()) / static_cast<double>(width);
    work.operations += static_cast<double>(rows * threads * width * turns_of(of_row)) *
                       (std::max(1.0, block.operations) + kOperationsOfLoad * loads);
    if (block.reduces) rounds += static_cast<double>(BarriersOfSum(threads));
    for (const BlockInfo::Access& read : block.reads) {
      const double bytes = static_cast<double>(read.buffer.type().bytes());
      const bool again = std::ranges::find(seen, read.buffer) != seen.end();
      if (again && at_once == turns) continue;  // in registers
      if (again) streaming.idle_us += kAgainUs;
      work.near_bytes += static_cast<double>(rows * of_row) * bytes;
      if (context_->info.Producer(read.buffer) >= 0) continue;
      work.far_bytes += static_cast<double>(rows * of_row) * bytes;
      if (again) continue;
      seen.push_back(read.buffer);
      read_bytes += static_cast<double>(read.elements) * bytes;
      if (read.elements >= rows_.rows * 2 && streaming.thread_bytes == 0)
        streaming.thread_bytes = bytes * static_cast<double>(width * at_once);
    }
  }
  // Other blocks of a processor go on while one waits.
  work.barriers = rounds / static_cast<double>(std::max<int64_t>(1, ResidentBlocks(work, target())));
  streaming.idle_us += (kStartUs + rounds * kRoundUs) * static_cast<double>(at_once) / static_cast<double>(turns);
  const Buffer& output = info().output;
  work.memory_bytes = read_bytes + static_cast<double>(*output.NumElements() * output.type().bytes());
  return StreamingMicroseconds(work, streaming, target());
}

absl::Status RowsNest::LoadVectors(Schedule& schedule, const BlockInfo& block, BlockRef ref, LoopRef thread) const {
  const auto innermost = static_cast<size_t>(Innermost(block, rows_.rows));
  for (const BlockInfo::Access& read : block.reads) {
    if (!read.affine || read.places != 1 || read.strides[innermost] != 1) continue;
    HONE_ASSIGN_OR_RETURN(const BlockRef copy, CopyTo(schedule, ref, read.buffer, Scope::kRegister));
    HONE_RETURN_IF_ERROR(ComputeAt(schedule, copy, thread));
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> own, GetLoops(schedule, copy));
    HONE_RETURN_IF_ERROR(Vectorize(schedule, own.back()));
  }
  return absl::OkStatus();
}

absl::Status RowsNest::ShareOut(Schedule& schedule, const BlockInfo& block, BlockRef ref, size_t outer,
                                Shares shares) const {
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> own, InnerLoops(schedule, ref, outer));
  if (own.empty()) return absl::OkStatus();  // one element
  LoopRef columns = own.back();
  if (!block.reduces) { HONE_ASSIGN_OR_RETURN(columns, FuseAll(schedule, own)); }
  std::optional<LoopRef> lanes;  // apart from the others, so that what a thread takes at once is there as a whole
  if (shares.width > 1) {
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, columns, {-1, shares.width}));
    columns = parts[0];
    lanes = parts[1];
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, columns, {-1, shares.threads}));
  HONE_RETURN_IF_ERROR(Bind(schedule, parts[1], "threadIdx.x"));
  HONE_ASSIGN_OR_RETURN(const For* loop, schedule.FindLoop(parts[0]));
  const int64_t turns = ConstantValue(loop->extent).value_or(1), at_once = AtOnce(turns, shares.width);
  LoopRef unrolled = parts[0];
  if (at_once < turns) {
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> steps, Split(schedule, parts[0], {-1, at_once}));
    unrolled = steps[1];
  }
  HONE_RETURN_IF_ERROR(Unroll(schedule, unrolled));
  if (!lanes.has_value()) return absl::OkStatus();
  if (!block.reduces) return Vectorize(schedule, *lanes);
  HONE_RETURN_IF_ERROR(LoadVectors(schedule, block, ref, parts[1]));
  return Unroll(schedule, *lanes);
}

absl::Status RowsNest::Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const {
  Schedule& schedule = build.schedule;
  const Shares shares{values[0], values[1]};
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
  if (!by_iter[rows_.last_row].has_value()) return absl::FailedPreconditionError("rows: there is one row");
  std::vector<LoopRef> order = rows;
  order.insert(order.end(), rest.begin(), rest.end());
  if (order.size() > 1) HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  // Of the innermost variable alone, so that threads tell their rows by an index.
  const LoopRef last = *by_iter[rows_.last_row];
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> row, Split(schedule, last, {-1, values[2]}));
  std::ranges::replace(rows, last, row[0]);
  HONE_ASSIGN_OR_RETURN(const LoopRef others, FuseAll(schedule, rows));
  HONE_RETURN_IF_ERROR(Bind(schedule, others, "blockIdx.x"));
  HONE_RETURN_IF_ERROR(Bind(schedule, row[1], "threadIdx.y"));
  HONE_RETURN_IF_ERROR(ShareOut(schedule, sink, ref, 2, shares));
  for (int b = block_ - 1; b >= 0; --b) {
    const BlockInfo& before = context_->block(b);
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, before.name));
    HONE_RETURN_IF_ERROR(ComputeAt(schedule, block, row[1]));
    HONE_RETURN_IF_ERROR(SetScope(schedule, block, 0, OneOfEachRow(before) ? Scope::kRegister : Scope::kShared));
    HONE_RETURN_IF_ERROR(ShareOut(schedule, before, block, 2, shares));
  }
  return absl::OkStatus();
}

}  // namespace

GpuNestRef MakeRowsNest(GpuContextRef context) {
  std::optional<Rows> rows = FindRows(*context);
  return rows.has_value() ? std::make_shared<RowsNest>(std::move(context), *std::move(rows)) : nullptr;
}

}  // namespace hone
