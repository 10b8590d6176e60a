// Parallel: the pieces of a tiled block are shared out to the threads, all loops over pieces as one. Comes after
// everything that moves blocks below those loops.
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/nest_loops.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

class ParallelPiecesStep : public SketchStep {
 public:
  ParallelPiecesStep(const SketchContext& context, int block)
      : SketchStep(absl::StrCat("parallel(", context.block(block).name, ")")), block_(static_cast<size_t>(block)) {}

  absl::Status Apply(std::span<const int64_t>, const SketchPlan& plan, SketchBuild& build) const override {
    if (plan[block_].Pieces() == 1) return absl::OkStatus();
    return FuseAndParallel(build.schedule, build.pieces[block_]);
  }

 private:
  size_t block_;
};

class ParallelRule : public SketchRule {
 public:
  std::string name() const override { return "parallel"; }

  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    const int pieces_of = sketch.at(block).pieces_of;
    // The pieces of another tiled block are shared out with that one.
    if (pieces_of >= 0 && sketch.at(pieces_of).fate == SketchBlock::Fate::kTile) return {};
    if (sketch.at(block).fate != SketchBlock::Fate::kTile || context.threads == 1) return {};
    Sketch shared = sketch;
    shared.steps.push_back(std::make_shared<ParallelPiecesStep>(context, block));
    return {std::move(shared)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeParallelRule() { return std::make_unique<ParallelRule>(); }

}  // namespace hone
