#include "tuner/space/nests/nest_builder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/inline.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/prefetch.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/rfactor.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/tensorize.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/nest_loops.h"
#include "tuner/space/nests/panels.h"

namespace hone {
namespace {

using Loops = std::vector<LoopRef>;
using OptionalLoops = std::vector<std::optional<LoopRef>>;

// Of a stream that is asked for before its time: enough for the time that it takes to come, few enough to stay in the
// first cache. Measured for F(2x2) of Winograd's at 7x7x512, from the last cache and from memory: 1 KiB 430 and 930 us,
// 2 KiB 415 and 890, 8 KiB 450 and 910, none 460 and 1,280.
constexpr int64_t kBytesAhead = 2048;

void Append(Loops& to, const Loops& more) { to.insert(to.end(), more.begin(), more.end()); }

class Builder {
 public:
  Builder(Schedule& schedule, const NestContext& context, int block, const NestShape& shape, const NestPlan& plan,
          Loops pieces)
      : schedule_(schedule),
        context_(context),
        info_(context.info->blocks[static_cast<size_t>(block)]),
        shape_(shape),
        plan_(plan),
        cut_(shape.cut == ReductionCut::kBlocks && plan.k_parts == 1 ? ReductionCut::kNone : shape.cut),
        n_(info_.last_iter()),
        pieces_(std::move(pieces)) {}

  absl::StatusOr<Loops> Build() {
    HONE_ASSIGN_OR_RETURN(block_, GetBlock(schedule_, info_.name));
    HONE_RETURN_IF_ERROR(PackBeforeNest());
    if (cut_ != ReductionCut::kNone) HONE_RETURN_IF_ERROR(CutReduction());
    HONE_RETURN_IF_ERROR(FindEpilogue());
    if (inside()) HONE_RETURN_IF_ERROR(MoveInside());
    HONE_RETURN_IF_ERROR(SplitLoops());
    switch (cut_) {
      case ReductionCut::kNone: HONE_RETURN_IF_ERROR(FinishWhole()); break;
      case ReductionCut::kBlocks: HONE_RETURN_IF_ERROR(FinishBlocks()); break;
      case ReductionCut::kLanes: HONE_RETURN_IF_ERROR(FinishLanesOfK()); break;
    }
    return pieces_;
  }

 private:
  int64_t extent(int iter) const { return info_.extents[static_cast<size_t>(iter)]; }
  bool inside() const { return shape_.pieces_of >= 0; }

  Panels PanelsOf(int r) const {
    const BlockInfo::Access& read = info_.reads[static_cast<size_t>(r)];
    Panels panels{DimensionAlong(info_, read, n_), WidthOfPanels(info_, static_cast<size_t>(r), plan_)};
    if (r == shape_.dot_operand) {
      panels.group_along = DimensionAlong(info_, read, info_.last_reduce_iter());
      panels.group = shape_.group();
    }
    return panels;
  }

  absl::Status PackBeforeNest() {
    for (const int r : shape_.panels) {
      const BlockInfo::Access& read = info_.reads[static_cast<size_t>(r)];
      if (!read.constant && plan_.packing[static_cast<size_t>(r)] != Packing::kBefore) continue;
      HONE_RETURN_IF_ERROR(PackBefore(schedule_, block_, read, PanelsOf(r), context_.threads));
    }
    return absl::OkStatus();
  }

  // `block`: the one that reads the operands, in its place in the tiles.
  absl::Status PackInBlocks(BlockRef block) {
    const bool in_piece = cut_ == ReductionCut::kNone;
    const LoopRef loop = in_piece ? pieces_.back() : rest_[0];
    for (const int r : shape_.panels) {
      const BlockInfo::Access& read = info_.reads[static_cast<size_t>(r)];
      if (read.constant || plan_.packing[static_cast<size_t>(r)] != Packing::kBlock) continue;
      HONE_RETURN_IF_ERROR(
          PackAt(schedule_, block, read, PanelsOf(r), loop, pieces_.size() + (in_piece ? 0 : 1), plan_.lanes));
    }
    return absl::OkStatus();
  }

  // The block of the partial results, in registers.
  absl::Status CutReduction() {
    HONE_ASSIGN_OR_RETURN(const OptionalLoops loops, LoopsOfIters(schedule_, block_));
    const LoopRef along = *loops[static_cast<size_t>(shape_.along)];
    const bool of_lanes = cut_ == ReductionCut::kLanes;
    HONE_ASSIGN_OR_RETURN(const Loops parts, Split(schedule_, along,
                                                   of_lanes ? std::vector<Value>{-1, plan_.k_parts}
                                                            : std::vector<Value>{plan_.k_parts, -1}));
    HONE_ASSIGN_OR_RETURN(partial_, Rfactor(schedule_, parts[of_lanes ? 1 : 0], of_lanes ? -1 : 0));
    return SetScope(schedule_, partial_, 0, Scope::kRegister);
  }

  // Whoever takes the results of a tile: the elementwise block after it, or a copy.
  absl::Status FindEpilogue() {
    if (shape_.epilogue >= 0) {
      const std::string& name = context_.info->blocks[static_cast<size_t>(shape_.epilogue)].name;
      HONE_ASSIGN_OR_RETURN(epilogue_, GetBlock(schedule_, name));
      if (shape_.in_tiles()) {
        HONE_ASSIGN_OR_RETURN(sums_, CacheWrite(schedule_, block_, 0, Scope::kRegister));
        return SetScope(schedule_, *sums_, 0, Scope::kThread);
      }
      if (cut_ == ReductionCut::kNone) return SetScope(schedule_, block_, 0, Scope::kRegister);
    } else if (cut_ == ReductionCut::kNone) {
      HONE_ASSIGN_OR_RETURN(epilogue_, CacheWrite(schedule_, block_, 0, Scope::kRegister));
      if (shape_.in_tiles()) sums_ = epilogue_;
    }
    return absl::OkStatus();
  }

  // The loops over pieces are another block's: what a piece of them needs is computed there.
  absl::Status MoveInside() {
    HONE_RETURN_IF_ERROR(ComputeAt(schedule_, epilogue_, pieces_.back()));
    return ComputeAt(schedule_, block_, pieces_.back());
  }

  // Pieces, then tiles, then the tile; what is left of the reduction goes between or inside.
  absl::Status SplitLoops() {
    HONE_ASSIGN_OR_RETURN(Loops all, GetLoops(schedule_, block_));
    if (inside()) all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(pieces_.size()));
    HONE_ASSIGN_OR_RETURN(const OptionalLoops by_iter, LoopsOfIters(schedule_, block_, all));
    // A loop of one iteration may be in no variable's value any more.
    std::copy_if(all.begin(), all.end(), std::back_inserter(pieces_),
                 [&](LoopRef loop) { return std::find(by_iter.begin(), by_iter.end(), loop) == by_iter.end(); });
    // With partial results the block has its spatial variables, and one over the parts.
    Loops batches, steps;
    std::optional<LoopRef> n_inner;
    int64_t most_steps = 0;
    size_t place = 0;
    for (int i = 0; i < static_cast<int>(info_.iters.size()); ++i) {
      if (!info_.spatial(i) && cut_ != ReductionCut::kNone) continue;
      const std::optional<LoopRef>& loop = by_iter[place++];
      if (!loop.has_value()) continue;
      if (!info_.spatial(i)) {
        rest_.push_back(*loop);
        continue;
      }
      if (extent(i) == 1) {
        pieces_.push_back(*loop);
        continue;
      }
      const size_t at = static_cast<size_t>(i);
      std::vector<Value> sizes{plan_.steps[at], plan_.inner[at]};
      if (!inside()) sizes.insert(sizes.begin(), plan_.pieces[at]);
      HONE_ASSIGN_OR_RETURN(Loops parts, Split(schedule_, *loop, sizes));
      if (!inside()) {
        pieces_.push_back(parts[0]);
        parts.erase(parts.begin());
      }
      if (i == n_) {
        n_steps_ = parts[0];
        n_inner = parts[1];
      } else {
        const bool own_panels = HasOwnPanels(info_, shape_, i);
        (own_panels ? batches : steps).push_back(parts[0]);
        inner_.push_back(parts[1]);
        if (!own_panels && plan_.steps[at] > most_steps) {
          most_steps = plan_.steps[at];
          rows_ = parts[0];
        }
      }
    }
    if (n_inner.has_value()) inner_.push_back(*n_inner);
    if (n_steps_.has_value()) steps.insert(plan_.panels_outside ? steps.begin() : steps.end(), *n_steps_);
    steps.insert(steps.begin(), batches.begin(), batches.end());
    if (cut_ != ReductionCut::kNone) rest_.push_back(*by_iter.back());

    Loops order = inside() ? Loops() : pieces_;
    if (cut_ == ReductionCut::kBlocks) Append(order, rest_);
    Append(order, steps);
    depth_ = order.size() + (inside() ? pieces_.size() : 0);
    tile_loop_ = order.empty() ? pieces_.back() : order.back();
    if (cut_ == ReductionCut::kNone) Append(order, rest_);
    Append(order, inner_);
    if (cut_ == ReductionCut::kLanes) Append(order, rest_);
    return Reorder(schedule_, order);
  }

  absl::Status FinishWhole() {
    if (sums_.has_value()) HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule_, *sums_, tile_loop_));
    if (shape_.epilogue >= 0 || !sums_.has_value())
      HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule_, epilogue_, tile_loop_));
    HONE_RETURN_IF_ERROR(PackInBlocks(block_));
    HONE_RETURN_IF_ERROR(ScheduleTile(block_, false));
    if (sums_.has_value()) {
      HONE_RETURN_IF_ERROR(StoreTiles());
      if (shape_.epilogue < 0) return absl::OkStatus();
    }
    return VectorizeInnermost(schedule_, epilogue_, depth_, LanesOfResults(), true);
  }

  // A vector register with a matrix of sums has parts of several rows: those of a row are put together again.
  int LanesOfResults() const {
    if (!shape_.in_matrices() || shape_.in_tiles()) return plan_.lanes;
    const int whole = shape_.dot->instruction->operands[0].lanes;
    return plan_.inner[static_cast<size_t>(n_)] % whole == 0 ? whole : plan_.lanes;
  }

  // The copy of the sums to memory, a tile at a time.
  absl::Status StoreTiles() {
    HONE_ASSIGN_OR_RETURN(Loops all, GetLoops(schedule_, *sums_));
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(depth_));
    if (all.size() < 2) return absl::InternalError("a copy of sums in tile registers has no rows and columns");
    const Loops inner(all.end() - 2, all.end());
    Loops order(all.begin(), all.end() - 2), tile;
    for (const auto& [loop, size] : {std::pair(inner[0], shape_.dot->rows), std::pair(inner[1], shape_.dot->lanes)}) {
      HONE_ASSIGN_OR_RETURN(const Loops parts, Split(schedule_, loop, {-1, size}));
      order.push_back(parts[0]);
      tile.push_back(parts[1]);
    }
    const Loops outer = order;
    Append(order, tile);
    HONE_RETURN_IF_ERROR(Reorder(schedule_, order));
    for (const LoopRef loop : outer) HONE_RETURN_IF_ERROR(Unroll(schedule_, loop));
    return Tensorize(schedule_, tile[0], StoreTile(*shape_.dot->intrinsic).name);
  }

  absl::Status FinishBlocks() {
    HONE_RETURN_IF_ERROR(ComputeAt(schedule_, partial_, tile_loop_));
    HONE_RETURN_IF_ERROR(PackInBlocks(partial_));
    HONE_RETURN_IF_ERROR(ScheduleTile(partial_, true));
    if (shape_.epilogue >= 0) {
      HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule_, epilogue_, pieces_.back()));
      HONE_RETURN_IF_ERROR(VectorizeInnermost(schedule_, epilogue_, pieces_.size(), plan_.lanes, false));
    }
    HONE_RETURN_IF_ERROR(VectorizeInnermost(schedule_, block_, depth_, plan_.lanes, true));
    return DecomposeReduction(schedule_, block_, rest_[0]).status();
  }

  absl::Status FinishLanesOfK() {
    HONE_RETURN_IF_ERROR(ComputeAt(schedule_, partial_, tile_loop_));
    HONE_RETURN_IF_ERROR(ScheduleTile(partial_, true));
    if (shape_.epilogue >= 0) HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule_, epilogue_, tile_loop_));
    for (const LoopRef loop : inner_) HONE_RETURN_IF_ERROR(Unroll(schedule_, loop));
    HONE_RETURN_IF_ERROR(DecomposeReduction(schedule_, block_, rest_[0]).status());
    return Unroll(schedule_, rest_[0]);
  }

  // The loops of a block inside the tiles, by what they run over.
  struct TileLoops {
    Loops tile;    // spatial variables: those without a place of their own, a tile register's rows, the vectors
    Loops reduce;  // reduce variables
    Loops single;  // of one iteration, which no variable's value mentions
    bool has_rows = false;  // of matrices
    bool has_vectors = false;
    bool has_part = false;  // the variable of the block's part, last in `tile`: that of a vector's lanes
  };
  absl::StatusOr<TileLoops> LoopsInsideTiles(BlockRef block, bool is_partial) {
    HONE_ASSIGN_OR_RETURN(Loops all, GetLoops(schedule_, block));
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(depth_));
    HONE_ASSIGN_OR_RETURN(const OptionalLoops by_iter, LoopsOfIters(schedule_, block, all));
    TileLoops loops;
    // Variables of a block of partial results: its part, the spatial ones, the reduce ones.
    size_t spatial = is_partial ? 1 : 0;
    std::optional<LoopRef> n, rows;
    for (int i = 0; i < static_cast<int>(info_.iters.size()); ++i) {
      if (!info_.spatial(i)) {
        spatial += is_partial ? 0 : 1;
        continue;
      }
      const std::optional<LoopRef>& loop = by_iter[spatial++];
      if (!loop.has_value()) continue;
      if (i == n_) {
        n = loop;
      } else if (i == shape_.tile_rows) {
        rows = loop;
      } else {
        loops.tile.push_back(*loop);
      }
    }
    loops.has_rows = rows.has_value();
    loops.has_vectors = n.has_value();
    loops.has_part = is_partial && cut_ == ReductionCut::kLanes && by_iter[0].has_value();
    if (rows.has_value()) loops.tile.push_back(*rows);
    if (n.has_value()) loops.tile.push_back(*n);
    if (loops.has_part) loops.tile.push_back(*by_iter[0]);
    for (const LoopRef loop : all) {
      if (std::find(loops.tile.begin(), loops.tile.end(), loop) != loops.tile.end()) continue;
      const bool mentioned = std::find(by_iter.begin(), by_iter.end(), loop) != by_iter.end();
      (mentioned ? loops.reduce : loops.single).push_back(loop);
    }
    return loops;
  }

  // Gives the loops of `block` inside the tiles the order reduce loops, rows, vectors, and unrolls and vectorises them.
  absl::Status ScheduleTile(BlockRef block, bool is_partial) {
    HONE_ASSIGN_OR_RETURN(TileLoops loops, LoopsInsideTiles(block, is_partial));
    Loops &tile = loops.tile, &reduce = loops.reduce;
    const Loops& single = loops.single;
    const bool of_lanes = is_partial && cut_ == ReductionCut::kLanes;
    if (loops.has_rows) return ScheduleMatrices(block, std::move(reduce), single, std::move(tile));
    std::optional<LoopRef> group;  // the products that one instruction adds up
    if (shape_.dot.has_value()) {
      HONE_ASSIGN_OR_RETURN(const Loops parts, Split(schedule_, reduce.back(), {-1, shape_.group()}));
      reduce.back() = parts[0];
      group = parts[1];
    }
    Loops order = reduce;
    Append(order, single);
    Append(order, tile);
    if (group.has_value()) order.push_back(*group);
    if (order.size() > 1) HONE_RETURN_IF_ERROR(Reorder(schedule_, order));
    if (plan_.window) {
      for (size_t i = 0; i + 1 < reduce.size(); ++i) HONE_RETURN_IF_ERROR(Unroll(schedule_, reduce[i]));
    }
    std::optional<LoopRef> lane;  // over the lanes of a vector
    if (loops.has_part) {
      lane = tile.back();
      tile.pop_back();
    } else if (!of_lanes && loops.has_vectors && plan_.lanes > 1) {
      HONE_ASSIGN_OR_RETURN(const Loops parts, Split(schedule_, tile.back(), {-1, plan_.lanes}));
      lane = parts[1];
      tile.back() = parts[0];
    }
    Append(tile, single);
    for (const LoopRef loop : tile) HONE_RETURN_IF_ERROR(Unroll(schedule_, loop));
    std::optional<BlockRef> init;
    if (!reduce.empty()) { HONE_ASSIGN_OR_RETURN(init, ScheduleReduction(block, reduce)); }
    HONE_RETURN_IF_ERROR(ComputeInTile());
    if (!lane.has_value()) return absl::OkStatus();
    if (!init.has_value()) return Vectorize(schedule_, *lane);
    HONE_ASSIGN_OR_RETURN(const Loops of_init, GetLoops(schedule_, *init));
    HONE_RETURN_IF_ERROR(Vectorize(schedule_, of_init.back()));
    return group.has_value() ? Tensorize(schedule_, *lane, shape_.dot->intrinsic->name) : AddVectors(*lane);
  }

  // Blocks of which the tile computes what it reads of them.
  absl::Status ComputeInTile() {
    for (size_t r = 0; r < info_.reads.size(); ++r) {
      if ((plan_.in_tile >> r & 1) == 0) continue;
      const BlockInfo& producer =
          context_.info->blocks[static_cast<size_t>(context_.info->Producer(info_.reads[r].buffer))];
      HONE_ASSIGN_OR_RETURN(const BlockRef inlined, GetBlock(schedule_, producer.name));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule_, inlined));
    }
    return absl::OkStatus();
  }

  // What is added to a vector of sums: products by a tile operation, other values (and products of which a condition
  // cuts vectors) as the lanes of a loop.
  absl::Status AddVectors(LoopRef lane) {
    for (const TileIntrinsic* row : VectorProducts(info_.output.type())) {
      if (Tensorize(schedule_, lane, row->name).ok()) return absl::OkStatus();
    }
    return Vectorize(schedule_, lane);
  }

  // Puts the init of the tile's sums in front of the reduction's loops, and does to those what the plan says of them.
  // Returns the init's block.
  absl::StatusOr<BlockRef> ScheduleReduction(BlockRef block, Loops reduce) {
    HONE_ASSIGN_OR_RETURN(const BlockRef init, DecomposeReduction(schedule_, block, reduce[0]));
    if (plan_.unroll > 1) {  // last, so that the init's place is told from whole variables
      HONE_ASSIGN_OR_RETURN(const Loops parts, Split(schedule_, reduce.back(), {-1, plan_.unroll}));
      HONE_RETURN_IF_ERROR(Unroll(schedule_, parts[1]));
      reduce.back() = parts[0];
    }
    HONE_RETURN_IF_ERROR(PrefetchPanels(block, reduce.back()));
    return init;
  }

  // The same with an instruction for matrices: `tile` ends with its rows and columns.
  absl::Status ScheduleMatrices(BlockRef block, Loops reduce, const Loops& single, Loops tile) {
    const DotProduct& dot = *shape_.dot;
    Loops operation;  // rows, columns, products
    LoopRef* const cut[] = {&tile[tile.size() - 2], &tile.back(), &reduce.back()};
    const int64_t sizes[] = {dot.rows, dot.lanes, dot.depth};
    for (int i = 0; i < 3; ++i) {
      HONE_ASSIGN_OR_RETURN(const Loops parts, Split(schedule_, *cut[i], {-1, sizes[i]}));
      *cut[i] = parts[0];
      operation.push_back(parts[1]);
    }
    Loops order = reduce;
    for (const Loops* more : {&single, static_cast<const Loops*>(&tile), static_cast<const Loops*>(&operation)})
      Append(order, *more);
    HONE_RETURN_IF_ERROR(Reorder(schedule_, order));
    Append(tile, single);
    for (const LoopRef loop : tile) HONE_RETURN_IF_ERROR(Unroll(schedule_, loop));
    if (plan_.window) {
      for (size_t i = 0; i + 1 < reduce.size(); ++i) HONE_RETURN_IF_ERROR(Unroll(schedule_, reduce[i]));
    }
    HONE_ASSIGN_OR_RETURN(const BlockRef init, ScheduleReduction(block, reduce));
    HONE_ASSIGN_OR_RETURN(const Loops of_init, GetLoops(schedule_, init));
    const LoopRef init_rows = of_init[of_init.size() - 2];
    if (shape_.in_tiles()) {
      HONE_RETURN_IF_ERROR(Tensorize(schedule_, init_rows, ZeroTile(*dot.intrinsic).name));
    } else {
      HONE_RETURN_IF_ERROR(Unroll(schedule_, init_rows));
      HONE_RETURN_IF_ERROR(Vectorize(schedule_, of_init.back()));
    }
    return Tensorize(schedule_, operation[0], dot.intrinsic->name);
  }

  // In every iteration of `loop`, the innermost over the reduction that is no straight code: a part of what it reads of
  // the next panel, or what it reads of this one some iterations later.
  absl::Status PrefetchPanels(BlockRef block, LoopRef loop) {
    if (!plan_.prefetch) return absl::OkStatus();
    const bool stream = OneSetOfRows(info_, shape_, plan_);
    if (!stream && (!n_steps_.has_value() || !rows_.has_value())) return absl::OkStatus();
    for (const int r : shape_.panels) {
      const BlockInfo::Access& read = info_.reads[static_cast<size_t>(r)];
      if (!read.cold) continue;
      const int64_t bytes =
          plan_.inner[static_cast<size_t>(n_)] * plan_.unroll * shape_.depth() * read.buffer.type().bytes();
      HONE_ASSIGN_OR_RETURN(const int now, ReadOf(schedule_, block, read));
      HONE_ASSIGN_OR_RETURN(const BlockRef fetch,
                            stream ? Prefetch(schedule_, block, now, loop, std::max<int64_t>(1, kBytesAhead / bytes))
                                   : PrefetchAcross(schedule_, block, now, loop, *n_steps_, *rows_));
      HONE_ASSIGN_OR_RETURN(const Loops loops, GetLoops(schedule_, fetch));
      auto own = std::find(loops.begin(), loops.end(), loop);
      while (own != loops.end() && ++own != loops.end()) HONE_RETURN_IF_ERROR(Unroll(schedule_, *own));
    }
    return absl::OkStatus();
  }

  Schedule& schedule_;
  const NestContext& context_;
  const BlockInfo& info_;
  const NestShape& shape_;
  const NestPlan& plan_;
  ReductionCut cut_;
  int n_;  // the variable of the output's last dimension
  BlockRef block_, partial_, epilogue_;
  std::optional<BlockRef> sums_;  // their copy from tile registers to memory
  Loops pieces_, inner_, rest_;   // over pieces; of the tile, n last; of the reduction, of the parts with a cut
  LoopRef tile_loop_;             // the innermost around a tile
  std::optional<LoopRef> n_steps_, rows_;  // over panels of n; the longest over rows in a piece
  size_t depth_ = 0;                       // loops around a tile
};

}  // namespace

absl::StatusOr<std::vector<LoopRef>> BuildNest(Schedule& schedule, const NestContext& context, int block,
                                               const NestShape& shape, const NestPlan& plan,
                                               std::vector<LoopRef> pieces) {
  return Builder(schedule, context, block, shape, plan, std::move(pieces)).Build();
}

}  // namespace hone
