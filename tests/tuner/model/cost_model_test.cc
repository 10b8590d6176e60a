#include "tuner/model/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/support/random.h"

namespace hone {
namespace {

constexpr size_t kFeatures = 40;

// Three of the features matter, the rest is noise.
float Planted(const std::vector<float>& features) {
  return 0.8f * features[3] + (features[7] > 0.5f ? 1.0f : 0.0f) - 0.5f * features[3] * features[20];
}

std::vector<TrainingRow> Rows(size_t count, uint64_t seed) {
  std::vector<TrainingRow> rows(count);
  for (size_t r = 0; r < count; ++r) {
    Random random(seed, r);
    for (size_t f = 0; f < kFeatures; ++f) rows[r].features.push_back(static_cast<float>(random.Uniform()));
    rows[r].log_ratio = Planted(rows[r].features) + 0.02f * static_cast<float>(random.Uniform() - 0.5);
  }
  return rows;
}

std::vector<std::vector<float>> FeaturesOf(const std::vector<TrainingRow>& rows) {
  std::vector<std::vector<float>> features;
  for (const TrainingRow& row : rows) features.push_back(row.features);
  return features;
}

// The share of pairs that the model orders as the truth does.
double PairsInOrder(const std::vector<TrainingRow>& rows, const std::vector<Prediction>& predictions) {
  int right = 0, all = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      if (std::abs(rows[i].log_ratio - rows[j].log_ratio) < 0.1f) continue;
      ++all;
      right += (rows[i].log_ratio < rows[j].log_ratio) == (predictions[i].log_ratio < predictions[j].log_ratio) ? 1 : 0;
    }
  }
  return static_cast<double>(right) / all;
}

TEST(CostModel, LearnsAPlantedRanking) {
  CostModel model;
  ASSERT_TRUE(model.Train(Rows(300, 1), 5).ok());
  ASSERT_TRUE(model.trained());
  const std::vector<TrainingRow> unseen = Rows(100, 2);
  const auto predictions = model.Predict(FeaturesOf(unseen));
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  EXPECT_GT(PairsInOrder(unseen, *predictions), 0.9);
  for (const Prediction& p : *predictions) EXPECT_TRUE(std::isfinite(p.log_ratio) && p.deviation >= 0);
}

TEST(CostModel, IsUntrainedWithFewRowsAndPredictsNothing) {
  CostModel model;
  ASSERT_TRUE(model.Train(Rows(CostModel::kMinRows - 1, 1), 5).ok());
  EXPECT_FALSE(model.trained());
  const auto predictions = model.Predict(FeaturesOf(Rows(3, 1)));
  ASSERT_TRUE(predictions.ok());
  ASSERT_EQ(predictions->size(), 3u);
  for (const Prediction& p : *predictions) EXPECT_TRUE(p.log_ratio == 0 && p.deviation == 0);
  EXPECT_TRUE(model.Predict({})->empty());
}

TEST(CostModel, SameRowsAndSeedGiveTheSameModel) {
  const std::vector<TrainingRow> rows = Rows(80, 1);
  CostModel a, b, other;
  ASSERT_TRUE(a.Train(rows, 5).ok() && b.Train(rows, 5).ok() && other.Train(rows, 6).ok());
  const std::vector<std::vector<float>> unseen = FeaturesOf(Rows(20, 2));
  const auto of_a = *a.Predict(unseen), of_b = *b.Predict(unseen), of_other = *other.Predict(unseen);
  bool differs = false;
  for (size_t i = 0; i < unseen.size(); ++i) {
    EXPECT_EQ(of_a[i].log_ratio, of_b[i].log_ratio);
    EXPECT_EQ(of_a[i].deviation, of_b[i].deviation);
    differs = differs || of_a[i].log_ratio != of_other[i].log_ratio;
  }
  EXPECT_TRUE(differs) << "the seed chooses the rows each booster sees";
}

TEST(CostModel, IsSurerWhereItHasSeenSomething) {
  std::vector<TrainingRow> rows = Rows(200, 1);
  for (TrainingRow& row : rows) row.log_ratio = row.features[3];
  CostModel model;
  ASSERT_TRUE(model.Train(rows, 5).ok());
  const auto seen = *model.Predict(FeaturesOf(rows));
  double deviation = 0;
  for (const Prediction& p : seen) deviation += p.deviation / static_cast<double>(seen.size());
  EXPECT_LT(deviation, 0.1);
}

TEST(CostModel, IsTheSameAfterSavingAndLoading) {
  CostModel model, loaded;
  ASSERT_TRUE(model.Train(Rows(60, 1), 5).ok());
  const absl::StatusOr<std::string> bytes = model.Save();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ASSERT_TRUE(loaded.Load(*bytes).ok());
  EXPECT_TRUE(loaded.trained());
  const std::vector<std::vector<float>> unseen = FeaturesOf(Rows(20, 2));
  const auto before = *model.Predict(unseen), after = *loaded.Predict(unseen);
  for (size_t i = 0; i < unseen.size(); ++i) EXPECT_EQ(before[i].log_ratio, after[i].log_ratio);
}

TEST(CostModel, RefusesBytesThatAreNoModelAndStaysAsItWas) {
  CostModel model;
  ASSERT_TRUE(model.Train(Rows(60, 1), 5).ok());
  const std::string bytes = *model.Save();
  const std::vector<std::vector<float>> unseen = FeaturesOf(Rows(5, 2));
  const auto before = *model.Predict(unseen);
  for (const size_t length : {size_t{1}, size_t{7}, size_t{8}, size_t{20}, bytes.size() / 2, bytes.size() - 1}) {
    EXPECT_FALSE(model.Load(bytes.substr(0, length)).ok()) << length << " bytes";
  }
  EXPECT_FALSE(model.Load("this is not a model at all").ok());
  EXPECT_FALSE(model.Load(std::string(100, '\xff')).ok());
  const auto after = *model.Predict(unseen);
  for (size_t i = 0; i < unseen.size(); ++i) EXPECT_EQ(before[i].log_ratio, after[i].log_ratio);
}

}  // namespace
}  // namespace hone
