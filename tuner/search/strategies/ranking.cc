#include "tuner/search/strategies/ranking.h"

#include <cmath>
#include <utility>

#include "compiler/support/status_macros.h"

namespace hone {

Ranking::Ranking(uint64_t seed, TaskModel model) : seed_(seed), model_(std::move(model)) {
  if (model_.model == nullptr) model_.model = std::make_shared<DeviceModel>();
}

absl::Status Ranking::Learn(std::span<const Experience::Timed> timed) {
  for (; given_ < timed.size(); ++given_) {
    const Experience::Timed& one = timed[given_];
    TrainingRow row;
    row.features = one.program.features;
    row.log_ratio = static_cast<float>(std::log(one.us / one.program.draft_us));
    row.log_us = static_cast<float>(std::log(one.us));
    row.task = model_.task;
    row.program = one.program.hash;
    model_.model->Observe(std::move(row));
  }
  return model_.model->TrainIfDue(seed_);
}

absl::StatusOr<std::vector<Estimate>> Ranking::Of(std::span<const Program* const> programs) const {
  std::vector<ProgramFeatures> features;
  for (const Program* program : programs) features.push_back(program->features);
  HONE_ASSIGN_OR_RETURN(const std::vector<Prediction> predictions, model_.model->Predict(model_.task, features));
  std::vector<Estimate> ranks;
  for (size_t i = 0; i < programs.size(); ++i)
    ranks.push_back({std::log(programs[i]->draft_us) + predictions[i].log_ratio, predictions[i].deviation});
  return ranks;
}

}  // namespace hone
