// Gradient-boosted trees (XGBoost) on the features of lowered programs.
//
// The label is log(time / draft): the analytic model carries size and device, the trees what it gets wrong. Several
// boosters over different halves of the data give an uncertainty.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

struct TrainingRow {
  std::vector<float> features;
  float log_ratio = 0;  // log(time / draft)
  float weight = 1;
};

struct Prediction {
  double log_ratio = 0;
  double deviation = 0;  // between the boosters
};

class CostModel {
 public:
  CostModel();
  CostModel(CostModel&&) noexcept;
  CostModel& operator=(CostModel&&) noexcept;
  ~CostModel();

  // Fits anew; the same rows and seed give the same model. Fewer than kMinRows leave it untrained.
  static constexpr size_t kMinRows = 12;
  absl::Status Train(std::span<const TrainingRow> rows, uint64_t seed);
  bool trained() const;
  // One for each row; zeros while untrained.
  absl::StatusOr<std::vector<Prediction>> Predict(std::span<const std::vector<float>> rows) const;

  // For the database; Load refuses bytes that are no model.
  absl::StatusOr<std::string> Save() const;
  absl::Status Load(const std::string& bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone
