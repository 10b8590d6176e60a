// The list of rules, how they are asked, and what they share.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {

bool SketchStep::Plan(std::span<const int64_t>, SketchPlan&) const { return true; }
std::optional<double> SketchStep::Cost(std::span<const int64_t>, const SketchPlan&) const { return 0; }
std::string SketchStep::ConstantLayout(const SketchPlan&) const { return ""; }

std::optional<std::vector<int64_t>> SketchStep::ValuesLike(const SketchStep& other, std::span<const int64_t> values,
                                                           const SketchPlan&) const {
  if (other.label() != label_ || other.knobs().size() != knobs_.size()) return std::nullopt;
  for (size_t k = 0; k < knobs_.size(); ++k) {
    const bool same_knob = other.knobs()[k].name == knobs_[k].name;
    if (!same_knob || std::ranges::count(knobs_[k].candidates, values[k]) == 0) return std::nullopt;
  }
  return std::vector<int64_t>(values.begin(), values.end());
}

const std::vector<std::unique_ptr<SketchRule>>& SketchRules() {
  static const auto* rules = [] {
    auto* list = new std::vector<std::unique_ptr<SketchRule>>;
    list->push_back(MakeDotRule());
    list->push_back(MakePackRule());
    list->push_back(MakeCutRule());
    list->push_back(MakeFuseConsumerRule());
    list->push_back(MakeBlocksRule());
    list->push_back(MakeInsideRule());
    list->push_back(MakeTileRule());
    list->push_back(MakeFormsRule());
    list->push_back(MakeRowsRule());
    list->push_back(MakePiecesRule());
    list->push_back(MakeLocateRule());
    list->push_back(MakeOwnNestRule());
    list->push_back(MakeParallelRule());
    return list;
  }();
  return *rules;
}

std::vector<Sketch> DeriveSketches(const SketchContext& context) {
  Sketch start;
  start.blocks.resize(context.info->blocks.size());
  std::vector<Sketch> sketches{std::move(start)};
  for (const auto& rule : SketchRules()) {
    for (int block = static_cast<int>(context.info->blocks.size()) - 1; block >= 0; --block) {
      std::vector<Sketch> next;
      for (Sketch& sketch : sketches) {
        std::vector<Sketch> offers = rule->Offer(context, sketch, block);
        if (offers.empty()) offers.push_back(std::move(sketch));
        next.insert(next.end(), std::make_move_iterator(offers.begin()), std::make_move_iterator(offers.end()));
      }
      // Forks of the block come before those of the ones before it, so that what is cut off has most in common with
      // what stays.
      if (next.size() > kMostSketches) next.resize(kMostSketches);
      sketches = std::move(next);
    }
  }
  return sketches;
}

bool WillBeTiled(const SketchContext& context, const Sketch& sketch, int block) {
  return sketch.at(block).fate == SketchBlock::Fate::kOpen && IsTileable(context.block(block)) &&
         context.block(block).iters.size() <= kMostIters;
}

Choice ChoiceOf(const std::vector<Knob>& knobs, std::span<const int64_t> values) {
  Choice choice;
  for (size_t k = 0; k < values.size(); ++k) {
    const std::vector<int64_t>& candidates = knobs[k].candidates;
    choice.push_back(static_cast<int>(std::find(candidates.begin(), candidates.end(), values[k]) - candidates.begin()));
  }
  return choice;
}

}  // namespace hone
