#include "tuner/model/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/tuner/model/made_up_rows.h"

namespace hone {
namespace {

using testing::FeaturesOf;
using testing::Rows;

// The share of pairs of one task that the model orders as the truth does.
double PairsInOrder(const std::vector<TrainingRow>& rows, const std::vector<Prediction>& predictions) {
  int right = 0, all = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      if (rows[i].task != rows[j].task || std::abs(rows[i].log_ratio - rows[j].log_ratio) < 0.1f) continue;
      ++all;
      right += (rows[i].log_ratio < rows[j].log_ratio) == (predictions[i].log_ratio < predictions[j].log_ratio) ? 1 : 0;
    }
  }
  return static_cast<double>(right) / all;
}

TEST(CostModel, LearnsAPlantedRanking) {
  CostModel model;
  ASSERT_TRUE(model.Train(Rows(500, 1), 5).ok());
  ASSERT_TRUE(model.trained());
  const std::vector<TrainingRow> unseen = Rows(100, 2);
  const auto predictions = model.Predict(FeaturesOf(unseen));
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  EXPECT_GT(PairsInOrder(unseen, *predictions), 0.85);
  for (const Prediction& p : *predictions) EXPECT_TRUE(std::isfinite(p.log_ratio) && p.deviation >= 0);
}

// Tasks whose times are all longer than their drafts by a factor of their own say nothing about what is fast in a task.
TEST(CostModel, ATaskMayBeOffByAFactorOfItsOwn) {
  std::vector<TrainingRow> rows = Rows(500, 1, /*tasks=*/10);
  for (TrainingRow& row : rows) {
    const float factor = static_cast<float>(row.task % 10) * 1.5f;
    row.log_ratio += factor;
    row.log_us += factor;
  }
  CostModel model;
  ASSERT_TRUE(model.Train(rows, 5).ok());
  const std::vector<TrainingRow> unseen = Rows(100, 2, /*tasks=*/1);
  EXPECT_GT(PairsInOrder(unseen, *model.Predict(FeaturesOf(unseen))), 0.85);
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
  ASSERT_TRUE(a.TrainFurther(Rows(20, 3), 7).ok() && b.TrainFurther(Rows(20, 3), 7).ok());
  const std::vector<ProgramFeatures> unseen = FeaturesOf(Rows(20, 2));
  const auto of_a = *a.Predict(unseen), of_b = *b.Predict(unseen), of_other = *other.Predict(unseen);
  bool differs = false;
  for (size_t i = 0; i < unseen.size(); ++i) {
    EXPECT_EQ(of_a[i].log_ratio, of_b[i].log_ratio);
    EXPECT_EQ(of_a[i].deviation, of_b[i].deviation);
    differs = differs || of_a[i].log_ratio != of_other[i].log_ratio;
  }
  EXPECT_TRUE(differs) << "the seed chooses the rows each booster sees";
}

// What the first rows show stays, and what the later ones show comes on top.
TEST(CostModel, TrainsFurtherOnRowsOfAnotherKind) {
  std::vector<TrainingRow> later = Rows(200, 3), unseen = Rows(100, 4);
  for (std::vector<TrainingRow>* rows : {&later, &unseen}) {
    for (TrainingRow& row : *rows) {
      // A feature that meant nothing before.
      const float extra = 6 * row.features.rows[testing::kUnused];
      row.log_ratio += extra;
      row.log_us += extra;
    }
  }
  CostModel model;
  ASSERT_TRUE(model.Train(Rows(500, 1), 5).ok());
  const double before = PairsInOrder(unseen, *model.Predict(FeaturesOf(unseen)));
  ASSERT_TRUE(model.TrainFurther(later, 5).ok());
  const double after = PairsInOrder(unseen, *model.Predict(FeaturesOf(unseen)));
  EXPECT_GT(after, before + 0.05);
}

TEST(CostModel, IsSurerWhereItHasSeenSomething) {
  std::vector<TrainingRow> rows = Rows(300, 1);
  CostModel model;
  ASSERT_TRUE(model.Train(rows, 5).ok());
  double seen = 0, far = 0;
  const auto of_seen = *model.Predict(FeaturesOf(rows));
  for (const Prediction& p : of_seen) seen += p.deviation;
  for (TrainingRow& row : rows) std::reverse(row.features.rows.begin(), row.features.rows.end());
  const auto of_far = *model.Predict(FeaturesOf(rows));
  for (const Prediction& p : of_far) far += p.deviation;
  EXPECT_LT(seen / 300, 0.15);
  EXPECT_GT(far, 0);
}

TEST(CostModel, IsTheSameAfterSavingAndLoading) {
  CostModel model, loaded;
  ASSERT_TRUE(model.Train(Rows(60, 1), 5).ok());
  const absl::StatusOr<std::vector<std::string>> bytes = model.Save();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ASSERT_TRUE(loaded.Load(*bytes).ok());
  EXPECT_TRUE(loaded.trained());
  const std::vector<ProgramFeatures> unseen = FeaturesOf(Rows(20, 2));
  const auto before = *model.Predict(unseen), after = *loaded.Predict(unseen);
  for (size_t i = 0; i < unseen.size(); ++i) EXPECT_EQ(before[i].log_ratio, after[i].log_ratio);
}

TEST(CostModel, RefusesBytesThatAreNoModelAndStaysAsItWas) {
  CostModel model;
  ASSERT_TRUE(model.Train(Rows(60, 1), 5).ok());
  const std::vector<std::string> saved = *model.Save();
  const std::vector<ProgramFeatures> unseen = FeaturesOf(Rows(5, 2));
  const auto before = *model.Predict(unseen);
  for (const size_t length : {size_t{0}, size_t{1}, size_t{7}, size_t{20}, saved[2].size() / 2, saved[2].size() - 1}) {
    EXPECT_FALSE(model.Load(std::vector<std::string>{saved[0], saved[1], saved[2].substr(0, length)}).ok())
        << length << " bytes";
  }
  EXPECT_FALSE(model.Load(std::vector<std::string>{"this is not", "a model", "at all"}).ok());
  EXPECT_FALSE(model.Load(std::vector<std::string>{saved[0]}).ok()) << "one of three";
  const auto after = *model.Predict(unseen);
  for (size_t i = 0; i < unseen.size(); ++i) EXPECT_EQ(before[i].log_ratio, after[i].log_ratio);
}

}  // namespace
}  // namespace hone
