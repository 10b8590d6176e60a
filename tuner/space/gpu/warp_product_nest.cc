// warp product: tiles of the output by the instructions that all threads of a warp do together, mma.sync.
//
//   blockIdx.x tile:
//     threadIdx.y warp: threadIdx.x lane:
//       for steps of k:
//         shared A, B = what the tile reads in this step, with zeros beyond its ends      all threads together
//         for k in the step: for rows, columns of the warp: fragments of A and B, by ldmatrix where there is one for
//           the type and the order; S += A * B, in registers
//       shared S = S                                                                      each thread its registers
//     threadIdx.y, x: epilogue of the tile's elements, or a copy                          neighbours to neighbours
//
// Operands and result are padded to whole tiles, so that no thread stays away from an instruction; what is beyond the
// ends is neither read nor written. The result goes by way of shared memory, because the elements that a thread has in
// registers are no neighbours.
#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

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
#include "compiler/schedule/primitives/reindex.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/storage_align.h"
#include "compiler/schedule/primitives/tensorize.h"
#include "compiler/schedule/primitives/transform_block_layout.h"
#include "compiler/schedule/primitives/transform_layout.h"
#include "compiler/support/status_macros.h"
#include "compiler/tile/tile_intrinsic.h"
#include "tuner/space/gpu/gpu_nests.h"

namespace hone {
namespace {

using Loops = std::vector<LoopRef>;

constexpr int64_t kMostSums = 128;  // of a thread: more do not stay in registers
constexpr double kOperationsOfCycle =
    32;                                  // multiply-adds of 32 bits that a processor does for each of its matrix units
constexpr int64_t kOtherRegisters = 48;  // of a thread, beside sums and fragments
constexpr int64_t kBanksBetweenRows = 8;
constexpr int64_t kMostRowsOfGroup = 8;  // tiles above one another that run one after the other
constexpr int64_t kAlignment = 128;      // every buffer of shared memory starts at a multiple of it

// A block as C[.., m, n] += A[.., m, k] * B[.., k, n]: its variables by what they are of. A convolution has several of
// rows and of terms; those that move both operands are batches.
struct WarpShape {
  const TileIntrinsic* intrinsic = nullptr;
  int64_t rows = 1, columns = 1, terms = 1;  // of one instruction
  std::vector<size_t> batches, of_rows, of_terms;
  size_t of_columns = 0;
  int64_t m = 1, n = 1, k = 1;                                      // extents, of all variables together
  size_t left = 0, right = 0;                                       // reads
  const TileIntrinsic *left_load = nullptr, *right_load = nullptr;  // of their registers; null: by elements
};

int64_t AxisExtent(const TileIntrinsic& intrinsic, std::string_view name) {
  const IterVar* axis = intrinsic.FindAxis(name);
  return axis == nullptr ? 0 : ConstantValue(axis->domain.extent).value_or(0);
}

std::optional<WarpShape> ShapeOf(const BlockInfo& block, const GpuTarget& target) {
  if (block.reads.size() != 2 || block.last_iter() < 0) return std::nullopt;
  WarpShape shape;
  shape.of_columns = static_cast<size_t>(block.last_iter());
  const auto moves = [&](size_t read, size_t iter) { return block.reads[read].strides[iter] != 0; };
  shape.right = moves(0, shape.of_columns) ? 0 : 1;
  shape.left = 1 - shape.right;
  if (!moves(shape.right, shape.of_columns) || moves(shape.left, shape.of_columns)) return std::nullopt;
  shape.n = block.extents[shape.of_columns];
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const bool spatial = block.spatial(static_cast<int>(i));
    if (i == shape.of_columns || block.extents[i] == 1) continue;
    const bool batch = spatial && moves(shape.right, i);
    (!spatial ? shape.of_terms : batch ? shape.batches : shape.of_rows).push_back(i);
  }
  for (const size_t i : shape.of_rows) shape.m *= block.extents[i];
  for (const size_t i : shape.of_terms) shape.k *= block.extents[i];
  shape.intrinsic = FindWarpProduct(block.reads[shape.left].buffer.type(), block.reads[shape.right].buffer.type(),
                                    block.output.type(), FeaturesOf(target));
  if (shape.of_rows.empty() || shape.of_terms.empty() || shape.intrinsic == nullptr ||
      shape.intrinsic->threads != target.lanes)
    return std::nullopt;
  // Terms lie in rows of the left operand as its registers have them, across those of the right one.
  const auto load = [&](size_t operand, bool transposed) {
    const Buffer& registers = shape.intrinsic->operands[operand];
    return FindMatrixLoad(registers.type(), *registers.NumElements(), transposed, FeaturesOf(target));
  };
  shape.left_load = load(1, false);
  shape.right_load = load(2, true);
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
  int64_t order = 1;    // of rows in shared memory, one of the below

  static constexpr int64_t kPlain = 1, kSwizzled = 2, kPadded = 3;
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
    HONE_RETURN_IF_ERROR(MakePlain());
    HONE_RETURN_IF_ERROR(Pad());
    HONE_RETURN_IF_ERROR(TakeFromShared());
    HONE_ASSIGN_OR_RETURN(const BlockRef store, CacheWrite(schedule_, ref_, 0, Scope::kRegister));
    // A warp stores 8 rows of 8 columns at once: rows begin 8 banks further on.
    HONE_RETURN_IF_ERROR(StorageAlign(schedule_, store, 0, -2, kSharedBanks, kBanksBetweenRows));
    HONE_RETURN_IF_ERROR(LayOut(store));
    HONE_RETURN_IF_ERROR(SplitLoops());
    HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule_, store, lane_));
    HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule_, result_, tile_));
    HONE_RETURN_IF_ERROR(ShareOutElements(schedule_, result_, 1, extents_, ResultsAtOnce()));
    for (const BlockRef copy : copies_) {
      HONE_RETURN_IF_ERROR(SetScope(schedule_, copy, 0, Scope::kShared));
      HONE_RETURN_IF_ERROR(OrderRows(copy));
      HONE_RETURN_IF_ERROR(ComputeAt(schedule_, copy, step_));
      HONE_RETURN_IF_ERROR(ShareOutElements(schedule_, copy, 4, extents_, plan_.fetched));
    }
    HONE_RETURN_IF_ERROR(DecomposeReduction(schedule_, ref_, step_).status());
    HONE_RETURN_IF_ERROR(
        Annotate(schedule_, ref_, kFragmentLoads,
                 std::vector<std::string>{NameOrNone(shape_.left_load), NameOrNone(shape_.right_load)}));
    HONE_RETURN_IF_ERROR(Tensorize(schedule_, instruction_, shape_.intrinsic->name));
    return plan_.stages > 1 ? Pipeline() : absl::OkStatus();
  }

 private:
  // Neighbours of the result that a thread copies out of shared memory: those of 16 bytes, of tiles that are whole.
  int64_t ResultsAtOnce() const {
    if (pads_) return 1;
    const int64_t bytes = context_.block(static_cast<int>(context_.info.blocks.size()) - 1).output.type().bytes();
    return std::gcd(plan_.column_warps * plan_.columns * shape_.columns, std::max<int64_t>(kMatrixRowBytes / bytes, 1));
  }

  // Blocks go through tiles in groups of rows, column by column: those that run at once share operands in the second
  // cache both ways.
  absl::StatusOr<Loops> InGroups(const Loops& tiles, int64_t row_tiles) {
    int64_t group = kMostRowsOfGroup;
    while (row_tiles % group != 0) group /= 2;
    if (group == 1 || group == row_tiles) return tiles;
    HONE_ASSIGN_OR_RETURN(const Loops rows, Split(schedule_, tiles[tiles.size() - 2], {-1, group}));
    Loops ordered(tiles.begin(), tiles.end() - 2);
    ordered.insert(ordered.end(), {rows[0], tiles.back(), rows[1]});
    return ordered;
  }

  static std::string NameOrNone(const TileIntrinsic* load) { return load == nullptr ? "" : load->name; }

  // Such that the pieces of 16 bytes above one another, which a load of fragments takes at once, are in different
  // banks: rows an odd number of pieces apart, or each with its pieces in another order.
  absl::Status OrderRows(BlockRef copy) {
    if (plan_.order == WarpPlan::kSwizzled) return Annotate(schedule_, copy, kStorageSwizzle, std::vector<int64_t>{0});
    const int64_t piece = kMatrixRowBytes / info_.reads[shape_.left].buffer.type().bytes();
    return plan_.order == WarpPlan::kPadded ? StorageAlign(schedule_, copy, 0, -2, 2 * piece, piece) : absl::OkStatus();
  }

  // The block over batches, m, k and n, each operand and the result by way of a copy indexed by those. What makes an
  // operand and nothing else does so in the copy.
  absl::Status MakePlain() {
    IndexMap map;
    for (size_t i = 0; i < info_.iters.size(); ++i) map.inputs.emplace_back(absl::StrCat("i", i));
    const auto together = [&](const std::vector<size_t>& iters) {
      Expr number = map.inputs[iters[0]];
      for (size_t i = 1; i < iters.size(); ++i)
        number = number * IntConst(info_.extents[iters[i]]) + Expr(map.inputs[iters[i]]);
      return number;
    };
    for (const size_t i : shape_.batches) map.outputs.emplace_back(map.inputs[i]);
    map.outputs.push_back(together(shape_.of_rows));
    map.outputs.push_back(together(shape_.of_terms));
    map.outputs.emplace_back(map.inputs[shape_.of_columns]);
    HONE_RETURN_IF_ERROR(TransformBlockLayout(schedule_, ref_, std::move(map)));
    for (const size_t r : {shape_.left, shape_.right}) {
      HONE_ASSIGN_OR_RETURN(const int at, ReadIndex(info_.reads[r].buffer));
      HONE_ASSIGN_OR_RETURN(const BlockRef copy, Reindex(schedule_, ref_, at, BufferKind::kRead));
      copies_.push_back(copy);
      const int own = OwnProducer(context_, block_, r);
      if (own < 0) continue;
      HONE_ASSIGN_OR_RETURN(const BlockRef made, GetBlock(schedule_, context_.block(own).name));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule_, made));
    }
    HONE_ASSIGN_OR_RETURN(result_, Reindex(schedule_, ref_, 0, BufferKind::kWrite));
    return absl::OkStatus();
  }

  absl::StatusOr<int> ReadIndex(const Buffer& buffer) {
    HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, schedule_.FindBlock(ref_));
    const std::vector<BufferRegion>& reads = realize->block.reads;
    const auto at = std::ranges::find(reads, buffer, &BufferRegion::buffer);
    if (at == reads.end()) return absl::InternalError("an operand of a product is not read by it");
    return static_cast<int>(at - reads.begin());
  }

  // To whole tiles. The padding of an operand takes the place of its copy.
  absl::Status Pad() {
    const int64_t rows = plan_.row_warps * plan_.rows * shape_.rows;
    const int64_t columns = plan_.column_warps * plan_.columns * shape_.columns, terms = plan_.terms * shape_.terms;
    const bool of_m = shape_.m % rows != 0, of_n = shape_.n % columns != 0, of_k = shape_.k % terms != 0;
    pads_ = of_m || of_n || of_k;
    if (!pads_) return absl::OkStatus();
    std::vector<int64_t> padding(shape_.batches.size(), 1);
    padding.insert(padding.end(), {rows, terms, columns});
    HONE_RETURN_IF_ERROR(PadEinsum(schedule_, ref_, padding));
    for (size_t o = 0; o < copies_.size(); ++o) {
      if (!of_k && !(o == 0 ? of_m : of_n)) continue;
      HONE_ASSIGN_OR_RETURN(const std::vector<BlockRef> readers, GetConsumers(schedule_, copies_[o]));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule_, copies_[o]));
      copies_[o] = readers.at(0);
    }
    if (!of_m && !of_n) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const std::vector<BlockRef> slices, GetConsumers(schedule_, ref_));
    return ComputeInline(schedule_, slices.at(0));
  }

  // The copy of the result takes it out of shared memory, and does what the epilogue does on the way.
  absl::Status TakeFromShared() {
    HONE_RETURN_IF_ERROR(SetScope(schedule_, ref_, 0, Scope::kShared));
    const int epilogue = context_.fusion.Epilogue(block_);
    if (epilogue < 0) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const BlockRef taker, GetBlock(schedule_, context_.block(epilogue).name));
    return ReverseComputeInline(schedule_, taker);
  }

  // The instruction's registers: of a result m, n in lane m % 8 * 4 + n % 8 / 2, register m / 8 % 2 * 2 + n % 2.
  absl::Status LayOut(BlockRef store) {
    HONE_RETURN_IF_ERROR(TransformLayout(schedule_, ref_, 0, BufferKind::kWrite, Layout(false)));
    HONE_RETURN_IF_ERROR(TransformBlockLayout(schedule_, store, Layout(false)));
    return TransformBlockLayout(schedule_, ref_, Layout(true));
  }

  // Batches, tiles of an instruction, lanes (two), terms outside, registers (two), terms of an instruction.
  IndexMap Layout(bool with_terms) const {
    IndexMap map;
    for (size_t i = 0; i < shape_.batches.size(); ++i) {
      map.inputs.emplace_back(absl::StrCat("b", i));
      map.outputs.emplace_back(map.inputs.back());
    }
    const Var m("m"), n("n"), k("k");
    map.inputs.push_back(m);
    if (with_terms) map.inputs.push_back(k);
    map.inputs.push_back(n);
    const auto number = [](int64_t value) { return IntConst(value); };
    map.outputs.push_back(FloorDiv(m, number(shape_.rows)));
    map.outputs.push_back(FloorDiv(n, number(shape_.columns)));
    map.outputs.push_back(FloorMod(m, number(8)));
    map.outputs.push_back(FloorDiv(FloorMod(n, number(8)), number(2)));
    if (with_terms) map.outputs.push_back(FloorDiv(k, number(shape_.terms)));
    map.outputs.push_back(FloorDiv(FloorMod(m, number(16)), number(8)));
    map.outputs.push_back(FloorMod(n, number(2)));
    if (with_terms) map.outputs.push_back(FloorMod(k, number(shape_.terms)));
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
    const int64_t of_tile = plan_.row_warps * plan_.rows * shape_.rows;
    HONE_ASSIGN_OR_RETURN(tiles, InGroups(tiles, (shape_.m + of_tile - 1) / of_tile));
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
  absl::Status Pipeline() {
    std::vector<int64_t> stages(copies_.size(), 0);
    stages.push_back(plan_.stages - 1);
    HONE_RETURN_IF_ERROR(Annotate(schedule_, step_, kPipelineStage, stages));
    if (pads_ || OwnProducer(context_, block_, 0) >= 0 || OwnProducer(context_, block_, 1) >= 0)
      return absl::OkStatus();
    return Annotate(schedule_, step_, kPipelineAsyncStages, std::vector<int64_t>{0});
  }

  Schedule& schedule_;
  const GpuContext& context_;
  const int block_;
  const BlockInfo& info_;
  const WarpShape& shape_;
  const WarpPlan plan_;
  const std::vector<int64_t> extents_;  // of threadIdx.y and x
  BlockRef ref_, result_;               // the product, and what copies its result to where it belongs
  std::vector<BlockRef> copies_;        // of the left and the right operand
  bool pads_ = false;
  LoopRef tile_, lane_, step_, instruction_;
};

class WarpProductNest : public GpuNest {
 public:
  WarpProductNest(GpuContextRef context, int block, const WarpShape& shape)
      : GpuNest("warp_product", std::move(context), block), shape_(shape) {
    const auto instructions = [](int64_t extent, int64_t size) { return PowerOfTwoFrom((extent + size - 1) / size); };
    const int64_t rows = instructions(shape.m, shape.rows), columns = instructions(shape.n, shape.columns);
    AddKnob("rows.warps", {1, 2, 4}, rows);
    AddKnob("columns.warps", {1, 2, 4}, columns);
    AddKnob("rows.each", {1, 2, 4}, rows);
    AddKnob("columns.each", {1, 2, 4, 8}, columns);
    AddKnob("step", {1, 2, 4}, instructions(shape.k, shape.terms));
    AddKnob("fetched", {1, 2, 4, 8}, 8);
    AddKnob("stages", {1, 2, 3, 4}, instructions(shape.k, shape.terms));
    AddKnob("order", {WarpPlan::kPlain, WarpPlan::kSwizzled, WarpPlan::kPadded}, WarpPlan::kPadded);
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override {
    const WarpPlan plan = PlanOf(values);
    const auto tiles = [](int64_t extent, int64_t size) { return (extent + size - 1) / size; };
    const int64_t rows = plan.row_warps * plan.rows * shape_.rows;
    const int64_t columns = plan.column_warps * plan.columns * shape_.columns;
    const int64_t terms = plan.terms * shape_.terms, steps = tiles(shape_.k, terms);
    const int64_t sums = plan.rows * plan.columns * shape_.rows * shape_.columns / target().lanes;
    const DType type = info().reads[shape_.left].buffer.type();
    LaunchWork work{.threads = plan.warps() * target().lanes};
    if (work.threads > target().threads || sums > kMostSums) return std::nullopt;
    if (steps < plan.stages) return std::nullopt;
    work.blocks = static_cast<double>(tiles(shape_.m, rows) * tiles(shape_.n, columns));
    for (const size_t i : shape_.batches) work.blocks *= static_cast<double>(info().extents[i]);
    work.registers =
        kOtherRegisters + sums +
        (plan.rows * shape_.rows + plan.columns * shape_.columns) * shape_.terms * type.bytes() / 4 / target().lanes;
    const double instructions = static_cast<double>(rows * columns * terms * steps) /
                                static_cast<double>(shape_.rows * shape_.columns * shape_.terms);
    work.operations = instructions * shape_.intrinsic->instructions[0].cycles * kOperationsOfCycle;
    const double of_step = static_cast<double>((rows + columns) * terms * type.bytes());
    // Every access costs as if it had 4 bytes more, and copies on their way are of 4, 8 or 16.
    const int64_t together = plan.fetched * type.bytes();
    const double copied = of_step * static_cast<double>(together + 4) / static_cast<double>(together);
    const bool ahead = together >= 4 && together <= 16 && CopiesAlone();
    // What is loaded in halves of 32 bits takes twice as long.
    const int64_t left_row = terms * type.bytes(), right_row = columns * type.bytes();
    const int64_t of_warp = plan.rows * shape_.rows * left_row * Turns(plan, left_row) +
                            plan.columns * shape_.columns * terms * type.bytes() * Turns(plan, right_row) *
                                (shape_.right_load == nullptr ? 2 : 1);
    const int64_t result_row = columns + (columns % kSharedBanks == 0 ? kBanksBetweenRows : 0);
    const double results = static_cast<double>(rows * columns * info().output.type().bytes());
    work.far_bytes = of_step * static_cast<double>(steps) + results;
    work.ahead = ahead ? plan.stages : 1;
    work.steps = static_cast<double>(steps);
    work.near_bytes =
        (2 * copied + static_cast<double>(of_warp * plan.warps())) * static_cast<double>(steps) + 2 * results;
    const int64_t kept = rows * (left_row + Padding(plan, left_row)) + terms * (right_row + Padding(plan, right_row));
    const int64_t operands = plan.stages * kept + 2 * kAlignment,
                  of_results = rows * result_row * info().output.type().bytes();
    // Beyond it results take the bytes of operands (lower/threads/assign_shared.h).
    work.shared_bytes = operands + of_results > target().shared_apart ? std::max(operands, of_results)
                                                                      : operands + of_results + kAlignment;
    if (work.shared_bytes > target().shared || ResidentBlocks(work, target()) == 0) return std::nullopt;
    work.memory_bytes = BytesOfBuffers(info());
    work.barriers = 2 * static_cast<double>(steps) + 1;
    return LaunchMicroseconds(work, target());
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    return Builder(build.schedule, *context_, block_, shape_, PlanOf(values)).Build();
  }

 private:
  // How often a bank is asked for pieces of 16 bytes of 8 rows above one another; 8 pieces are as long as all banks.
  static int64_t Turns(const WarpPlan& plan, int64_t row_bytes) {
    return plan.order == WarpPlan::kPlain ? std::gcd(std::max<int64_t>(row_bytes / kMatrixRowBytes, 1), 8) : 1;
  }
  static int64_t Padding(const WarpPlan& plan, int64_t row_bytes) {
    return plan.order == WarpPlan::kPadded && row_bytes / kMatrixRowBytes % 2 == 0 ? kMatrixRowBytes : 0;
  }
  // Whether operands are copied as they are.
  bool CopiesAlone() const { return OwnProducer(*context_, block_, 0) < 0 && OwnProducer(*context_, block_, 1) < 0; }
  static WarpPlan PlanOf(std::span<const int64_t> values) {
    return {values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7]};
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
