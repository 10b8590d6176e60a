// transpose: tiles by way of shared memory, of a block that reads along another variable than it writes.
//
//   for b: for i: for j: B[b, i, j] = f(A[b, j, i])   =>
//     blockIdx.x tile of b, i, j:
//       threadIdx.y, x: shared S[j, i] = A[b, j, i]        neighbours along i
//       threadIdx.y, x: B[b, i, j] = f(S[j, i])            neighbours along j
//
// Rows of S are a bank longer than a whole number of rounds of all banks: threads that read a column of it ask each a
// bank of their own.
#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/storage_align.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"
#include "tuner/space/gpu/memory_draft.h"
#include "tuner/space/workload/block_fusion.h"

namespace hone {
namespace {

constexpr int64_t kBankBytes = 4, kRoundOfBanks = 128;
constexpr int64_t kShortest = 4;  // of an axis of the tile: below that its neighbours are soon read by the same thread

// Reads whose neighbours lie along one variable, `along`, which is not that of the output's last dimension.
struct Transposed {
  int along = -1;
  std::vector<size_t> reads;
};

std::optional<Transposed> FindTransposed(const BlockInfo& block) {
  const int last = block.last_iter();
  if (block.reduces || !block.single_store || last < 0 || !WritesAtItsOwnVariables(block)) return std::nullopt;
  Transposed found;
  for (size_t r = 0; r < block.reads.size(); ++r) {
    const BlockInfo::Access& read = block.reads[r];
    if (!read.affine || read.places != 1 || read.strides[static_cast<size_t>(last)] <= 1) continue;
    for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
      if (i == last || read.strides[static_cast<size_t>(i)] != 1) continue;
      if (block.extents[static_cast<size_t>(i)] < kShortest || (found.along >= 0 && found.along != i)) continue;
      found.along = i;
      found.reads.push_back(r);
      break;
    }
  }
  if (found.along < 0 || block.extents[static_cast<size_t>(last)] < kShortest) return std::nullopt;
  return found;
}

// The two loops of a block from depth 1 on: neighbours along the last one to neighbours, and all that a thread has to
// move at once.
absl::Status ShareOutTile(Schedule& schedule, BlockRef block, int64_t rows, int64_t lanes) {
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> own, InnerLoops(schedule, block, 1));
  if (own.size() != 2) return absl::FailedPreconditionError("transpose: a tile is not one of two axes");
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> of_rows, Split(schedule, own[0], {-1, rows}));
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> of_columns, Split(schedule, own[1], {-1, lanes}));
  HONE_RETURN_IF_ERROR(Reorder(schedule, {of_rows[0], of_columns[0], of_rows[1], of_columns[1]}));
  for (const LoopRef all : {of_rows[0], of_columns[0]}) HONE_RETURN_IF_ERROR(Unroll(schedule, all));
  HONE_RETURN_IF_ERROR(Bind(schedule, of_rows[1], "threadIdx.y"));
  return Bind(schedule, of_columns[1], "threadIdx.x");
}

class TransposeNest : public GpuNest {
 public:
  TransposeNest(GpuContextRef context, int block, Transposed transposed)
      : GpuNest("transpose", std::move(context), block), transposed_(std::move(transposed)) {
    AddKnob("along", {kLanes, 2 * kLanes}, std::max(kLanes, PowerOfTwoFrom(ExtentAlong())));
    AddKnob("across", {kLanes, 2 * kLanes}, std::max(kLanes, PowerOfTwoFrom(ExtentAcross())));
    AddKnob("rows", {1, 2, 4, 8, 16, 32}, target().threads / kLanes);
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override {
    const int64_t along = values[0], across = values[1], rows = values[2], tile = along * across;
    LaunchWork work{.threads = kLanes * rows};
    if (work.threads > target().threads || tile / work.threads > kMostTurns) return std::nullopt;
    const auto tiles = [](int64_t extent, int64_t size) { return (extent + size - 1) / size; };
    const int64_t others = info().instances() / (ExtentAlong() * ExtentAcross());
    work.blocks = static_cast<double>(others * tiles(ExtentAlong(), along) * tiles(ExtentAcross(), across));
    work.operations = static_cast<double>(tile) * std::max(1.0, info().operations);
    work.barriers = 1;
    const int64_t turns = tile / work.threads;  // of a thread, all at once
    work.registers = 24 + turns * static_cast<int64_t>(transposed_.reads.size());
    // Whole sectors: where tiles are narrow, parts of them.
    const double written = static_cast<double>(info().output.type().bytes());
    work.memory_bytes = written * static_cast<double>(info().instances()) *
                        SectorsOfRuns(static_cast<double>(std::min(across, ExtentAcross())) * written);
    work.near_bytes = static_cast<double>(tile) * written;
    Streaming streaming;
    for (size_t r = 0; r < info().reads.size(); ++r) {
      const BlockInfo::Access& read = info().reads[r];
      const double bytes = static_cast<double>(read.buffer.type().bytes());
      const bool staged = std::ranges::find(transposed_.reads, r) != transposed_.reads.end();
      const double run =
          bytes * static_cast<double>(staged ? std::min(along, ExtentAlong()) : std::min(across, ExtentAcross()));
      work.memory_bytes += static_cast<double>(read.elements) * bytes * SectorsOfRuns(run);
      work.near_bytes += static_cast<double>(tile) * bytes * (staged ? 3 : 1);
      if (!staged) continue;
      work.shared_bytes += PaddedRow(along, read.buffer) * across * read.buffer.type().bytes();
      streaming.thread_bytes += bytes * static_cast<double>(turns);
    }
    if (work.shared_bytes > target().shared) return std::nullopt;
    work.far_bytes = work.memory_bytes / work.blocks;
    streaming.idle_us = kWritesUs;
    return StreamingMicroseconds(work, streaming, target());
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override;

 private:
  static constexpr int64_t kLanes = 32;
  static constexpr int64_t kMostTurns = 32;  // a register each
  static constexpr double kWritesUs = 0.3;   // in which a block writes its tile, and the next one starts

  int64_t ExtentAlong() const { return info().extents[static_cast<size_t>(transposed_.along)]; }
  int64_t ExtentAcross() const { return info().extents[static_cast<size_t>(info().last_iter())]; }
  // Elements of a row in shared memory.
  static int64_t PaddedRow(int64_t row, const Buffer& buffer) {
    const int64_t round = kRoundOfBanks / buffer.type().bytes(), pad = PadOf(buffer);
    return (std::max<int64_t>(row - pad, 0) + round - 1) / round * round + pad;
  }
  static int64_t PadOf(const Buffer& buffer) { return std::max<int64_t>(1, kBankBytes / buffer.type().bytes()); }

  const Transposed transposed_;
};

absl::Status TransposeNest::Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const {
  Schedule& schedule = build.schedule;
  const int64_t along = values[0], across = values[1], rows = values[2];
  HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, info().name));
  HONE_ASSIGN_OR_RETURN(LoopsOfBlock loops, FindLoops(schedule, ref, info()));
  const std::optional<LoopRef> rows_loop = loops.by_iter[static_cast<size_t>(transposed_.along)];
  const std::optional<LoopRef> columns_loop = loops.by_iter[static_cast<size_t>(info().last_iter())];
  if (!rows_loop.has_value() || !columns_loop.has_value()) return absl::InternalError("transpose: an axis has no loop");
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> of_rows, Split(schedule, *rows_loop, {-1, along}));
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> of_columns, Split(schedule, *columns_loop, {-1, across}));
  std::vector<LoopRef> tiles = loops.spatial;
  std::erase(tiles, *rows_loop);
  std::erase(tiles, *columns_loop);
  tiles.push_back(of_rows[0]);
  tiles.push_back(of_columns[0]);
  std::vector<LoopRef> order = tiles;
  order.insert(order.end(), {of_rows[1], of_columns[1]});
  HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  HONE_ASSIGN_OR_RETURN(const LoopRef tile, FuseAll(schedule, tiles));
  HONE_RETURN_IF_ERROR(Bind(schedule, tile, "blockIdx.x"));
  for (const size_t r : transposed_.reads) {
    const Buffer& buffer = info().reads[r].buffer;
    HONE_ASSIGN_OR_RETURN(const BlockRef copy, CopyToShared(schedule, ref, buffer));
    if (buffer.shape().size() > 1) {
      const int64_t round = kRoundOfBanks / buffer.type().bytes();
      HONE_RETURN_IF_ERROR(StorageAlign(schedule, copy, 0, -2, round, PadOf(buffer)));
    }
    HONE_RETURN_IF_ERROR(ComputeAt(schedule, copy, tile));
    HONE_RETURN_IF_ERROR(ShareOutTile(schedule, copy, rows, kLanes));
  }
  return ShareOutTile(schedule, ref, rows, kLanes);
}

}  // namespace

GpuNestRef MakeTransposeNest(GpuContextRef context, int block) {
  std::optional<Transposed> transposed = FindTransposed(context->block(block));
  if (!transposed.has_value()) return nullptr;
  return std::make_shared<TransposeNest>(std::move(context), block, *std::move(transposed));
}

}  // namespace hone
