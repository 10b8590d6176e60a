// The generators of a workload: for every way to compute it, the sketches that rules derive, and the templates.
#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "compiler/schedule/primitives/inline.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/sample.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/generator.h"
#include "tuner/space/rewrites/rewrite.h"
#include "tuner/space/sketches/sketch.h"
#include "tuner/space/sketches/sketch_family.h"
#include "tuner/space/sketches/templates.h"

namespace hone {
namespace {

double HeaviestFlop(const WorkloadInfo& info, const SpaceOptions& options) {
  const BlockInfo& heaviest = info.blocks[static_cast<size_t>(info.heaviest)];
  return heaviest.flop() / SpeedOfProducts(heaviest, options.target, options.machine);
}

// Constants that exceed the last cache by themselves, as an algorithm makes them that stores them transformed, come
// from memory in every call, whatever else the model reads.
void MarkConstantsBeyondCaches(const Target& target, WorkloadInfo* info) {
  std::map<Buffer, int64_t> bytes;
  for (const BlockInfo& block : info->blocks) {
    for (const BlockInfo::Access& read : block.reads) {
      if (read.constant) bytes[read.buffer] = read.elements * read.buffer.type().bytes();
    }
  }
  int64_t all = 0;
  for (const auto& [buffer, own] : bytes) all += own;
  const int64_t first = target.l1d, last = std::max(target.l2, target.l3);
  if (all <= last) return;
  for (BlockInfo& block : info->blocks) {
    for (BlockInfo::Access& read : block.reads) read.cold = read.cold || (read.constant && bytes[read.buffer] > first);
  }
}

// Again and again until nothing is left to inline: what stands between two elementwise blocks may go first.
absl::Status InlineAll(Schedule schedule, const Target& target, SketchFamily* family) {
  for (;;) {
    HONE_ASSIGN_OR_RETURN(family->info, AnalyzeWorkload(schedule.func()));
    MarkConstantsBeyondCaches(target, &family->info);
    const BlockFusion fusion(family->info);
    if (fusion.inlined().empty()) return absl::OkStatus();
    for (const int block : fusion.inlined()) {
      const std::string& name = family->info.blocks[static_cast<size_t>(block)].name;
      HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, name));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule, ref));
      family->inlined.push_back(name);
    }
  }
}

// The workload as it is, then what rewrites make of it within the numeric level.
absl::StatusOr<std::vector<std::shared_ptr<const SketchFamily>>> Families(const PrimFunc& workload,
                                                                          const SpaceOptions& options) {
  HONE_ASSIGN_OR_RETURN(const WorkloadInfo info, AnalyzeWorkload(workload));
  std::vector<std::shared_ptr<const SketchFamily>> found;
  for (Rewrite& rewrite : Rewrites({&info, options.target, options.threads})) {
    Schedule schedule(workload);
    if (!rewrite.apply(schedule).ok()) continue;  // not for this workload
    if (NumericLevelOf(schedule.trace()) > options.numeric) continue;
    auto family = std::make_shared<SketchFamily>();
    family->workload = workload;
    family->rewrite = std::move(rewrite);
    HONE_ASSIGN_OR_RETURN(const WorkloadInfo blocks, AnalyzeWorkload(schedule.func()));
    family->flop = HeaviestFlop(blocks, options);
    HONE_RETURN_IF_ERROR(InlineAll(std::move(schedule), options.target, family.get()));
    found.push_back(std::move(family));
  }
  return found;
}

class SketchGenerator : public Generator {
 public:
  SketchGenerator(std::shared_ptr<const SketchFamily> family, Sketch sketch)
      : family_(std::move(family)), sketch_(std::move(sketch)) {
    std::vector<std::string> choices = sketch_.choices;
    if (!family_->rewrite.label.empty()) choices.insert(choices.begin(), family_->rewrite.label);
    name_ = absl::StrCat("sketch:", choices.empty() ? "nests" : absl::StrJoin(choices, ","));
    for (const auto& step : sketch_.steps) knobs_.insert(knobs_.end(), step->knobs().begin(), step->knobs().end());
    for (size_t b = 0; b < sketch_.blocks.size(); ++b) {
      if (sketch_.blocks[b].fate == SketchBlock::Fate::kTile) tiled_.push_back(b);
    }
  }
  // A template: the same sketch with fewer candidates.
  SketchGenerator(const SketchGenerator& sketch, const Template& restriction) : SketchGenerator(sketch) {
    name_ = absl::StrCat("template:", restriction.name, name_.substr(name_.find(':')));
    for (Knob& knob : knobs_) knob.candidates = Restricted(restriction, family_->info, knob);
  }

  bool Applies(const Template& restriction) const { return AppliesTo(restriction, family_->info); }
  const std::string& name() const override { return name_; }
  const std::vector<Knob>& knobs() const override { return knobs_; }

  std::optional<double> Draft(const Choice& choice) const override {
    thread_local std::vector<int64_t> values;  // drafts are asked for by the hundred thousand
    values.resize(knobs_.size());
    for (size_t k = 0; k < knobs_.size(); ++k) values[k] = knobs_[k].candidates[static_cast<size_t>(choice[k])];
    return DraftOfValues(values);
  }

  std::optional<double> DraftOfOther(const Generator& other, const Choice& choice) const override {
    const auto* there = dynamic_cast<const SketchGenerator*>(&other);
    if (there == nullptr || there->family_->rewrite.label != family_->rewrite.label ||
        there->sketch_.choices != sketch_.choices || there->sketch_.steps.size() != sketch_.steps.size())
      return std::nullopt;
    const std::vector<int64_t> values_there = there->ValuesOf(choice);
    SketchPlan plan(there->family_->info.blocks.size());
    if (plan.size() != family_->info.blocks.size() || !there->PlanAll(values_there, plan)) return std::nullopt;
    std::vector<int64_t> values;
    size_t step = 0;
    bool found = true;
    there->ForEachStep(values_there, [&](const SketchStep& theirs, std::span<const int64_t> own) {
      const auto like = found ? sketch_.steps[step++]->ValuesLike(theirs, own, plan) : std::nullopt;
      found = like.has_value();
      if (found) values.insert(values.end(), like->begin(), like->end());
    });
    return found ? DraftOfValues(values) : std::nullopt;
  }

  std::string ConstantLayout(const Choice& choice) const override {
    thread_local SketchPlan plan;
    plan.assign(family_->info.blocks.size(), NestPlan());
    if (!PlanAll(ValuesOf(choice), plan)) return "";
    std::string layout;
    for (const auto& step : sketch_.steps) absl::StrAppend(&layout, step->ConstantLayout(plan));
    return layout;
  }

  absl::StatusOr<Schedule> Build(const Choice& choice) const override {
    HONE_CHECK(choice.size() == knobs_.size()) << "a choice has one index for each knob";
    Schedule schedule(family_->workload);
    HONE_ASSIGN_OR_RETURN(const BlockRef root, GetBlock(schedule, "root"));
    HONE_RETURN_IF_ERROR(hone::Annotate(schedule, root, kGeneratorKey, name()));
    for (size_t i = 0; i < knobs_.size(); ++i)
      HONE_RETURN_IF_ERROR(SampleCategorical(schedule, knobs_[i].candidates, {}, choice[i]).status());
    const std::vector<int64_t> values = ValuesOf(choice);
    HONE_RETURN_IF_ERROR(family_->rewrite.apply(schedule));
    for (const std::string& name : family_->inlined) {
      HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, name));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule, ref));
    }
    const size_t blocks = family_->info.blocks.size();
    SketchPlan plan(blocks);
    if (!PlanAll(values, plan)) return absl::FailedPreconditionError(absl::StrCat(name_, ": the choice is not legal"));
    SketchBuild build{schedule, family_->info, std::vector<std::vector<LoopRef>>(blocks)};
    absl::Status status;
    ForEachStep(values, [&](const SketchStep& step, std::span<const int64_t> own) {
      if (status.ok()) status = hone::Annotate(step.Apply(own, plan, build), step.label());
    });
    HONE_RETURN_IF_ERROR(status);
    return schedule;
  }

 private:
  std::vector<int64_t> ValuesOf(const Choice& choice) const {
    std::vector<int64_t> values;
    for (size_t k = 0; k < knobs_.size(); ++k) values.push_back(knobs_[k].candidates[static_cast<size_t>(choice[k])]);
    return values;
  }
  std::optional<double> DraftOfValues(const std::vector<int64_t>& values) const {
    thread_local SketchPlan plan;
    plan.resize(family_->info.blocks.size());
    static const NestPlan kFresh;
    for (const size_t b : tiled_) plan[b] = kFresh;  // the others mean nothing
    if (!PlanAll(values, plan)) return std::nullopt;
    double total = 0;
    bool legal = true;
    ForEachStep(values, [&](const SketchStep& step, std::span<const int64_t> own) {
      const std::optional<double> us = legal ? step.Cost(own, plan) : std::nullopt;
      legal = us.has_value();
      total += us.value_or(0);
    });
    return legal ? std::optional(total) : std::nullopt;
  }
  template <class F>
  void ForEachStep(const std::vector<int64_t>& values, F f) const {
    size_t at = 0;
    for (const auto& step : sketch_.steps) {
      f(*step, std::span<const int64_t>(values).subspan(at, step->knobs().size()));
      at += step->knobs().size();
    }
  }
  bool PlanAll(const std::vector<int64_t>& values, SketchPlan& plan) const {
    bool legal = true;
    ForEachStep(values,
                [&](const SketchStep& step, std::span<const int64_t> own) { legal = legal && step.Plan(own, plan); });
    return legal;
  }

  std::shared_ptr<const SketchFamily> family_;
  Sketch sketch_;
  std::string name_;
  std::vector<Knob> knobs_;
  std::vector<size_t> tiled_;  // blocks
};

}  // namespace

std::unique_ptr<Generator> MakeSketchGenerator(std::shared_ptr<const SketchFamily> family, Sketch sketch) {
  return std::make_unique<SketchGenerator>(std::move(family), std::move(sketch));
}

absl::StatusOr<std::vector<std::unique_ptr<Generator>>> Generators(const PrimFunc& workload,
                                                                   const SpaceOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto families, Families(workload, options));
  std::vector<std::unique_ptr<Generator>> templates, sketches;
  for (const std::shared_ptr<const SketchFamily>& family : families) {
    const BlockFusion fusion(family->info);
    const SketchContext context{&family->info, &fusion, options.target, options.machine, options.threads};
    for (Sketch& derived : DeriveSketches(context)) {
      auto sketch = std::make_unique<SketchGenerator>(family, std::move(derived));
      for (const Template& restriction : Templates()) {
        if (sketch->Applies(restriction)) templates.push_back(std::make_unique<SketchGenerator>(*sketch, restriction));
      }
      sketches.push_back(std::move(sketch));
    }
  }
  templates.insert(templates.end(), std::make_move_iterator(sketches.begin()), std::make_move_iterator(sketches.end()));
  return templates;
}

absl::StatusOr<double> LeastFlop(const PrimFunc& workload, const SpaceOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto families, Families(workload, options));
  double least = std::numeric_limits<double>::infinity();
  for (const std::shared_ptr<const SketchFamily>& family : families) least = std::min(least, family->flop);
  return least;
}

}  // namespace hone
