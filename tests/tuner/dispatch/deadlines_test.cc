#include "tuner/dispatch/state/deadlines.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Of = Deadlines::Of;
using Subject = Deadlines::Subject;

TEST(Deadlines, AreDueInTheirOrderUntilTheyAreSetAnew) {
  Deadlines deadlines;
  deadlines.Set(Of::kWorker, 1, 30);
  deadlines.Set(Of::kTrial, 1, 20);
  deadlines.Set(Of::kJob, 7, 40);
  EXPECT_THAT(deadlines.Due(19), IsEmpty());
  EXPECT_THAT(deadlines.Due(30), ElementsAre(Subject(Of::kTrial, 1), Subject(Of::kWorker, 1)));
  deadlines.Set(Of::kTrial, 1, Deadlines::kNever);
  EXPECT_THAT(deadlines.Due(30), ElementsAre(Subject(Of::kWorker, 1)));
  EXPECT_EQ(deadlines.first(), 30);
}

TEST(Deadlines, ThatArePutOffAreDueWhenTheySayAndNotBefore) {
  Deadlines deadlines;
  deadlines.Set(Of::kWorker, 1, 10);
  for (Micros at = 11; at <= 50; ++at) deadlines.Set(Of::kWorker, 1, at);
  EXPECT_EQ(deadlines.Get(Of::kWorker, 1), 50);
  EXPECT_LE(deadlines.first(), 50);
  EXPECT_THAT(deadlines.Due(49), IsEmpty());
  EXPECT_EQ(deadlines.first(), 50);
  EXPECT_THAT(deadlines.Due(50), ElementsAre(Subject(Of::kWorker, 1)));
}

TEST(Deadlines, ThatWerePutOffCanBeBroughtForward) {
  Deadlines deadlines;
  deadlines.Set(Of::kWorker, 1, 10);
  deadlines.Set(Of::kWorker, 1, 50);
  deadlines.Set(Of::kWorker, 1, 30);  // between its place in the order and its time
  EXPECT_THAT(deadlines.Due(29), IsEmpty());
  deadlines.Set(Of::kWorker, 1, 5);
  EXPECT_THAT(deadlines.Due(5), ElementsAre(Subject(Of::kWorker, 1)));
  deadlines.Set(Of::kWorker, 1, Deadlines::kNever);
  EXPECT_EQ(deadlines.first(), Deadlines::kNever);
  EXPECT_EQ(deadlines.size(), 0u);
}

}  // namespace
}  // namespace hone
