#include "tuner/space/sketch_generator.h"

#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/schedule/annotate.h"
#include "compiler/schedule/inline.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/sample.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/sketch.h"

namespace hone {
namespace {

// What all sketches of a workload share.
struct Family {
  PrimFunc workload;
  std::vector<std::string> inlined;  // names of blocks, in the order in which to inline them
  WorkloadInfo info;                 // of what is left
};

// Again and again until nothing is left to inline: what stands between two elementwise blocks may go first.
absl::StatusOr<std::shared_ptr<const Family>> InlineAll(const PrimFunc& workload) {
  auto family = std::make_shared<Family>();
  family->workload = workload;
  Schedule schedule(workload);
  for (;;) {
    HONE_ASSIGN_OR_RETURN(family->info, AnalyzeWorkload(schedule.func()));
    const BlockFusion fusion(family->info);
    if (fusion.inlined().empty()) return family;
    for (const int block : fusion.inlined()) {
      const std::string& name = family->info.blocks[static_cast<size_t>(block)].name;
      HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, name));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule, ref));
      family->inlined.push_back(name);
    }
  }
}

class SketchGenerator : public Generator {
 public:
  SketchGenerator(std::shared_ptr<const Family> family, Sketch sketch)
      : family_(std::move(family)), sketch_(std::move(sketch)) {
    name_ = absl::StrCat("sketch:", sketch_.choices.empty() ? "nests" : absl::StrJoin(sketch_.choices, ","));
    for (const auto& step : sketch_.steps) knobs_.insert(knobs_.end(), step->knobs().begin(), step->knobs().end());
  }

  const std::string& name() const override { return name_; }
  const std::vector<Knob>& knobs() const override { return knobs_; }

  std::optional<double> Draft(const Choice& choice) const override {
    thread_local std::vector<int64_t> values;  // drafts are asked for by the hundred thousand
    thread_local SketchPlan plan;
    values.resize(knobs_.size());
    for (size_t k = 0; k < knobs_.size(); ++k) values[k] = knobs_[k].candidates[static_cast<size_t>(choice[k])];
    plan.assign(family_->info.blocks.size(), TilePlan());
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

  absl::StatusOr<Schedule> Build(const Choice& choice) const override {
    HONE_CHECK(choice.size() == knobs_.size()) << "a choice has one index for each knob";
    Schedule schedule(family_->workload);
    HONE_ASSIGN_OR_RETURN(const BlockRef root, GetBlock(schedule, "root"));
    HONE_RETURN_IF_ERROR(hone::Annotate(schedule, root, kGeneratorKey, name()));
    std::vector<int64_t> values;
    for (size_t i = 0; i < knobs_.size(); ++i) {
      HONE_RETURN_IF_ERROR(SampleCategorical(schedule, knobs_[i].candidates, {}, choice[i]).status());
      values.push_back(knobs_[i].candidates[static_cast<size_t>(choice[i])]);
    }
    for (const std::string& name : family_->inlined) {
      HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, name));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule, ref));
    }
    const size_t blocks = family_->info.blocks.size();
    SketchPlan plan(blocks);
    if (!PlanAll(values, plan)) return absl::FailedPreconditionError(absl::StrCat(name_, ": the choice is not legal"));
    SketchBuild build{schedule,
                      family_->info,
                      std::vector<BlockRef>(blocks),
                      std::vector<BlockRef>(blocks),
                      std::vector<std::vector<LoopRef>>(blocks),
                      std::vector<size_t>(blocks, 0)};
    absl::Status status;
    ForEachStep(values, [&](const SketchStep& step, std::span<const int64_t> own) {
      if (status.ok()) status = hone::Annotate(step.Apply(own, plan, build), step.label());
    });
    HONE_RETURN_IF_ERROR(status);
    return schedule;
  }

 private:
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

  std::shared_ptr<const Family> family_;
  Sketch sketch_;
  std::string name_;
  std::vector<Knob> knobs_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Generator>>> MakeSketchGenerators(const PrimFunc& workload,
                                                                             const SpaceOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const Family> family, InlineAll(workload));
  const BlockFusion fusion(family->info);
  const SketchContext context{&family->info, &fusion, options.target, options.machine, options.threads};
  std::vector<std::unique_ptr<Generator>> generators;
  for (Sketch& sketch : DeriveSketches(context)) {
    generators.push_back(std::make_unique<SketchGenerator>(family, std::move(sketch)));
  }
  return generators;
}

}  // namespace hone
