// Gradient-boosted trees (XGBoost) on the stores of lowered programs.
//
// The trees give every store a correction, and a program's prediction is the sum over its stores, each weighted by its
// share of the program's time ("pack-sum", search.md 2c; the shares are of the arithmetic estimate). It predicts
// log(time / draft): the analytic model carries size and device, the trees what it gets wrong. Programs are compared
// within their task only: every task has an intercept of its own that training finds and prediction leaves out, and a
// program weighs as much as it is fast, best time of the task over its own, since what matters is the order of the fast
// ones. Several sets of trees on different parts of the data give an uncertainty.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuner/model/features.h"

namespace hone {

struct TrainingRow {
  ProgramFeatures features;
  float log_ratio = 0;  // log(time / draft)
  float log_us = 0;     // log of the time: what programs of a task are compared by
  uint64_t task = 0;
  uint64_t program = 0;  // a hash that tells the programs of a task apart
};

struct Prediction {
  double log_ratio = 0;  // up to the task's intercept: compare within a task
  double deviation = 0;  // between the sets of trees
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
  // Adds trees that correct the present ones on `rows`: a quick way to take up what was seen since. Anew where
  // untrained.
  absl::Status TrainFurther(std::span<const TrainingRow> rows, uint64_t seed);
  bool trained() const;
  // One for each program; zeros while untrained.
  absl::StatusOr<std::vector<Prediction>> Predict(std::span<const ProgramFeatures> programs) const;

  // The sets of trees, as XGBoost writes them. Load refuses what is no model and then stays as it was.
  absl::StatusOr<std::vector<std::string>> Save() const;
  absl::Status Load(std::span<const std::string> boosters);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone
