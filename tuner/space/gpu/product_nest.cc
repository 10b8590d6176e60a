// product: tiles of the output.
//
//   blockIdx.x tile: threadIdx.z, y, x:
//     for steps of k:
//       shared A, B = what the tile reads in this step      all threads together; or each reads A and B itself
//       for k in the step: for rows, columns of the thread: S, in registers
//     epilogue of the thread's elements
//
// With stages, shared memory holds the tiles of so many steps, and those of later steps are copied while one is used.
//
// Where tiles divide the output, what a thread computes of a tile with operands in shared memory is not one piece: its
// columns are vectors of 16 bytes and its rows single ones, as far apart as the threads of the tile need, so that
// threads which load at once load from different banks.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/inline.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/transform_block_layout.h"
#include "compiler/schedule/primitives/transform_layout.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"
#include "tuner/space/nests/nest_loops.h"

namespace hone {
namespace {

using Loops = std::vector<LoopRef>;

void Append(Loops& to, const Loops& more) { to.insert(to.end(), more.begin(), more.end()); }

constexpr double kMostWaste = 1.15;  // what masked tiles may compute, of what is asked for
constexpr int64_t kMostSums = 128;   // of a thread: more do not stay in registers

// Sizes by iteration variable. Of spatial ones: threads along it, and elements of each thread; tiles cover the rest.
// Of reduce ones `inner` says how many terms are taken at once.
struct Tile {
  std::vector<int64_t> threads, inner;
  std::vector<int64_t> pieces;  // that the elements of a thread are in
  int64_t Threads() const { return Product(threads); }
  static int64_t Product(const std::vector<int64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
};

bool Wastes(int64_t extent, int64_t tile) {
  const int64_t tiles = (extent + tile - 1) / tile;
  return static_cast<double>(tiles * tile) > kMostWaste * static_cast<double>(extent);
}

// The largest power of 2, at most `most`, by which tiles of that times `unit` waste little.
int64_t FittingSize(int64_t extent, int64_t unit, int64_t most) {
  int64_t size = most;
  while (size > 1 && Wastes(extent, unit * size)) size /= 2;
  return size;
}

// Which iteration variables are rows of the output: the operand that is read along columns is read again for each.
struct Sides {
  int columns = -1;
  std::vector<int> rows;
  std::vector<int> operands;  // reads that do not vary along rows, or along columns
};
std::optional<Sides> SidesOf(const BlockInfo& block) {
  if (!block.reduces || !block.splits || !block.single_store) return std::nullopt;
  Sides sides{.columns = block.last_iter()};
  if (sides.columns < 0) return std::nullopt;
  const auto stride = [&](const BlockInfo::Access& read, int iter) { return read.strides[static_cast<size_t>(iter)]; };
  int along = -1, across = -1;  // reads that vary with columns, and that do not
  for (size_t r = 0; r < block.reads.size(); ++r) {
    if (!block.reads[r].affine) return std::nullopt;
    (stride(block.reads[r], sides.columns) != 0 ? along : across) = static_cast<int>(r);
  }
  if (along < 0 || across < 0) return std::nullopt;
  int64_t rows = 1, terms = 1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    const int64_t extent = block.extents[static_cast<size_t>(i)];
    if (!block.spatial(i)) terms *= extent;
    if (!block.spatial(i) || i == sides.columns || extent == 1) continue;
    if (stride(block.reads[static_cast<size_t>(along)], i) != 0) continue;  // a batch
    sides.rows.push_back(i);
    rows *= extent;
  }
  sides.operands = {across, along};
  const bool worth_it = rows >= 4 && block.extents[static_cast<size_t>(sides.columns)] >= 8 && terms >= 8;
  return worth_it ? std::optional(sides) : std::nullopt;
}

int64_t RoundedUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Bytes of what a tile reads of an operand in one step. Threads that copy it take `together` elements at a time, and
// the copy has room for what the last of them do beyond its end, in whole rows.
int64_t BytesOfStep(const BlockInfo& block, const BlockInfo::Access& read, const Tile& plan, int64_t together) {
  Analyzer known;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const int64_t size = plan.threads[i] * plan.inner[i];  // of a whole tile, which has its room where it is masked too
    known.Bind(block.iters[i].var, Range{IntConst(0, block.iters[i].var.type()), IntConst(size)});
  }
  int64_t elements = 1, row = 1;
  for (const Expr& index : read.indices) {
    const Bounds bounds = known.ConstBounds(index);
    if (!bounds.bounded()) return std::numeric_limits<int32_t>::max();
    row = bounds.max - bounds.min + 1;
    elements *= row;
  }
  return RoundedUp(RoundedUp(elements, together), row) * read.buffer.type().bytes();
}

int64_t Tiles(const BlockInfo& block, const Tile& plan) {
  int64_t tiles = 1;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const int64_t size = plan.threads[i] * plan.inner[i];
    if (block.spatial(static_cast<int>(i))) tiles *= (block.extents[i] + size - 1) / size;
  }
  return tiles;
}

// Terms of a step: whole innermost variables, as long as they are few.
void ChooseStep(const BlockInfo& block, int64_t terms, Tile& plan) {
  int64_t left = terms;
  for (size_t i = block.iters.size(); i-- > 0;) {
    if (block.spatial(static_cast<int>(i))) continue;
    plan.inner[i] = block.extents[i] <= 2 * left ? block.extents[i] : left;
    left = std::max<int64_t>(1, left / plan.inner[i]);
  }
}

// Sizes of a tile as knobs state them, along all rows together and along the columns.
struct TileSizes {
  int64_t column_threads = 1, column_inner = 1, row_threads = 1, row_inner = 1;
};

void ChooseTile(const BlockInfo& block, const Sides& sides, TileSizes sizes, Tile& plan) {
  const size_t n = static_cast<size_t>(sides.columns);
  plan.threads[n] = FittingSize(block.extents[n], 1, sizes.column_threads);
  plan.inner[n] = FittingSize(block.extents[n], plan.threads[n], sizes.column_inner);
  size_t axes = 1;
  for (size_t r = sides.rows.size(); r-- > 0 && axes < kThreadAxes.size();) {
    const size_t i = static_cast<size_t>(sides.rows[r]);
    plan.threads[i] = FittingSize(block.extents[i], 1, sizes.row_threads);
    sizes.row_threads /= plan.threads[i];
    axes += plan.threads[i] > 1 ? 1 : 0;
  }
  for (const int row : sides.rows) {
    const size_t i = static_cast<size_t>(row);
    plan.inner[i] = FittingSize(block.extents[i], plan.threads[i], sizes.row_inner);
    sizes.row_inner /= plan.inner[i];
  }
}

// How the block is computed, once all knobs have values.
struct ProductPlan : Tile {
  std::vector<int> shared;  // reads that are copied to shared memory, as indices into BlockInfo::reads
  int columns = -1;
  bool vectors = false;  // a thread's columns are read as vectors
  int64_t fetched = 1;   // neighbours that a thread copies to shared memory at once
  int64_t stages = 1;    // steps whose tiles are in shared memory at once
};

class Builder {
 public:
  Builder(Schedule& schedule, const GpuContext& context, int block, ProductPlan plan)
      : schedule_(schedule), context_(context), block_(block), info_(context.block(block)), plan_(std::move(plan)) {}

  absl::Status Build() {
    HONE_ASSIGN_OR_RETURN(ref_, GetBlock(schedule_, info_.name));
    HONE_RETURN_IF_ERROR(InlineProducers());
    HONE_ASSIGN_OR_RETURN(const std::vector<BlockRef> copies, CopiesToShared());
    HONE_ASSIGN_OR_RETURN(const BlockRef taker, Taker());
    HONE_RETURN_IF_ERROR(SplitLoops());
    HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule_, taker, threads_.back()));
    if (const int64_t width = Width(); InPieces() && width > 1) {
      HONE_RETURN_IF_ERROR(VectorizeInnermost(schedule_, taker, 1 + threads_.size(), static_cast<int>(width), false));
    }
    for (const BlockRef copy : copies) {
      HONE_RETURN_IF_ERROR(ComputeAt(schedule_, copy, steps_.back()));
      HONE_RETURN_IF_ERROR(
          ShareOutElements(schedule_, copy, 1 + threads_.size() + steps_.size(), extents_, plan_.fetched));
    }
    if (plan_.vectors) HONE_RETURN_IF_ERROR(Vectorize(schedule_, *columns_));
    HONE_RETURN_IF_ERROR(DecomposeReduction(schedule_, ref_, steps_[0]).status());
    return plan_.stages > 1 ? Pipeline() : absl::OkStatus();
  }

 private:
  // Those whose results are not kept in shared memory are computed where they are read.
  absl::Status InlineProducers() {
    if (!plan_.shared.empty()) return absl::OkStatus();
    for (size_t r = 0; r < info_.reads.size(); ++r) {
      const int producer = OwnProducer(context_, block_, r);
      if (producer < 0) continue;
      HONE_ASSIGN_OR_RETURN(const BlockRef made, GetBlock(schedule_, context_.block(producer).name));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule_, made));
    }
    return absl::OkStatus();
  }

  // The block that makes an operand where it reads nothing twice (padding), or a copy.
  absl::StatusOr<std::vector<BlockRef>> CopiesToShared() {
    std::vector<BlockRef> copies;
    for (const int r : plan_.shared) {
      const Buffer& buffer = info_.reads[static_cast<size_t>(r)].buffer;
      if (const int producer = OwnProducer(context_, block_, static_cast<size_t>(r)); producer >= 0) {
        HONE_ASSIGN_OR_RETURN(const BlockRef made, GetBlock(schedule_, context_.block(producer).name));
        HONE_RETURN_IF_ERROR(SetScope(schedule_, made, 0, Scope::kShared));
        copies.push_back(made);
        continue;
      }
      HONE_ASSIGN_OR_RETURN(const BlockRef copy, CopyToShared(schedule_, ref_, buffer));
      copies.push_back(copy);
    }
    return copies;
  }

  bool InPieces() const {
    return std::ranges::any_of(plan_.pieces, [](int64_t pieces) { return pieces > 1; });
  }
  // Of columns that a thread has beside one another.
  int64_t Width() const {
    const auto n = static_cast<size_t>(plan_.columns);
    return plan_.inner[n] / plan_.pieces[n];
  }

  // Who takes results out of registers: the epilogue or a copy. Registers hold what a thread has in the order of its
  // pieces, and who takes them goes by that order.
  absl::StatusOr<BlockRef> Taker() {
    if (!InPieces()) return TakeFromRegisters(schedule_, context_, block_, ref_);
    HONE_ASSIGN_OR_RETURN(const BlockRef copy, CacheWrite(schedule_, ref_, 0, Scope::kRegister));
    if (const int epilogue = context_.fusion.Epilogue(block_); epilogue >= 0) {
      HONE_ASSIGN_OR_RETURN(const BlockRef taker, GetBlock(schedule_, context_.block(epilogue).name));
      HONE_RETURN_IF_ERROR(ReverseComputeInline(schedule_, taker));
    }
    IndexMap map;
    for (size_t d = 0; d < info_.output_iters.size(); ++d) {
      const Var& index = map.inputs.emplace_back(absl::StrCat("i", d));
      const int iter = info_.output_iters[d];
      const auto i = static_cast<size_t>(iter);
      if (plan_.pieces[i] == 1) {
        map.outputs.emplace_back(index);
        continue;
      }
      const int64_t width = plan_.inner[i] / plan_.pieces[i], round = plan_.threads[i] * width;
      map.outputs.push_back(FloorDiv(index, IntConst(round)));
      map.outputs.push_back(FloorDiv(FloorMod(index, IntConst(round)), IntConst(width)));
      if (width > 1) map.outputs.push_back(FloorMod(index, IntConst(width)));
    }
    HONE_RETURN_IF_ERROR(TransformLayout(schedule_, ref_, 0, BufferKind::kWrite, map));
    HONE_RETURN_IF_ERROR(TransformBlockLayout(schedule_, copy, std::move(map)));
    return copy;
  }

  // Tiles, threads, steps, then what a thread does in a step.
  absl::Status SplitLoops() {
    HONE_ASSIGN_OR_RETURN(Loops tiles, GetLoops(schedule_, ref_));
    HONE_ASSIGN_OR_RETURN(const auto by_iter, LoopsOfIters(schedule_, ref_, tiles));
    Loops terms, inner;
    for (size_t i = 0; i < info_.iters.size(); ++i) {
      if (!by_iter[i].has_value()) continue;
      const bool spatial = info_.spatial(static_cast<int>(i));
      const int64_t threads = plan_.threads[i], size = plan_.inner[i];
      if (spatial && threads * size == 1) continue;
      const auto at = std::ranges::find(tiles, *by_iter[i]);
      if (!spatial) {
        tiles.erase(at);
        // Terms of a row lie beside one another in shared memory, and four come at once.
        const bool by_fours = InPieces() && static_cast<int>(i) == info_.last_reduce_iter() && size % 4 == 0;
        HONE_ASSIGN_OR_RETURN(const Loops parts, by_fours ? Split(schedule_, *by_iter[i], {-1, size / 4, 4})
                                                          : Split(schedule_, *by_iter[i], {-1, size}));
        steps_.push_back(parts[0]);
        terms.insert(terms.end(), parts.begin() + 1, parts.end());
        if (by_fours) HONE_RETURN_IF_ERROR(Unroll(schedule_, parts[2]));
        continue;
      }
      const int64_t pieces = plan_.pieces[i];
      HONE_ASSIGN_OR_RETURN(const Loops parts, Split(schedule_, *by_iter[i], {-1, pieces, threads, size / pieces}));
      *at = parts[0];
      inner.push_back(parts[1]);
      (threads > 1 ? threads_ : inner).push_back(parts[2]);
      if (threads > 1) extents_.push_back(threads);
      inner.push_back(parts[3]);
      if (static_cast<int>(i) == plan_.columns) columns_ = parts[3];
    }
    if (columns_.has_value()) {  // innermost
      std::erase(inner, *columns_);
      inner.push_back(*columns_);
    }
    if (threads_.empty() || steps_.empty()) return absl::FailedPreconditionError("product: it has no tiles");
    Loops order = tiles;
    for (const Loops* more : {&threads_, &steps_, &terms, &inner}) Append(order, *more);
    HONE_RETURN_IF_ERROR(Reorder(schedule_, order));
    HONE_ASSIGN_OR_RETURN(const LoopRef tile, FuseAll(schedule_, tiles));
    HONE_RETURN_IF_ERROR(Bind(schedule_, tile, "blockIdx.x"));
    for (size_t t = 0; t < threads_.size(); ++t)
      HONE_RETURN_IF_ERROR(Bind(schedule_, threads_[threads_.size() - 1 - t], std::string(kThreadAxes[t])));
    return absl::OkStatus();
  }

  // Copies run ahead of the product; asynchronously where they do nothing but copy.
  absl::Status Pipeline() {
    std::vector<int64_t> stages(plan_.shared.size(), 0);
    stages.push_back(plan_.stages - 1);
    HONE_RETURN_IF_ERROR(Annotate(schedule_, steps_.back(), kPipelineStage, stages));
    const bool copies_alone = std::ranges::all_of(
        plan_.shared, [&](int read) { return OwnProducer(context_, block_, static_cast<size_t>(read)) < 0; });
    if (!copies_alone) return absl::OkStatus();
    return Annotate(schedule_, steps_.back(), kPipelineAsyncStages, std::vector<int64_t>{0});
  }

  Schedule& schedule_;
  const GpuContext& context_;
  const int block_;
  const BlockInfo& info_;
  const ProductPlan plan_;
  BlockRef ref_;
  Loops threads_, steps_;           // outermost first
  std::vector<int64_t> extents_;    // of threads_
  std::optional<LoopRef> columns_;  // of a thread
};

class ProductNest : public GpuNest {
 public:
  ProductNest(GpuContextRef context, int block, ProductOperands operands)
      : GpuNest(operands == ProductOperands::kShared ? "product" : "direct_product", std::move(context), block),
        sides_(*SidesOf(info())),
        shared_(operands == ProductOperands::kShared) {
    const int64_t columns = PowerOfTwoFrom(info().extents[static_cast<size_t>(sides_.columns)]);
    int64_t rows = 1;
    for (const int row : sides_.rows) rows *= info().extents[static_cast<size_t>(row)];
    rows = PowerOfTwoFrom(rows);
    AddKnob("columns.threads", {1, 2, 4, 8, 16, 32, 64}, columns);
    AddKnob("columns.each", {1, 2, 4, 8, 16}, columns);
    AddKnob("rows.threads", {1, 2, 4, 8, 16, 32}, rows);
    AddKnob("rows.each", {1, 2, 4, 6, 8}, rows);
    AddKnob("step", {4, 8, 16, 32, 64}, std::max<int64_t>(4, PowerOfTwoFrom(TermsOf(info()))));
    AddKnob("vectors", {0, 1}, 1);
    if (!shared_) return;
    AddKnob("fetched", {1, 2, 4}, 4);
    AddKnob("stages", {1, 2, 3, 4}, 4);
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override {
    const ProductPlan plan = PlanOf(values);
    int64_t sums = 1;
    double tile = 1, all_terms = 1, steps = 1, innermost_steps = 1;
    for (size_t i = 0; i < info().iters.size(); ++i) {
      const double extent = static_cast<double>(info().extents[i]);
      if (info().spatial(static_cast<int>(i))) {
        sums *= plan.inner[i];
        tile *= static_cast<double>(plan.threads[i] * plan.inner[i]);
      } else {
        innermost_steps = std::ceil(extent / static_cast<double>(plan.inner[i]));
        steps *= innermost_steps;
        all_terms *= std::ceil(extent / static_cast<double>(plan.inner[i])) * static_cast<double>(plan.inner[i]);
      }
    }
    LaunchWork work{.blocks = static_cast<double>(Tiles(info(), plan)), .threads = plan.Threads()};
    if (work.threads < 2 || work.threads > target().threads || sums > kMostSums) return std::nullopt;
    if (plan.stages > 1 && innermost_steps < static_cast<double>(plan.stages)) return std::nullopt;
    const int64_t columns = plan.inner[static_cast<size_t>(sides_.columns)], rows = sums / columns;
    work.registers = kOtherRegisters + sums + rows + columns;
    work.ahead = plan.stages;
    work.steps = steps;
    work.operations = tile * all_terms;
    for (const int r : sides_.operands) {
      const BlockInfo::Access& read = info().reads[static_cast<size_t>(r)];
      const int64_t bytes = BytesOfStep(info(), read, plan, shared_ ? work.threads * plan.fetched : 1);
      work.far_bytes += steps * static_cast<double>(bytes);
      if (shared_) {
        work.shared_bytes += plan.stages * bytes + kSharedAlignment;
        work.near_bytes += steps * static_cast<double>(bytes);
        const auto copies = static_cast<double>(bytes / (read.buffer.type().bytes() * plan.fetched));
        work.operations += steps * copies * kSlotsOfFarLoad;
      }
      if (target().lanes > 1) continue;
      // Each thread reads it again for what the other operand varies with.
      double reused = 1;
      for (size_t i = 0; i < info().iters.size(); ++i) {
        if (info().spatial(static_cast<int>(i)) && read.strides[i] == 0) reused *= static_cast<double>(plan.inner[i]);
      }
      work.near_bytes += tile * all_terms * read.buffer.type().bytes() / reused;
    }
    if (target().lanes > 1) {
      const Loads loads = LoadsOf(plan, rows, columns);
      const double warps = std::ceil(static_cast<double>(work.threads) / static_cast<double>(target().lanes));
      work.near_bytes += all_terms * warps * loads.turns * kBytesOfTurn;
      work.operations += all_terms * static_cast<double>(work.threads) * loads.instructions;
    }
    if (work.shared_bytes > target().shared || ResidentBlocks(work, target()) == 0) return std::nullopt;
    work.memory_bytes = BytesOfBuffers(info());
    work.barriers = shared_ ? 2 * steps : 0;
    return LaunchMicroseconds(work, target());
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    return Builder(build.schedule, *context_, block_, PlanOf(values)).Build();
  }

 private:
  static constexpr int64_t kSharedAlignment = 128;  // every buffer starts at a multiple of it
  static constexpr int64_t kOtherRegisters = 24;    // of a thread, beside sums and what they are made of
  static constexpr double kBytesOfTurn = 128;       // of shared memory and the first cache, in a cycle

  // Of a warp, for one term: issue slots of its loads, and cycles in which shared memory or the first cache is busy.
  struct Loads {
    double instructions = 0, turns = 0;
  };
  // Columns of a thread are neighbours; its rows are a whole step or a whole row of memory apart and come one by one,
  // those of all threads of a row at once. Shared memory hands out as much as lies in different banks, and neighbours
  // come in loads of 16 bytes. The first cache hands out a line, and single loads ask for every line anew.
  Loads LoadsOf(const ProductPlan& plan, int64_t rows, int64_t columns) const {
    const int64_t bytes = info().output.type().bytes(), lanes = target().lanes;
    const int64_t neighbours = std::min(lanes, plan.threads[static_cast<size_t>(sides_.columns)]);
    const int64_t of_step = plan.inner[static_cast<size_t>(info().last_reduce_iter())];
    const bool rows_apart = std::ranges::all_of(sides_.rows, [&](int row) {
      return plan.pieces[static_cast<size_t>(row)] == plan.inner[static_cast<size_t>(row)];
    });
    const int64_t row_words = std::max<int64_t>((rows_apart ? 1 : rows) * of_step * bytes / 4, 1);
    const int64_t banks = kSharedBanks / std::gcd(row_words, kSharedBanks);
    const bool in_pieces = std::ranges::any_of(plan.pieces, [](int64_t pieces) { return pieces > 1; });
    const bool in_vectors = shared_ || plan.vectors;
    const int64_t together = in_vectors ? std::gcd(columns, std::max<int64_t>(kVectorBytes / bytes, 1)) : 1;
    // Of neighbours whose columns are one piece, vectors begin in as many banks as that leaves.
    const bool one_piece = plan.pieces[static_cast<size_t>(sides_.columns)] == 1;
    const int64_t spread = shared_ && one_piece ? std::gcd(columns / together, kLineBytes / kVectorBytes) : 1;
    const int64_t asked = neighbours * (shared_ ? together * spread : columns) * bytes;
    const auto turns = [](int64_t of, int64_t at_once) { return static_cast<double>((of + at_once - 1) / at_once); };
    Loads loads;
    const double row_loads = static_cast<double>(rows) / (in_pieces && of_step % 4 == 0 ? 4 : 1);
    loads.instructions = (row_loads + static_cast<double>(columns / together)) * (shared_ ? 1 : kSlotsOfFarLoad);
    loads.turns = static_cast<double>(columns / together) * turns(asked, static_cast<int64_t>(kBytesOfTurn)) +
                  row_loads * turns(lanes / neighbours, shared_ ? banks : 1);
    return loads;
  }
  static constexpr double kSlotsOfFarLoad = 2;  // with what works out its address

  std::vector<int64_t> PiecesOf(const ProductPlan& plan) const {
    std::vector<int64_t> pieces(info().iters.size(), 1);
    bool whole = std::ranges::find(info().output_iters, -1) == info().output_iters.end();
    for (size_t i = 0; i < pieces.size(); ++i) whole &= info().extents[i] % (plan.threads[i] * plan.inner[i]) == 0;
    if (!shared_ || target().lanes == 1 || !whole) return pieces;
    const int64_t together = std::max<int64_t>(kVectorBytes / info().output.type().bytes(), 1);
    for (const int iter : info().output_iters) {
      const auto i = static_cast<size_t>(iter);
      if (plan.threads[i] == 1) continue;
      pieces[i] = plan.inner[i] / (iter == sides_.columns ? std::gcd(plan.inner[i], together) : 1);
    }
    return pieces;
  }

  ProductPlan PlanOf(std::span<const int64_t> values) const {
    ProductPlan plan;
    plan.threads.assign(info().iters.size(), 1);
    plan.inner.assign(info().iters.size(), 1);
    ChooseStep(info(), values[4], plan);
    ChooseTile(info(), sides_, {values[0], values[1], values[2], values[3]}, plan);
    if (shared_) plan.shared = sides_.operands;
    plan.columns = sides_.columns;
    plan.pieces = PiecesOf(plan);
    plan.vectors = values[5] != 0 && plan.inner[static_cast<size_t>(sides_.columns)] > 1;
    plan.fetched = shared_ ? values[6] : 1;
    plan.stages = shared_ ? values[7] : 1;
    return plan;
  }

  const Sides sides_;
  const bool shared_;
};

}  // namespace

bool IsGpuProduct(const WorkloadInfo& info, int block) {
  return SidesOf(info.blocks[static_cast<size_t>(block)]).has_value();
}

GpuNestRef MakeProductNest(GpuContextRef context, int block, ProductOperands operands) {
  if (!IsGpuProduct(context->info, block)) return nullptr;
  return std::make_shared<ProductNest>(std::move(context), block, operands);
}

}  // namespace hone
