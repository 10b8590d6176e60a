#include "tuner/search/ranking.h"

#include <cmath>

#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr size_t kRowsBetweenTrainings = 8;

}  // namespace

void Ranking::Learn(const std::vector<Experience::Timed>& timed) {
  // By a multiple, not by what came since: a search that starts over from the log has the same model.
  const size_t wanted = timed.size() - timed.size() % kRowsBetweenTrainings;
  if (wanted <= trained_on_) return;
  std::vector<TrainingRow> rows;
  for (const Experience::Timed& one : std::span(timed).first(wanted)) {
    TrainingRow& row = rows.emplace_back();
    row.features = one.program.features;
    row.log_ratio = static_cast<float>(std::log(one.us / one.program.draft_us));
  }
  if (model_.Train(rows, seed_ + rows.size()).ok()) trained_on_ = rows.size();
}

absl::StatusOr<std::vector<Estimate>> Ranking::Of(std::span<const Program* const> programs) const {
  std::vector<std::vector<float>> features;
  for (const Program* program : programs) features.push_back(program->features);
  HONE_ASSIGN_OR_RETURN(const std::vector<Prediction> predictions, model_.Predict(features));
  std::vector<Estimate> ranks;
  for (size_t i = 0; i < programs.size(); ++i)
    ranks.push_back({std::log(programs[i]->draft_us) + predictions[i].log_ratio, predictions[i].deviation});
  return ranks;
}

}  // namespace hone
