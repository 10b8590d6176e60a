// warp product: tiles of the output by the instructions that all threads of a warp do together, mma.sync.
//
//   blockIdx.x tile:
//     threadIdx.y warp: threadIdx.x lane:
//       for steps of k:
//         shared A, B = what the tile reads in this step, with zeros beyond its ends      all threads together
//         for k in the step: for rows, columns of the warp: fragments of A and B; S += A * B, in registers
//       shared S = S                                                                      each thread its registers
//     threadIdx.y, x: epilogue of the tile's elements, or a copy                          neighbours to neighbours
//
// Operands and result are padded to whole tiles, so that no thread stays away from an instruction; what is beyond the
// ends is neither read nor written. The result goes by way of shared memory, because the elements that a thread has in
// registers are no neighbours.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/annotations.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/inline.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/pad_einsum.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/tensorize.h"
#include "compiler/schedule/primitives/transform_block_layout.h"
#include "compiler/schedule/primitives/transform_layout.h"
#include "compiler/support/status_macros.h"
#include "compiler/tile/tile_intrinsic.h"
#include "tuner/space/gpu/gpu_nests.h"

namespace hone {
namespace {

using Loops = std::vector<LoopRef>;

constexpr int64_t kMostSums = 128;   // of a thread: more do not stay in registers
constexpr double kMatrixUnits = 8;   // times the multiply-adds of 32 bits that a processor does, of 16 bits
constexpr int64_t kAlignment = 128;  // every buffer of shared memory starts at a multiple of it

// C[.., m, n] += A[.., m, k] * B[.., k, n] of a block, by its variables; others are batches.
struct WarpShape {
  const TileIntrinsic* intrinsic = nullptr;
  int64_t rows = 1, columns = 1, terms = 1;  // of one instruction
  size_t m = 0, n = 0, k = 0;                // iteration variables
  size_t left = 0, right = 0;                // reads
};

int64_t AxisExtent(const TileIntrinsic& intrinsic, std::string_view name) {
  const IterVar* axis = intrinsic.FindAxis(name);
  return axis == nullptr ? 0 : ConstantValue(axis->domain.extent).value_or(0);
}

std::optional<WarpShape> ShapeOf(const BlockInfo& block, const GpuTarget& target) {
  if (block.reads.size() != 2 || block.last_iter() < 0) return std::nullopt;
  WarpShape shape;
  shape.n = static_cast<size_t>(block.last_iter());
  const auto moves = [&](size_t read, size_t iter) { return block.reads[read].strides[iter] != 0; };
  shape.right = moves(0, shape.n) ? 0 : 1;
  shape.left = 1 - shape.right;
  if (!moves(shape.right, shape.n) || moves(shape.left, shape.n)) return std::nullopt;
  int64_t most_rows = 1, reduced = 0;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (!block.spatial(static_cast<int>(i))) {
      shape.k = i;
      ++reduced;
    } else if (i != shape.n && !moves(shape.right, i) && block.extents[i] > most_rows) {
      shape.m = i;
      most_rows = block.extents[i];
    }
  }
  if (most_rows == 1 || reduced != 1) return std::nullopt;
  shape.intrinsic = FindWarpProduct(block.reads[shape.left].buffer.type(), block.reads[shape.right].buffer.type(),
                                    block.output.type(), FeaturesOf(target));
  if (shape.intrinsic == nullptr || shape.intrinsic->threads != target.lanes) return std::nullopt;
  shape.rows = AxisExtent(*shape.intrinsic, "m");
  shape.columns = AxisExtent(*shape.intrinsic, "n");
  shape.terms = AxisExtent(*shape.intrinsic, "k");
  return shape;
}

// Sizes as knobs state them: warps of a block, instructions of a warp, instructions of a step along k.
struct WarpPlan {
  int64_t row_warps = 1, column_warps = 1, rows = 1, columns = 1, terms = 1;
  int64_t fetched = 1;  // neighbours that a thread copies to shared memory at once
  int64_t stages = 1;   // steps whose tiles are in shared memory at once

  int64_t warps() const { return row_warps * column_warps; }
};

class Builder {
 public:
  Builder(Schedule& schedule, const GpuContext& context, int block, const WarpShape& shape, const WarpPlan& plan)
      : schedule_(schedule),
        context_(context),
        block_(block),
        info_(context.block(block)),
        shape_(shape),
        plan_(plan),
        extents_({plan.warps(), context.target.lanes}) {}

  absl::Status Build() {
    HONE_ASSIGN_OR_RETURN(ref_, GetBlock(schedule_, info_.name));
    HONE_RETURN_IF_ERROR(Pad());
    HONE_ASSIGN_OR_RETURN(const std::vector<BlockRef> copies, CopiesToShared());
    HONE_ASSIGN_OR_RETURN(const BlockRef taker, TakeFromShared());
    HONE_ASSIGN_OR_RETURN(const BlockRef store, CacheWrite(schedule_, ref_, 0, Scope::kRegister));
    HONE_RETURN_IF_ERROR(LayOut(store));
    HONE_RETURN_IF_ERROR(SplitLoops());
    HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule_, store, lane_));
    HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule_, taker, tile_));
    HONE_RETURN_IF_ERROR(ShareOutElements(schedule_, taker, 1, extents_, 1));
    for (const BlockRef copy : copies) {
      HONE_RETURN_IF_ERROR(ComputeAt(schedule_, copy, step_));
      HONE_RETURN_IF_ERROR(ShareOutElements(schedule_, copy, 4, extents_, plan_.fetched));
    }
    HONE_RETURN_IF_ERROR(DecomposeReduction(schedule_, ref_, step_).status());
    HONE_RETURN_IF_ERROR(Tensorize(schedule_, instruction_, shape_.intrinsic->name));
    return plan_.stages > 1 ? Pipeline(copies.size()) : absl::OkStatus();
  }

 private:
  bool Grows(size_t iter) const { return info_.extents[iter] % padding_[iter] != 0; }
  bool Grows(const BlockInfo::Access& read) const {
    for (const size_t i : {shape_.m, shape_.n, shape_.k}) {
      if (read.strides[i] != 0 && Grows(i)) return true;
    }
    return false;
  }

  absl::Status Pad() {
    padding_.assign(info_.iters.size(), 1);
    padding_[shape_.m] = plan_.row_warps * plan_.rows * shape_.rows;
    padding_[shape_.n] = plan_.column_warps * plan_.columns * shape_.columns;
    padding_[shape_.k] = plan_.terms * shape_.terms;
    if (!Grows(shape_.m) && !Grows(shape_.n) && !Grows(shape_.k)) return absl::OkStatus();
    return PadEinsum(schedule_, ref_, padding_);
  }

  // Of operands that grow, their padding; otherwise the block that makes an operand on the way, or a copy.
  absl::StatusOr<std::vector<BlockRef>> CopiesToShared() {
    std::vector<BlockRef> copies;
    for (const size_t r : {shape_.left, shape_.right}) {
      const Buffer& buffer = info_.reads[r].buffer;
      const int own = OwnProducer(context_, block_, r);
      const bool grows = Grows(info_.reads[r]);
      if (own < 0 && !grows) {
        HONE_ASSIGN_OR_RETURN(const BlockRef copy, CopyToShared(schedule_, ref_, buffer));
        copies.push_back(copy);
        continue;
      }
      if (own >= 0 && grows) {
        HONE_ASSIGN_OR_RETURN(const BlockRef made, GetBlock(schedule_, context_.block(own).name));
        HONE_RETURN_IF_ERROR(ComputeInline(schedule_, made));
      }
      const std::string name = grows ? absl::StrCat(buffer.name(), "_pad") : context_.block(own).name;
      HONE_ASSIGN_OR_RETURN(const BlockRef copy, GetBlock(schedule_, name));
      HONE_RETURN_IF_ERROR(SetScope(schedule_, copy, 0, Scope::kShared));
      copies.push_back(copy);
    }
    return copies;
  }

  // The block that takes the results out of shared memory: the epilogue, or a copy.
  absl::StatusOr<BlockRef> TakeFromShared() {
    const int epilogue = context_.fusion.Epilogue(block_);
    const bool grows = Grows(shape_.m) || Grows(shape_.n);
    if (!grows && epilogue < 0) return CacheWrite(schedule_, ref_, 0, Scope::kShared);
    HONE_RETURN_IF_ERROR(SetScope(schedule_, ref_, 0, Scope::kShared));
    if (!grows) return GetBlock(schedule_, context_.block(epilogue).name);
    HONE_ASSIGN_OR_RETURN(const BlockRef slice, GetBlock(schedule_, absl::StrCat(info_.output.name(), "_pad")));
    if (epilogue < 0) return slice;
    HONE_RETURN_IF_ERROR(ComputeInline(schedule_, slice));
    return GetBlock(schedule_, context_.block(epilogue).name);
  }

  // The instruction's registers: of a result m, n in lane m % 8 * 4 + n % 8 / 2, register m / 8 % 2 * 2 + n % 2.
  absl::Status LayOut(BlockRef store) {
    HONE_RETURN_IF_ERROR(TransformLayout(schedule_, ref_, 0, BufferKind::kWrite, Layout(ResultIters())));
    HONE_RETURN_IF_ERROR(TransformBlockLayout(schedule_, store, Layout(ResultIters())));
    std::vector<size_t> all(info_.iters.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    return TransformBlockLayout(schedule_, ref_, Layout(all));
  }

  // The block's variables in the order of the result's dimensions.
  std::vector<size_t> ResultIters() const {
    std::vector<size_t> iters;
    for (const int iter : info_.output_iters) iters.push_back(static_cast<size_t>(iter));
    return iters;
  }

  // Batches, tiles of an instruction, lanes (two), terms outside, registers (two), terms of an instruction.
  IndexMap Layout(const std::vector<size_t>& iters) const {
    IndexMap map;
    std::map<size_t, Expr> at;
    for (const size_t i : iters) {
      map.inputs.emplace_back(absl::StrCat("i", i));
      at[i] = map.inputs.back();
      if (i != shape_.m && i != shape_.n && i != shape_.k) map.outputs.push_back(at[i]);
    }
    const Expr m = at[shape_.m], n = at[shape_.n];
    const auto number = [](int64_t value) { return IntConst(value); };
    map.outputs.push_back(FloorDiv(m, number(shape_.rows)));
    map.outputs.push_back(FloorDiv(n, number(shape_.columns)));
    map.outputs.push_back(FloorMod(m, number(8)));
    map.outputs.push_back(FloorDiv(FloorMod(n, number(8)), number(2)));
    const auto k = at.find(shape_.k);
    if (k != at.end()) map.outputs.push_back(FloorDiv(k->second, number(shape_.terms)));
    map.outputs.push_back(FloorDiv(FloorMod(m, number(16)), number(8)));
    map.outputs.push_back(FloorMod(n, number(2)));
    if (k != at.end()) map.outputs.push_back(FloorMod(k->second, number(shape_.terms)));
    return map;
  }

  absl::Status SplitLoops() {
    HONE_ASSIGN_OR_RETURN(Loops loops, GetLoops(schedule_, ref_));
    const size_t batches = loops.size() - 8;
    Loops tiles(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(batches));
    const auto loop = [&](size_t i) { return loops[batches + i]; };
    HONE_ASSIGN_OR_RETURN(const Loops rows, Split(schedule_, loop(0), {-1, plan_.row_warps, plan_.rows}));
    HONE_ASSIGN_OR_RETURN(const Loops columns, Split(schedule_, loop(1), {-1, plan_.column_warps, plan_.columns}));
    HONE_ASSIGN_OR_RETURN(const Loops terms, Split(schedule_, loop(4), {-1, plan_.terms}));
    tiles.push_back(rows[0]);
    tiles.push_back(columns[0]);
    Loops order = tiles;
    order.insert(order.end(), {rows[1], columns[1], loop(2), loop(3), terms[0], terms[1], rows[2], columns[2], loop(5),
                               loop(6), loop(7)});
    HONE_RETURN_IF_ERROR(Reorder(schedule_, order));
    HONE_ASSIGN_OR_RETURN(tile_, FuseAll(schedule_, tiles));
    HONE_ASSIGN_OR_RETURN(const LoopRef warps, FuseAll(schedule_, {rows[1], columns[1]}));
    HONE_ASSIGN_OR_RETURN(lane_, FuseAll(schedule_, {loop(2), loop(3)}));
    HONE_RETURN_IF_ERROR(Bind(schedule_, tile_, "blockIdx.x"));
    HONE_RETURN_IF_ERROR(Bind(schedule_, warps, "threadIdx.y"));
    HONE_RETURN_IF_ERROR(Bind(schedule_, lane_, "threadIdx.x"));
    step_ = terms[0];
    instruction_ = loop(5);
    for (const LoopRef unrolled : {terms[1], rows[2], columns[2]}) HONE_RETURN_IF_ERROR(Unroll(schedule_, unrolled));
    return absl::OkStatus();
  }

  // Copies run ahead of the product; asynchronously where they do nothing but copy.
  absl::Status Pipeline(size_t copies) {
    std::vector<int64_t> stages(copies, 0);
    stages.push_back(plan_.stages - 1);
    HONE_RETURN_IF_ERROR(Annotate(schedule_, step_, kPipelineStage, stages));
    for (const size_t r : {shape_.left, shape_.right}) {
      if (OwnProducer(context_, block_, r) >= 0 || Grows(info_.reads[r])) return absl::OkStatus();
    }
    return Annotate(schedule_, step_, kPipelineAsyncStages, std::vector<int64_t>{0});
  }

  Schedule& schedule_;
  const GpuContext& context_;
  const int block_;
  const BlockInfo& info_;
  const WarpShape& shape_;
  const WarpPlan plan_;
  const std::vector<int64_t> extents_;  // of threadIdx.y and x
  std::vector<int64_t> padding_;
  BlockRef ref_;
  LoopRef tile_, lane_, step_, instruction_;
};

class WarpProductNest : public GpuNest {
 public:
  WarpProductNest(GpuContextRef context, int block, const WarpShape& shape)
      : GpuNest("warp_product", std::move(context), block), shape_(shape) {
    const auto instructions = [&](size_t iter, int64_t size) {
      return PowerOfTwoFrom((info().extents[iter] + size - 1) / size);
    };
    const int64_t rows = instructions(shape.m, shape.rows), columns = instructions(shape.n, shape.columns);
    AddKnob("rows.warps", {1, 2, 4}, rows);
    AddKnob("columns.warps", {1, 2, 4}, columns);
    AddKnob("rows.each", {1, 2, 4}, rows);
    AddKnob("columns.each", {1, 2, 4, 8}, columns);
    AddKnob("step", {1, 2, 4}, instructions(shape.k, shape.terms));
    AddKnob("fetched", {1, 2, 4, 8}, 8);
    AddKnob("stages", {1, 2, 3, 4}, instructions(shape.k, shape.terms));
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override {
    const WarpPlan plan = PlanOf(values);
    const auto tiles = [&](size_t iter, int64_t size) { return (info().extents[iter] + size - 1) / size; };
    const int64_t rows = plan.row_warps * plan.rows * shape_.rows;
    const int64_t columns = plan.column_warps * plan.columns * shape_.columns;
    const int64_t terms = plan.terms * shape_.terms, steps = tiles(shape_.k, terms);
    const int64_t sums = plan.rows * plan.columns * shape_.rows * shape_.columns / target().lanes;
    const DType type = info().reads[shape_.left].buffer.type();
    LaunchWork work{.threads = plan.warps() * target().lanes};
    if (work.threads > target().threads || sums > kMostSums) return std::nullopt;
    if (steps < plan.stages) return std::nullopt;
    work.blocks = static_cast<double>(tiles(shape_.m, rows) * tiles(shape_.n, columns));
    for (size_t i = 0; i < info().iters.size(); ++i) {
      if (i != shape_.m && i != shape_.n && i != shape_.k) work.blocks *= static_cast<double>(info().extents[i]);
    }
    work.registers =
        40 + sums +
        (plan.rows * shape_.rows + plan.columns * shape_.columns) * shape_.terms * type.bytes() / 4 / target().lanes;
    work.operations = static_cast<double>(rows * columns * terms * steps) * type.bytes() / (2 * kMatrixUnits);
    const double of_step = static_cast<double>((rows + columns) * terms * type.bytes());
    // Every access costs as if it had 4 bytes more, and copies on their way are of 4, 8 or 16.
    const int64_t together = plan.fetched * type.bytes();
    const double copied = of_step * static_cast<double>(together + 4) / static_cast<double>(together);
    const bool ahead = together >= 4 && together <= 16 && CopiesAlone();
    const double of_warp =
        static_cast<double>((plan.rows * shape_.rows + plan.columns * shape_.columns) * terms * type.bytes());
    const double results = static_cast<double>(rows * columns * info().output.type().bytes());
    work.far_bytes = of_step * static_cast<double>(steps) + results;
    work.ahead = ahead ? plan.stages : 1;
    work.near_bytes =
        (2 * copied + of_warp * static_cast<double>(plan.warps())) * static_cast<double>(steps) + 2 * results;
    work.shared_bytes = plan.stages * static_cast<int64_t>(of_step) + static_cast<int64_t>(results) + 3 * kAlignment;
    if (work.shared_bytes > target().shared) return std::nullopt;
    work.memory_bytes = BytesOfBuffers(info());
    work.barriers = 2 * static_cast<double>(steps) + 1;
    return LaunchMicroseconds(work, target());
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    return Builder(build.schedule, *context_, block_, shape_, PlanOf(values)).Build();
  }

 private:
  // Whether nothing that a block makes on the way is copied.
  bool CopiesAlone() const {
    for (const size_t r : {shape_.left, shape_.right}) {
      if (OwnProducer(*context_, block_, r) >= 0) return false;
    }
    return true;
  }
  static WarpPlan PlanOf(std::span<const int64_t> values) {
    return {values[0], values[1], values[2], values[3], values[4], values[5], values[6]};
  }

  const WarpShape shape_;
};

}  // namespace

GpuNestRef MakeWarpProductNest(GpuContextRef context, int block) {
  if (!IsGpuProduct(context->info, block)) return nullptr;
  const std::optional<WarpShape> shape = ShapeOf(context->block(block), context->target);
  if (!shape.has_value()) return nullptr;
  return std::make_shared<WarpProductNest>(std::move(context), block, *shape);
}

}  // namespace hone
