#include "tuner/space/template_generator.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/annotate.h"
#include "compiler/schedule/inline.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/sample.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nest_plan.h"
#include "tuner/space/stage.h"

namespace hone {
namespace {

class TemplateGenerator : public Generator {
 public:
  TemplateGenerator(const PrimFunc& workload, WorkloadInfo info, const Target& target, int threads)
      : workload_(workload), info_(std::move(info)), plan_(PlanNests(info_)) {
    const StageContext context{&info_, target, threads};
    for (const Nest& nest : plan_.nests) {
      switch (nest.kind) {
        case Nest::Kind::kTile: stages_.push_back(MakeTileStage(context, nest.block, nest.epilogue)); break;
        case Nest::Kind::kRows: stages_.push_back(MakeRowStage(context, nest.block)); break;
        case Nest::Kind::kMap: stages_.push_back(MakeMapStage(context, nest.block)); break;
      }
      for (Knob knob : stages_.back()->knobs()) {
        knob.name = absl::StrCat(info_.blocks[static_cast<size_t>(nest.block)].name, ".", knob.name);
        knobs_.push_back(std::move(knob));
      }
    }
  }

  const std::string& name() const override {
    static const std::string kName = "template";
    return kName;
  }
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
  WorkloadInfo info_;
  NestPlan plan_;
  std::vector<std::unique_ptr<StageTemplate>> stages_;
  std::vector<Knob> knobs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Generator>> MakeTemplateGenerator(const PrimFunc& workload, const Target& target, int threads) {
  HONE_ASSIGN_OR_RETURN(WorkloadInfo info, AnalyzeWorkload(workload));
  return std::make_unique<TemplateGenerator>(workload, std::move(info), target, threads);
}

}  // namespace hone
