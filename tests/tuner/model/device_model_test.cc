#include "tuner/model/device_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "hone/v1/model.pb.h"
#include "tests/tuner/model/made_up_rows.h"

namespace hone {
namespace {

using testing::FeaturesOf;
using testing::Rows;

void ObserveAll(DeviceModel& model, const std::vector<TrainingRow>& rows) {
  for (const TrainingRow& row : rows) model.Observe(row);
}

// The mean error of the order: how much slower the predicted best of ten is than the best.
double LogLoss(const DeviceModel& model, const std::vector<TrainingRow>& rows) {
  const std::vector<Prediction> predictions = *model.Predict(0, FeaturesOf(rows));
  double loss = 0;
  int groups = 0;
  for (size_t first = 0; first + 10 <= rows.size(); first += 10, ++groups) {
    size_t pick = first;
    float best = rows[first].log_ratio;
    for (size_t i = first; i < first + 10; ++i) {
      if (predictions[i].log_ratio < predictions[pick].log_ratio) pick = i;
      best = std::min(best, rows[i].log_ratio);
    }
    loss += static_cast<double>(rows[pick].log_ratio - best);
  }
  return loss / groups;
}

// Both predict the same of programs that neither has seen.
void ExpectAlike(const DeviceModel& a, const DeviceModel& b) {
  const std::vector<ProgramFeatures> unseen = FeaturesOf(Rows(20, 9));
  const std::vector<Prediction> of_a = *a.Predict(1, unseen), of_b = *b.Predict(1, unseen);
  for (size_t i = 0; i < unseen.size(); ++i) EXPECT_EQ(of_a[i].log_ratio, of_b[i].log_ratio);
}

TEST(DeviceModel, TrainsWhenEnoughWasObserved) {
  DeviceModel model;
  const std::vector<TrainingRow> rows = Rows(60, 1);
  for (size_t i = 0; i < CostModel::kMinRows - 1; ++i) model.Observe(rows[i]);
  ASSERT_TRUE(model.TrainIfDue(1).ok());
  EXPECT_FALSE(model.trained());
  ObserveAll(model, rows);
  EXPECT_EQ(model.rows(), 60u) << "what is known already is left out";
  ASSERT_TRUE(model.TrainIfDue(1).ok());
  EXPECT_TRUE(model.trained());
}

TEST(DeviceModel, LeavesOutWhatIsNoTime) {
  DeviceModel model;
  TrainingRow row = Rows(1, 1)[0];
  row.log_ratio = std::numeric_limits<float>::infinity();
  model.Observe(row);
  row.log_ratio = 1;
  row.features = {};
  model.Observe(row);
  EXPECT_EQ(model.rows(), 0u);
}

// What one task learnt ranks the candidates of another that nobody measured.
TEST(DeviceModel, ATaskProfitsFromTheOthers) {
  DeviceModel model, alone;
  ObserveAll(model, Rows(500, 1, /*tasks=*/5));
  ASSERT_TRUE(model.TrainIfDue(1).ok());
  const std::vector<TrainingRow> unseen = Rows(200, 2);
  EXPECT_LT(LogLoss(model, unseen), 0.25);
  EXPECT_GT(LogLoss(alone, unseen), 0.5) << "the first of ten, unranked";
}

// Predictions come in the scale of the task once it was measured.
TEST(DeviceModel, KnowsByHowMuchATaskIsOff) {
  std::vector<TrainingRow> rows = Rows(1200, 1, /*tasks=*/3);
  for (TrainingRow& row : rows) row.log_ratio += row.task == 2 ? 2.0f : 0.0f;
  DeviceModel model;
  ObserveAll(model, rows);
  ASSERT_TRUE(model.TrainIfDue(1).ok());
  const std::vector<TrainingRow> unseen = Rows(50, 2);
  const auto first = *model.Predict(1, FeaturesOf(unseen)), second = *model.Predict(2, FeaturesOf(unseen));
  double error = 0;
  for (size_t i = 0; i < unseen.size(); ++i) {
    EXPECT_NEAR(second[i].log_ratio - first[i].log_ratio, 2, 0.3);
    error += std::abs(first[i].log_ratio - static_cast<double>(unseen[i].log_ratio)) / 50;
  }
  EXPECT_LT(error, 0.25);
}

// The same trees tell two programs of a task apart by less, the fewer times of that task they have seen.
TEST(DeviceModel, TrustsTheTreesAsTimesOfTheTaskCome) {
  std::vector<TrainingRow> rows = Rows(300, 1, /*tasks=*/3);
  size_t of_second = 0;
  std::erase_if(rows, [&](const TrainingRow& row) { return row.task == 2 && ++of_second > 10; });
  DeviceModel model;
  ObserveAll(model, rows);
  ASSERT_TRUE(model.TrainIfDue(1).ok());
  const std::vector<ProgramFeatures> unseen = FeaturesOf(Rows(2, 2));
  const auto apart = [&](uint64_t task) {
    const std::vector<Prediction> predictions = *model.Predict(task, unseen);
    return std::abs(predictions[0].log_ratio - predictions[1].log_ratio);
  };
  ASSERT_GT(apart(1), 0);
  EXPECT_LT(apart(/*never seen*/ 9), 0.35 * apart(1));
  EXPECT_GT(apart(2), 1.2 * apart(9));
  EXPECT_LT(apart(2), 0.7 * apart(1));
}

TEST(DeviceModel, IsAFunctionOfRowsAndSeed) {
  DeviceModel a, b;
  for (DeviceModel* model : {&a, &b}) {
    for (int part = 0; part < 5; ++part) {
      ObserveAll(*model, Rows(40, static_cast<uint64_t>(part)));
      ASSERT_TRUE(model->TrainIfDue(3).ok());
    }
  }
  ExpectAlike(a, b);
}

// What a process learnt in many batches, the next one learns from the log at once.
TEST(DeviceModel, IsTheSameHoweverOftenItIsAsked) {
  const std::vector<TrainingRow> rows = Rows(117, 1);
  DeviceModel often, once;
  for (const TrainingRow& row : rows) {
    often.Observe(row);
    ASSERT_TRUE(often.TrainIfDue(3).ok());
  }
  ObserveAll(once, rows);
  ASSERT_TRUE(once.TrainIfDue(3).ok());
  ExpectAlike(often, once);
}

TEST(DeviceModel, AnotherProcessGoesOnWithWhatWasStored) {
  DeviceModel first, second;
  ObserveAll(first, Rows(400, 1));
  ASSERT_TRUE(first.TrainIfDue(1).ok());
  EXPECT_TRUE(first.worth_saving());
  const absl::StatusOr<std::string> stored = first.Save();
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_LE(stored->size(), DeviceModel::kMostBytes);
  ASSERT_TRUE(second.Merge(*stored).ok());
  EXPECT_TRUE(second.trained());
  EXPECT_FALSE(second.worth_saving()) << "nothing is new";
  EXPECT_EQ(second.rows(), 400u);
  const std::vector<TrainingRow> unseen = Rows(200, 2);
  EXPECT_LT(LogLoss(second, unseen), 0.3);
  ASSERT_TRUE(second.Merge(*stored).ok());
  EXPECT_EQ(second.rows(), 400u) << "the same rows are not counted twice";

  // It learns further, and what it was given is not forgotten.
  ObserveAll(second, Rows(150, 3));
  ASSERT_TRUE(second.TrainIfDue(2).ok());
  EXPECT_EQ(second.rows(), 550u);
  EXPECT_TRUE(second.worth_saving());
  EXPECT_LT(LogLoss(second, unseen), 0.3);
}

// Three processes, one for each task, that hand the model on have at any time the one that a single process has.
TEST(DeviceModel, IsTheSameHoweverManyProcessesHandItOn) {
  const std::vector<TrainingRow> rows = Rows(240, 1, /*tasks=*/3);
  DeviceModel alone, three[3];
  std::string stored;
  for (size_t turn = 0; turn < 10; ++turn) {
    DeviceModel& next = three[turn % 3];
    if (!stored.empty()) ASSERT_TRUE(next.Merge(stored).ok());
    for (size_t i = 24 * turn; i < 24 * (turn + 1); ++i) {
      alone.Observe(rows[i]);
      next.Observe(rows[i]);
    }
    ASSERT_TRUE(alone.TrainIfDue(3).ok() && next.TrainIfDue(3).ok());
    stored = *next.Save();
    next.NoteSaved();
    EXPECT_EQ(stored, *alone.Save()) << "after turn " << turn;
    ExpectAlike(next, alone);
  }
}

// What one process is told of another's hides nothing that it has to tell itself.
TEST(DeviceModel, HandsBackWhatNoStoredModelHas) {
  DeviceModel first, second;
  ObserveAll(first, Rows(60, 1));
  ObserveAll(second, Rows(60, 2));
  ASSERT_TRUE(first.TrainIfDue(1).ok() && second.TrainIfDue(1).ok());
  ASSERT_TRUE(second.Merge(*first.Save()).ok());
  EXPECT_TRUE(second.worth_saving());
  ASSERT_TRUE(first.Merge(*second.Save()).ok());
  EXPECT_FALSE(first.worth_saving());
}

// Two processes that learn at the same time: each takes up what the other stored.
TEST(DeviceModel, TheRowsOfTwoProcessesAreUnited) {
  DeviceModel first, second;
  ObserveAll(first, Rows(100, 1));
  ObserveAll(second, Rows(60, 2));
  ASSERT_TRUE(first.TrainIfDue(1).ok() && second.TrainIfDue(1).ok());
  ASSERT_TRUE(second.Merge(*first.Save()).ok());
  EXPECT_EQ(second.rows(), 160u);
  ASSERT_TRUE(first.Merge(*second.Save()).ok());
  EXPECT_EQ(first.rows(), 160u);
}

TEST(DeviceModel, IsBoundedAndKeepsTheFastestOfEveryTask) {
  DeviceModel model;
  const std::vector<TrainingRow> rows = Rows(DeviceModel::kMostRows + 100, 1, /*tasks=*/7);
  ObserveAll(model, rows);
  ASSERT_TRUE(model.TrainIfDue(1).ok());
  EXPECT_LE(model.rows(), DeviceModel::kMostRows);
  const absl::StatusOr<std::string> stored = model.Save();
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_LE(stored->size(), DeviceModel::kMostBytes);
  v1::StoredModel parsed;
  ASSERT_TRUE(parsed.ParseFromString(*stored));
  std::map<uint64_t, float> best, kept;
  for (const TrainingRow& row : rows) {
    best.try_emplace(row.task, row.log_us);
    best[row.task] = std::min(best[row.task], row.log_us);
  }
  for (const v1::ModelRow& row : parsed.rows()) {
    kept.try_emplace(row.task(), row.log_us());
    kept[row.task()] = std::min(kept[row.task()], row.log_us());
  }
  EXPECT_EQ(best, kept);
}

TEST(DeviceModel, RefusesWhatIsOfNoUseAndStaysAsItWas) {
  DeviceModel model, other;
  ObserveAll(other, Rows(100, 1));
  ASSERT_TRUE(other.TrainIfDue(1).ok());
  const std::string stored = *other.Save();
  v1::StoredModel parsed;
  ASSERT_TRUE(parsed.ParseFromString(stored));

  v1::StoredModel old = parsed;
  old.set_feature_version(kFeatureVersion + 1);
  EXPECT_EQ(model.Merge(old.SerializeAsString()).code(), absl::StatusCode::kFailedPrecondition);
  old = parsed;
  old.set_features(3);
  EXPECT_EQ(model.Merge(old.SerializeAsString()).code(), absl::StatusCode::kFailedPrecondition);
  v1::StoredModel broken = parsed;
  broken.mutable_rows(5)->set_places(0, 1000000);
  EXPECT_EQ(model.Merge(broken.SerializeAsString()).code(), absl::StatusCode::kDataLoss);
  broken = parsed;
  broken.mutable_rows(5)->mutable_values()->resize(3);
  EXPECT_EQ(model.Merge(broken.SerializeAsString()).code(), absl::StatusCode::kDataLoss);
  broken = parsed;
  broken.set_boosters(1, "{no trees");
  EXPECT_FALSE(model.Merge(broken.SerializeAsString()).ok());
  EXPECT_EQ(model.Merge("no message at all").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(model.Merge(stored.substr(0, stored.size() / 2)).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(model.rows(), 0u);
  EXPECT_FALSE(model.trained());
  EXPECT_TRUE(model.Merge(stored).ok());
}

}  // namespace
}  // namespace hone
