// Multi-level tiling of a reduction, with whatever the rules before have decided about its results and its operands.
//
//   parallel (pieces of every variable):                         S   rule_parallel.cc makes it one parallel loop
//     [for k0:]                                                  R   blocks of k (rule_partial.cc)
//       for tiles in the piece:                                  S   panels outside or inside: "order"
//         for k..:                                               R   serial; the last one unrolled in part
//           unroll rows of the tile: vectorized lanes            S   accumulators in registers
//         [C[tile] += partial results]
//         epilogue of the tile                                   with blocks of k: of the piece
//
// Tile sizes are what registers like, whatever the extents: tails are masked.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/compute_at.h"
#include "compiler/schedule/decompose_reduction.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/loop_kind.h"
#include "compiler/schedule/reorder.h"
#include "compiler/schedule/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/sketch.h"
#include "tuner/space/stage.h"
#include "tuner/space/tile_model.h"

namespace hone {
namespace {

using Partial = SketchBlock::Partial;
using Loops = std::vector<LoopRef>;

void Append(Loops& to, const Loops& more) { to.insert(to.end(), more.begin(), more.end()); }

class TileStep : public SketchStep {
 public:
  TileStep(const SketchContext& context, const Sketch& sketch, int block)
      : SketchStep(absl::StrCat("tile(", context.block(block).name, ")")),
        context_(context),
        block_(static_cast<size_t>(block)),
        info_(context.block(block)),
        partial_(sketch.at(block).partial),
        along_(sketch.at(block).along),
        model_(context, sketch, block),
        n_(info_.last_iter()),
        lanes_(partial_ == Partial::kLanesOfK ? 1 : LanesFor(context.target, info_, n_)) {
    FindVariables();
    MakeKnobs();
  }

  bool Plan(std::span<const int64_t> values, SketchPlan& plans) const override;
  std::optional<double> Cost(std::span<const int64_t>, const SketchPlan& plans) const override {
    return model_.Cost(plans[block_]);
  }
  absl::Status Apply(std::span<const int64_t> values, const SketchPlan& plans, SketchBuild& build) const override;

 private:
  struct Cut {  // a variable with its knobs; -1: it has none of that kind
    int iter = 0;
    int inner_knob = -1, pieces_knob = -1;
  };
  int64_t extent(int iter) const { return info_.extents[static_cast<size_t>(iter)]; }
  void FindVariables();
  void MakeKnobs();
  int AddKnob(const std::string& what, std::vector<int64_t> candidates);
  absl::Status ScheduleBlock(const TilePlan& plan, SketchBuild& build) const;
  // Gives the loops of `block` below `depth` the order reduce loops, tile, lanes, and unrolls and vectorises them.
  absl::Status ScheduleTile(const TilePlan& plan, Schedule& schedule, BlockRef block, size_t depth,
                            bool is_partial) const;

  SketchContext context_;
  size_t block_;
  const BlockInfo& info_;
  Partial partial_;
  int along_;
  TileModel model_;
  int n_;                  // the variable of the output's last dimension
  int lanes_;              // along it
  std::vector<Cut> cuts_;  // spatial variables with more than one iteration
  std::vector<int> reduce_;
  int unroll_knob_ = -1, window_knob_ = -1, order_knob_ = -1;
};

void TileStep::FindVariables() {
  for (int i = 0; i < static_cast<int>(info_.iters.size()); ++i) {
    if (!info_.spatial(i)) {
      reduce_.push_back(i);
    } else if (extent(i) > 1) {
      cuts_.push_back({i});
    }
  }
}

int TileStep::AddKnob(const std::string& what, std::vector<int64_t> candidates) {
  if (candidates.size() < 2 && (candidates.empty() || candidates[0] == 1)) return -1;
  knobs_.push_back({absl::StrCat(info_.name, ".", what), std::move(candidates)});
  return static_cast<int>(knobs_.size()) - 1;
}

void TileStep::MakeKnobs() {
  int rows = 0;  // variables besides n that the tile has, from the innermost
  int cut_in_pieces = 0;
  for (size_t c = cuts_.size(); c-- > 0;) {
    Cut& cut = cuts_[c];
    const std::string name = info_.iters[static_cast<size_t>(cut.iter)].var.name();
    std::vector<int64_t> inner;
    if (cut.iter == n_) {
      const int64_t vectors = (extent(n_) + lanes_ - 1) / lanes_;
      for (const int64_t v : {1, 2, 3, 4, 6, 8}) {
        if (v <= vectors) inner.push_back(v * lanes_);
      }
    } else if (rows < 2) {
      for (const int64_t size : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24}) {
        if (size <= extent(cut.iter) && (rows == 0 || size <= 4)) inner.push_back(size);
      }
      ++rows;
    }
    cut.inner_knob = AddKnob(absl::StrCat(name, ".inner"), std::move(inner));
  }
  for (Cut& cut : cuts_) {  // the outermost two, and n
    if (context_.threads == 1 || (cut.iter != n_ && ++cut_in_pieces > 2)) continue;
    std::vector<int64_t> pieces;
    for (const int64_t p : {1, 2, 3, 4, 6, 7, 8, 12, 14, 16, 28, 32, 64, 128}) {
      if (p <= extent(cut.iter) && (cut.iter != n_ || p * lanes_ < extent(n_) + lanes_)) pieces.push_back(p);
    }
    cut.pieces_knob =
        AddKnob(absl::StrCat(info_.iters[static_cast<size_t>(cut.iter)].var.name(), ".pieces"), std::move(pieces));
  }
  if (!reduce_.empty()) {
    std::vector<int64_t> unroll;
    for (const int64_t u : {1, 2, 3, 4, 5, 7, 8}) {
      if (u <= extent(reduce_.back())) unroll.push_back(u);
    }
    unroll_knob_ = AddKnob("unroll", std::move(unroll));
  }
  int64_t taps = 1;
  for (size_t i = 0; i + 1 < reduce_.size(); ++i) taps *= extent(reduce_[i]);
  if (partial_ == Partial::kNone && taps > 1 && taps <= 9 && extent(reduce_.back()) <= 9)
    window_knob_ = AddKnob("window", {0, 1});
  if (cuts_.size() > 1) order_knob_ = AddKnob("order", {0, 1});
}

bool TileStep::Plan(std::span<const int64_t> values, SketchPlan& plans) const {
  TilePlan& plan = plans[block_];
  const auto value = [&](int knob, int64_t otherwise) {
    return knob < 0 ? otherwise : values[static_cast<size_t>(knob)];
  };
  plan.lanes = lanes_;
  for (const Cut& cut : cuts_) {
    const size_t i = static_cast<size_t>(cut.iter);
    plan.inner[i] = value(cut.inner_knob, cut.iter == n_ ? lanes_ : 1);
    const int64_t tiles = (extent(cut.iter) + plan.inner[i] - 1) / plan.inner[i];
    plan.pieces[i] = value(cut.pieces_knob, 1);
    plan.steps[i] = (tiles + plan.pieces[i] - 1) / plan.pieces[i];
    // Every piece has something to do; else it is another choice.
    if ((tiles + plan.steps[i] - 1) / plan.steps[i] != plan.pieces[i]) return false;
  }
  plan.unroll = value(unroll_knob_, 1);
  if (plan.unroll > 1) {
    int64_t last = extent(reduce_.back());
    if (along_ == reduce_.back()) last = (last + plan.partial - 1) / plan.partial;
    if (last % plan.unroll != 0) return false;
  }
  plan.window = value(window_knob_, 0) == 1;
  plan.vector_outside = value(order_knob_, 0) == 1;
  return true;
}

absl::Status TileStep::ScheduleTile(const TilePlan& plan, Schedule& schedule, BlockRef block, size_t depth,
                                    bool is_partial) const {
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> all, GetLoops(schedule, block));
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(depth));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<LoopRef>> by_iter, LoopsOfIters(schedule, block, all));
  const bool of_lanes = partial_ == Partial::kLanesOfK;
  // Variables of a block of partial results: its part, the spatial ones, the reduce ones.
  Loops tile;
  size_t spatial = is_partial ? 1 : 0;
  std::optional<LoopRef> n;
  for (int i = 0; i < static_cast<int>(info_.iters.size()); ++i) {
    if (!info_.spatial(i)) {
      spatial += is_partial ? 0 : 1;
      continue;
    }
    const std::optional<LoopRef>& loop = by_iter[spatial++];
    if (!loop.has_value()) continue;
    if (i == n_) {
      n = loop;
    } else {
      tile.push_back(*loop);
    }
  }
  if (n.has_value()) tile.push_back(*n);
  if (is_partial && of_lanes && by_iter[0].has_value()) tile.push_back(*by_iter[0]);
  Loops reduce;  // what is not of the tile
  for (const LoopRef loop : all) {
    if (std::find(tile.begin(), tile.end(), loop) == tile.end()) reduce.push_back(loop);
  }
  Loops order = reduce;
  Append(order, tile);
  if (order.size() > 1) HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  if (plan.window) {
    for (size_t i = 0; i + 1 < reduce.size(); ++i) HONE_RETURN_IF_ERROR(Unroll(schedule, reduce[i]));
  }
  const bool vector = is_partial && of_lanes ? by_iter[0].has_value() : n.has_value() && lanes_ > 1;
  if (vector && is_partial && of_lanes) {
    HONE_RETURN_IF_ERROR(Vectorize(schedule, tile.back()));
    tile.pop_back();
  } else if (vector) {
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, tile.back(), {-1, lanes_}));
    HONE_RETURN_IF_ERROR(Vectorize(schedule, parts[1]));
    tile.back() = parts[0];
  }
  for (const LoopRef loop : tile) HONE_RETURN_IF_ERROR(Unroll(schedule, loop));
  if (reduce.empty()) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(DecomposeReduction(schedule, block, reduce[0]).status());
  if (plan.unroll == 1) return absl::OkStatus();
  // Last, so that the init's place is told from whole variables.
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, reduce.back(), {-1, plan.unroll}));
  return Unroll(schedule, parts[1]);
}

absl::Status TileStep::ScheduleBlock(const TilePlan& plan, SketchBuild& build) const {
  Schedule& schedule = build.schedule;
  HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, info_.name));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<LoopRef>> by_iter, LoopsOfIters(schedule, block));
  // With partial results the block has its spatial variables, and one over the parts.
  Loops pieces, steps, inner, rest;
  LoopRef n_steps, n_inner;
  size_t place = 0;
  for (int i = 0; i < static_cast<int>(info_.iters.size()); ++i) {
    if (!info_.spatial(i)) {
      if (partial_ != Partial::kNone) continue;
      if (by_iter[place].has_value()) rest.push_back(*by_iter[place]);
      ++place;
      continue;
    }
    const std::optional<LoopRef>& loop = by_iter[place++];
    if (!loop.has_value()) continue;
    if (extent(i) == 1) {
      pieces.push_back(*loop);
      continue;
    }
    const size_t at = static_cast<size_t>(i);
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts,
                          Split(schedule, *loop, {plan.pieces[at], plan.steps[at], plan.inner[at]}));
    pieces.push_back(parts[0]);
    (i == n_ ? n_steps : steps.emplace_back()) = parts[1];
    (i == n_ ? n_inner : inner.emplace_back()) = parts[2];
  }
  inner.push_back(n_inner);
  if (partial_ != Partial::kNone) rest.push_back(*by_iter.back());
  steps.insert(plan.vector_outside ? steps.begin() : steps.end(), n_steps);
  build.parallel[block_] = pieces;

  Loops order = pieces;
  if (partial_ == Partial::kBlocksOfK) Append(order, rest);
  Append(order, steps);
  const size_t depth = order.size();
  if (partial_ == Partial::kNone) Append(order, rest);
  Append(order, inner);
  if (partial_ == Partial::kLanesOfK) Append(order, rest);
  HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  const LoopRef tile_loop = order[depth - 1];
  const BlockRef epilogue = build.epilogues[block_];
  const bool has_epilogue = epilogue.step >= 0;
  if (partial_ == Partial::kNone) {
    HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule, epilogue, tile_loop));
    HONE_RETURN_IF_ERROR(ScheduleTile(plan, schedule, block, depth, false));
    return VectorizeInnermost(schedule, epilogue, depth, lanes_, true);
  }
  const BlockRef partial = build.partials[block_];
  HONE_RETURN_IF_ERROR(ComputeAt(schedule, partial, tile_loop));
  HONE_RETURN_IF_ERROR(ScheduleTile(plan, schedule, partial, depth, true));
  if (partial_ == Partial::kLanesOfK) {
    if (has_epilogue) HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule, epilogue, tile_loop));
    for (const LoopRef loop : inner) HONE_RETURN_IF_ERROR(Unroll(schedule, loop));
    HONE_RETURN_IF_ERROR(DecomposeReduction(schedule, block, rest[0]).status());
    return Unroll(schedule, rest[0]);
  }
  if (has_epilogue) {
    HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule, epilogue, pieces.back()));
    HONE_RETURN_IF_ERROR(VectorizeInnermost(schedule, epilogue, pieces.size(), lanes_, false));
  }
  HONE_RETURN_IF_ERROR(VectorizeInnermost(schedule, block, depth, lanes_, true));
  return DecomposeReduction(schedule, block, rest[0]).status();
}

absl::Status TileStep::Apply(std::span<const int64_t>, const SketchPlan& plans, SketchBuild& build) const {
  return ScheduleBlock(plans[block_], build);
}

class TileRule : public SketchRule {
 public:
  std::string name() const override { return "tile"; }

  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    if (!WillBeTiled(context, sketch, block)) return {};
    Sketch tiled = sketch;
    tiled.steps.push_back(std::make_shared<TileStep>(context, sketch, block));
    tiled.choices.push_back(tiled.steps.back()->label());
    tiled.at(block).fate = SketchBlock::Fate::kTile;
    return {std::move(tiled)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeTileRule() { return std::make_unique<TileRule>(); }

}  // namespace hone
