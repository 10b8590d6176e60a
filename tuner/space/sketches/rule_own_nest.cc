// Own nest: what no other rule took is a nest by itself, vectorised and parallel: elementwise and moving blocks as in
// map_nest.cc, reductions along memory as in row_nest.cc.
#include "absl/strings/str_cat.h"
#include "tuner/space/nests/simple_nest.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

class OwnNestStep : public SketchStep {
 public:
  OwnNestStep(const SketchContext& context, int block)
      : SketchStep(absl::StrCat("nest(", context.block(block).name, ")")) {
    nest_ = context.block(block).reduces ? MakeRowNest(context.nest_context(), block)
                                         : MakeMapNest(context.nest_context(), block);
    for (Knob knob : nest_->knobs()) {
      knob.name = absl::StrCat(context.block(block).name, ".", knob.name);
      knobs_.push_back(std::move(knob));
    }
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override {
    return nest_->Draft(ChoiceOf(nest_->knobs(), values));
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    return nest_->Apply(build.schedule, ChoiceOf(nest_->knobs(), values));
  }

 private:
  std::unique_ptr<SimpleNest> nest_;
};

class OwnNestRule : public SketchRule {
 public:
  std::string name() const override { return "own_nest"; }

  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    if (sketch.at(block).fate != SketchBlock::Fate::kOpen) return {};
    Sketch placed = sketch;
    placed.at(block).fate = SketchBlock::Fate::kOwnNest;
    placed.steps.push_back(std::make_shared<OwnNestStep>(context, block));
    return {std::move(placed)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeOwnNestRule() { return std::make_unique<OwnNestRule>(); }

}  // namespace hone
