// Locate: a block that moves or pads what a tiled block alone reads may be computed piece by piece, in the cache of the
// thread that reads it, or beforehand as a nest of its own: a knob.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/compute_at.h"
#include "compiler/schedule/locate.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nest_loops.h"
#include "tuner/space/sketch.h"
#include "tuner/space/stage.h"

namespace hone {
namespace {

constexpr double kHalo = 0.1;  // of a piece is computed by its neighbours too

class LocateStep : public SketchStep {
 public:
  LocateStep(const SketchContext& context, int block, int reader)
      : SketchStep(absl::StrCat("locate(", context.block(block).name, ")")),
        context_(context),
        block_(block),
        reader_(reader) {
    nest_ = MakeMapStage({context.info, context.target, context.machine, context.threads}, block);
    knobs_.push_back({absl::StrCat(context.block(block).name, ".inside"), {0, 1}});
    for (Knob knob : nest_->knobs()) {
      knob.name = absl::StrCat(context.block(block).name, ".", knob.name);
      knobs_.push_back(std::move(knob));
    }
    for (const BlockInfo::Access& read : context.block(reader).reads) {
      if (read.buffer == context.block(block).output) read_ = &read;
    }
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan& plan) const override {
    if (values[0] == 0) return nest_->Draft(ChoiceOf(nest_->knobs(), values.subspan(1)));
    // The nest's own knobs mean nothing here: one choice stands for all.
    for (size_t k = 1; k < values.size(); ++k) {
      if (values[k] != knobs_[k].candidates[0]) return std::nullopt;
    }
    const NestPlan& tile = plan[static_cast<size_t>(reader_)];
    double again = 1, pieces = 1;
    for (size_t i = 0; i < read_->strides.size() && i < kMostIters; ++i) {
      (read_->strides[i] == 0 ? again : pieces) *= static_cast<double>(tile.pieces[i]);
    }
    const std::optional<double> alone = nest_->Draft(Choice(knobs_.size() - 1, 0));
    if (!alone.has_value()) return std::nullopt;
    const double us = *alone * again * (pieces > 1 ? 1 + kHalo : 1);
    const double threads = std::min<double>(context_.threads, static_cast<double>(tile.Pieces()));
    return us / threads;
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    if (values[0] == 0) return nest_->Apply(build.schedule, ChoiceOf(nest_->knobs(), values.subspan(1)));
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
    return VectorizeInnermost(build.schedule, block, pieces.size(), LanesFor(context_.target, info, last), false);
  }

 private:
  SketchContext context_;
  int block_, reader_;
  std::unique_ptr<StageTemplate> nest_;
  const BlockInfo::Access* read_ = nullptr;  // the reader's
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
    located.steps.push_back(std::make_shared<LocateStep>(context, block, readers[0]));
    return {std::move(located)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeLocateRule() { return std::make_unique<LocateRule>(); }

}  // namespace hone
