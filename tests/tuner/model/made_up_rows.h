// Rows for tests of the model: programs of one to four stores with random features, and times that follow from a few of
// them by a rule that can be learnt.
#pragma once

#include <cmath>
#include <vector>

#include "compiler/support/random.h"
#include "tuner/model/cost_model.h"

namespace hone::testing {

inline constexpr size_t kUnused = 30;  // a feature that the rule does not look at

// A program's time follows the rule summed over its stores by their shares.
inline float Rule(std::span<const float> store) { return 1.6f * store[3] + (store[7] > 0.5f ? 1.0f : 0.0f); }

inline std::vector<TrainingRow> Rows(size_t count, uint64_t seed, uint64_t tasks = 4) {
  std::vector<TrainingRow> rows(count);
  for (size_t r = 0; r < count; ++r) {
    Random random(seed, r);
    TrainingRow& row = rows[r];
    const size_t stores = 1 + random.Below(4);
    float sum = 0;
    for (size_t s = 0; s < stores; ++s)
      sum += row.features.shares.emplace_back(0.1f + static_cast<float>(random.Uniform()));
    for (float& share : row.features.shares) share /= sum;
    for (size_t i = 0; i < stores * NumFeatures(); ++i)
      row.features.rows.push_back(static_cast<float>(static_cast<int>(random.Uniform() * 256)) / 256);
    for (size_t s = 0; s < stores; ++s) row.log_ratio += row.features.shares[s] * Rule(row.features.row(s));
    row.log_us = row.log_ratio;  // all drafts are one microsecond
    row.task = 1 + random.Below(tasks);
    row.program = seed * 1000003 + r;
  }
  return rows;
}

inline std::vector<ProgramFeatures> FeaturesOf(const std::vector<TrainingRow>& rows) {
  std::vector<ProgramFeatures> features;
  for (const TrainingRow& row : rows) features.push_back(row.features);
  return features;
}

}  // namespace hone::testing
