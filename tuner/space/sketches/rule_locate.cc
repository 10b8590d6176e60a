// Locate: a block that moves or pads what a tiled block alone reads may be computed beforehand as a nest of its own,
// piece by piece in the cache of the thread that reads it, or, where it pads and the tile reads single elements or
// vectors of it, in the tile, as masked loads of what it reads: a knob.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/access_region.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/lanes.h"
#include "tuner/space/nests/nest_loops.h"
#include "tuner/space/nests/nest_model.h"
#include "tuner/space/nests/simple_nest.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

constexpr double kWritten = 3;       // a line is fetched, written, and makes another go
constexpr double kVectorCycles = 3;  // a load, a store and what decides between them and nothing
// Of a masked load: what decides, and the mask from it; in taps that are straight code, which share some of it, and in
// a loop over them. Fitted to what was measured of depthwise convolutions and pools (tests/bench/search/networks).
constexpr double kMaskCycles = 0.7, kMaskCyclesInLoop = 1.2;
// The same where lanes are let through one by one, as taps move along the vector: of masks that are constants, as the
// row is in one tile, in other straight code, and in a loop.
constexpr double kConstantMaskCycles = 0.2, kLaneMaskCycles = 0.7, kLaneMaskCyclesInLoop = 1.9;

// Whether a variable of the reduction moves the read in the dimension in which `iter` does.
bool TapsAlong(const BlockInfo& block, const BlockInfo::Access& read, int iter) {
  return std::any_of(read.indices.begin(), read.indices.end(), [&](const Expr& index) {
    if (!UsesVar(index, block.iters[static_cast<size_t>(iter)].var)) return false;
    for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
      if (!block.spatial(i) && UsesVar(index, block.iters[static_cast<size_t>(i)].var)) return true;
    }
    return false;
  });
}

class LocateStep : public SketchStep {
 public:
  LocateStep(const SketchContext& context, const Sketch& sketch, int block, int reader)
      : SketchStep(absl::StrCat("locate(", context.block(block).name, ")")),
        context_(context),
        block_(block),
        reader_(reader),
        model_(context.nest_context(), reader, sketch.at(reader)) {
    nest_ = MakeMapNest(context.nest_context(), block);
    knobs_.push_back({absl::StrCat(context.block(block).name, ".inside"), {kBefore, kInPiece}});
    for (Knob knob : nest_->knobs()) {
      knob.name = absl::StrCat(context.block(block).name, ".", knob.name);
      knobs_.push_back(std::move(knob));
    }
    const BlockInfo& to = context.block(reader);
    for (size_t r = 0; r < to.reads.size(); ++r) {
      if (!(to.reads[r].buffer == context.block(block).output)) continue;
      read_ = r;
      region_.emplace(to, to.reads[r]);
      stride_ = std::abs(to.reads[r].strides[static_cast<size_t>(to.last_iter())]);
      const bool one_by_one = stride_ == 0 && !sketch.at(reader).dot.has_value();
      if ((one_by_one || stride_ == 1 || stride_ == 2) && context.block(block).pads)
        knobs_[0].candidates.push_back(kInTile);
      along_vector_ = TapsAlong(to, to.reads[r], to.last_iter());
      for (int i = 0; i < static_cast<int>(to.iters.size()); ++i) {
        if (to.spatial(i) && TapsAlong(to, to.reads[r], i)) across_borders_.push_back(static_cast<size_t>(i));
      }
    }
  }

  bool Plan(std::span<const int64_t> values, SketchPlan& plan) const override {
    NestPlan& tile = plan[static_cast<size_t>(reader_)];
    if (values[0] == kInPiece) tile.near |= 1U << read_;
    if (values[0] == kInTile) tile.in_tile |= 1U << read_;
    return true;
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan& plan) const override {
    if (values[0] == kBefore) return nest_->Draft(ChoiceOf(nest_->knobs(), values.subspan(1)));
    // The nest's own knobs mean nothing here: one choice stands for all.
    for (size_t k = 1; k < values.size(); ++k) {
      if (values[k] != knobs_[k].candidates[0]) return std::nullopt;
    }
    const BlockInfo& info = context_.block(block_);
    const NestPlan& tile = plan[static_cast<size_t>(reader_)];
    const double rounds = std::ceil(static_cast<double>(tile.Pieces()) / context_.threads);  // of the busiest thread
    if (values[0] == kInTile) {
      // A masked load is no operand of arithmetic.
      if (model_.VectorsHeld(tile, read_) > context_.target.vector_registers) return std::nullopt;
      const BlockInfo& to = context_.block(reader_);
      const double loads = static_cast<double>(to.instances()) /
                           (stride_ > 0 ? static_cast<double>(tile.lanes) / static_cast<double>(stride_)
                                        : static_cast<double>(tile.inner[static_cast<size_t>(to.last_iter())]));
      return loads / static_cast<double>(tile.Pieces()) * MaskCycles(tile) * rounds / context_.machine.cycles_per_us();
    }
    const double elements = PieceElements(tile), type_bytes = info.output.type().bytes();
    // Bytes that pass through the cache from one time the block's operands are there to the next: those operands, the
    // results of the reader, and the copy of a piece.
    double around = static_cast<double>(context_.block(reader_).output.NumElements().value_or(0) *
                                        context_.block(reader_).output.type().bytes());
    for (const BlockInfo::Access& read : info.reads) {
      around += static_cast<double>(read.elements * read.buffer.type().bytes());
    }
    around = around / context_.threads + elements * type_bytes;
    const double cycles = elements / context_.target.lanes(32) * (kVectorCycles + 0.5 * info.operations) +
                          elements * type_bytes *
                              (1 / BytesPerCycle(context_.target, context_.machine, around) +
                               kWritten / BytesPerCycle(context_.target, context_.machine, elements * type_bytes));
    return cycles * rounds / context_.machine.cycles_per_us();
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    if (values[0] == kBefore) return nest_->Apply(build.schedule, ChoiceOf(nest_->knobs(), values.subspan(1)));
    if (values[0] == kInTile) return absl::OkStatus();  // the reader's builder has done it
    const BlockInfo& info = context_.block(block_);
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(build.schedule, info.name));
    const std::vector<LoopRef>& pieces = build.pieces[static_cast<size_t>(reader_)];
    HONE_RETURN_IF_ERROR(ComputeAt(build.schedule, block, pieces.back()));
    const int last = static_cast<int>(info.iters.size()) - 1;
    if (info.last_iter() != last || info.extents.back() < 4) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> inner, GetLoops(build.schedule, block));
    inner.erase(inner.begin(), inner.begin() + static_cast<std::ptrdiff_t>(pieces.size()));
    HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<LoopRef>> loops, LoopsOfIters(build.schedule, block, inner));
    if (!loops.back().has_value()) return absl::OkStatus();  // the last dimension is one element
    const int lanes = LanesFor(context_.target, info, last);
    HONE_RETURN_IF_ERROR(VectorizeInnermost(build.schedule, block, pieces.size(), lanes, false));
    if (lanes == 1 || info.extents.back() > kMostVectorsOfRow * lanes) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(inner, GetLoops(build.schedule, block));
    return Unroll(build.schedule, inner[inner.size() - 2]);
  }

 private:
  static constexpr int64_t kMostVectorsOfRow = 8;  // a row of so many is straight code, and its masks are constants

  enum Place : int64_t { kBefore = 0, kInPiece = 1, kInTile = 2 };  // values of the first knob

  // Of a load, on average over all tiles.
  double MaskCycles(const NestPlan& tile) const {
    if (!along_vector_) return ShareAtBorders(tile) * (tile.window ? kMaskCycles : kMaskCyclesInLoop);
    const BlockInfo& to = context_.block(reader_);
    const size_t n = static_cast<size_t>(to.last_iter());
    const bool straight = tile.window && tile.unroll == to.extents[static_cast<size_t>(to.last_reduce_iter())];
    if (tile.inner[n] >= to.extents[n]) return straight ? kConstantMaskCycles : kLaneMaskCyclesInLoop;
    return ShareAtBorders(tile) * (straight ? kLaneMaskCycles : kLaneMaskCyclesInLoop);
  }

  // Of the tiles, those at a border of the image: the others have no masks (lower/loops/split_borders.cc). Of a
  // dimension that one tile takes whole, constants decide.
  double ShareAtBorders(const NestPlan& tile) const {
    const BlockInfo& to = context_.block(reader_);
    double inside = 1;
    for (const size_t i : across_borders_) {
      const int64_t tiles = (to.extents[i] + tile.inner[i] - 1) / tile.inner[i];
      if (tiles > 1) inside *= std::max(0.0, 1 - 2 / static_cast<double>(tiles));
    }
    return 1 - inside;
  }

  // Of what the reader reads in a piece.
  double PieceElements(const NestPlan& plan) const {
    const BlockInfo& to = context_.block(reader_);
    std::array<int64_t, kMostIters> sizes{};
    for (size_t i = 0; i < to.iters.size(); ++i) {
      sizes[i] = to.spatial(static_cast<int>(i)) ? plan.InPiece(i, to.extents[i]) : to.extents[i];
    }
    return region_->BoxElements(sizes);
  }

  SketchContext context_;
  int block_, reader_;
  NestModel model_;  // of the reader
  std::unique_ptr<SimpleNest> nest_;
  size_t read_ = 0;                     // of the reader
  int64_t stride_ = 0;                  // of that along its vectors
  bool along_vector_ = false;           // which taps move
  std::vector<size_t> across_borders_;  // variables that move the read in a dimension in which taps do
  std::optional<AccessRegion> region_;
};

class LocateRule : public SketchRule {
 public:
  std::string name() const override { return "locate"; }

  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    const BlockInfo& info = context.block(block);
    if (sketch.at(block).fate != SketchBlock::Fate::kOpen || info.reduces || info.writes_param || !info.single_store)
      return {};
    const std::vector<int> readers = context.info->Consumers(block);
    if (readers.size() != 1 || sketch.at(readers[0]).fate != SketchBlock::Fate::kTile) return {};
    // An operand that was packed is read by the copy.
    for (const int read : sketch.at(readers[0]).panels) {
      if (context.block(readers[0]).reads[static_cast<size_t>(read)].buffer == info.output) return {};
    }
    Sketch located = sketch;
    located.at(block).fate = SketchBlock::Fate::kTaken;
    located.steps.push_back(std::make_shared<LocateStep>(context, sketch, block, readers[0]));
    return {std::move(located)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeLocateRule() { return std::make_unique<LocateRule>(); }

}  // namespace hone
