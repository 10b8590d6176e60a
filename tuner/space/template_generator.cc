#include "tuner/space/template_generator.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/annotate.h"
#include "compiler/schedule/choose_algorithm.h"
#include "compiler/schedule/inline.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/sample.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/nest_plan.h"
#include "tuner/space/stage.h"

namespace hone {
namespace {

// The workload as it is, or with another algorithm for its heaviest block.
struct Variant {
  std::string block, algorithm;  // both empty: as it is
  WorkloadInfo info;             // of the program after that
};

absl::StatusOr<std::vector<Variant>> VariantsOf(const PrimFunc& workload, NumericLevel numeric) {
  std::vector<Variant> found(1);
  HONE_ASSIGN_OR_RETURN(found[0].info, AnalyzeWorkload(workload));
  const std::string heaviest = found[0].info.blocks[static_cast<size_t>(found[0].info.heaviest)].name;
  for (const std::string& algorithm : AlgorithmNames()) {
    Schedule schedule(workload);
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, heaviest));
    if (!ChooseAlgorithm(schedule, block, algorithm).ok()) continue;  // not for this block
    if (NumericLevelOf(schedule.trace()) > numeric) continue;
    Variant& variant = found.emplace_back(Variant{heaviest, algorithm, {}});
    HONE_ASSIGN_OR_RETURN(variant.info, AnalyzeWorkload(schedule.func()));
  }
  return found;
}

class TemplateGenerator : public Generator {
 public:
  TemplateGenerator(const PrimFunc& workload, const Variant& variant, const SpaceOptions& options)
      : workload_(workload),
        chosen_(variant.block),
        algorithm_(variant.algorithm),
        name_(algorithm_.empty() ? "template" : algorithm_),
        info_(variant.info),
        plan_(PlanNests(info_)) {
    const StageContext context{&info_, options.target, options.machine, options.threads};
    for (const Nest& nest : plan_.nests) {
      switch (nest.kind) {
        case Nest::Kind::kTile: stages_.push_back(MakeTileStage(context, nest.block, nest.epilogue)); break;
        case Nest::Kind::kRows: stages_.push_back(MakeRowStage(context, nest.block)); break;
        case Nest::Kind::kMap: stages_.push_back(MakeMapStage(context, nest.block)); break;
        case Nest::Kind::kForms:
          stages_.push_back(MakeFormsStage(context, nest.block, nest.producer, nest.forms));
          break;
      }
      for (Knob knob : stages_.back()->knobs()) {
        knob.name = absl::StrCat(info_.blocks[static_cast<size_t>(nest.block)].name, ".", knob.name);
        knobs_.push_back(std::move(knob));
      }
    }
  }

  const std::string& name() const override { return name_; }
  const std::vector<Knob>& knobs() const override { return knobs_; }

  std::optional<double> Draft(const Choice& choice) const override {
    double total = 0;
    size_t at = 0;
    for (const auto& stage : stages_) {
      const size_t count = stage->knobs().size();
      const std::optional<double> us = stage->Draft(std::span<const int>(choice).subspan(at, count));
      if (!us.has_value()) return std::nullopt;
      total += *us;
      at += count;
    }
    return total;
  }

  absl::StatusOr<Schedule> Build(const Choice& choice) const override {
    HONE_CHECK(choice.size() == knobs_.size()) << "a choice has one index for each knob";
    Schedule schedule(workload_);
    HONE_ASSIGN_OR_RETURN(const BlockRef root, GetBlock(schedule, "root"));
    HONE_RETURN_IF_ERROR(Annotate(schedule, root, kGeneratorKey, name()));
    for (size_t i = 0; i < knobs_.size(); ++i) {
      HONE_RETURN_IF_ERROR(SampleCategorical(schedule, knobs_[i].candidates, {}, choice[i]).status());
    }
    if (!algorithm_.empty()) {
      HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, chosen_));
      HONE_RETURN_IF_ERROR(ChooseAlgorithm(schedule, block, algorithm_).status());
    }
    for (const int block : plan_.inlined) {
      HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, info_.blocks[static_cast<size_t>(block)].name));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule, ref));
    }
    size_t at = 0;
    for (size_t i = 0; i < stages_.size(); ++i) {
      const size_t count = stages_[i]->knobs().size();
      HONE_RETURN_IF_ERROR(hone::Annotate(
          stages_[i]->Apply(schedule, std::span<const int>(choice).subspan(at, count)),
          absl::StrCat("template for block ", info_.blocks[static_cast<size_t>(plan_.nests[i].block)].name)));
      at += count;
    }
    return schedule;
  }

 private:
  PrimFunc workload_;
  std::string chosen_, algorithm_, name_;
  WorkloadInfo info_;
  NestPlan plan_;
  std::vector<std::unique_ptr<StageTemplate>> stages_;
  std::vector<Knob> knobs_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Generator>>> MakeTemplateGenerators(const PrimFunc& workload,
                                                                               const SpaceOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Variant> variants, VariantsOf(workload, options.numeric));
  std::vector<std::unique_ptr<Generator>> found;
  for (const Variant& variant : variants)
    found.push_back(std::make_unique<TemplateGenerator>(workload, variant, options));
  return found;
}

absl::StatusOr<double> LeastFlop(const PrimFunc& workload, const SpaceOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Variant> variants, VariantsOf(workload, options.numeric));
  double least = std::numeric_limits<double>::infinity();
  for (const Variant& variant : variants) {
    least = std::min(least, variant.info.blocks[static_cast<size_t>(variant.info.heaviest)].flop());
  }
  return least;
}

}  // namespace hone
