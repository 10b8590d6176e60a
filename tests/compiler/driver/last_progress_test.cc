#include "compiler/driver/service/last_progress.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using testing::HasSubstr;

TEST(LastProgress, IsWhenASnapshotShowedSomethingNew) {
  const absl::Time start = absl::FromUnixSeconds(1000);
  const auto at = [&](int seconds) { return start + absl::Seconds(seconds); };
  LastProgress progress;
  v1::JobSnapshot job;
  EXPECT_EQ(progress.Since(job, at(0)), absl::ZeroDuration());
  job.set_seconds(30);         // time alone is no progress,
  job.set_search_seconds(30);  // nor what is only the rest of it
  EXPECT_EQ(progress.Since(job, at(30)), absl::Seconds(30));
  job.set_in_flight(4);
  EXPECT_EQ(progress.Since(job, at(40)), absl::ZeroDuration());
  EXPECT_EQ(progress.Since(job, at(45)), absl::Seconds(5));
  job.set_build_seconds(2);
  EXPECT_EQ(progress.Since(job, at(50)), absl::ZeroDuration());
  job.set_trials(1);
  EXPECT_EQ(progress.Since(job, at(60)), absl::ZeroDuration());
  (*job.mutable_failed())["crash"] = 1;
  EXPECT_EQ(progress.Since(job, at(70)), absl::ZeroDuration());
  EXPECT_EQ(progress.Since(job, at(700)), absl::Seconds(630));
}

TEST(LastProgress, SaysWhatIsKnown) {
  v1::JobSnapshot job;
  EXPECT_THAT(NoProgressText(job, "hone jobs explain 7"),
              testing::AllOf(HasSubstr("no worker has a candidate"), HasSubstr("more: hone jobs explain 7")));
  job.set_in_flight(3);
  EXPECT_THAT(NoProgressText(job, "hone jobs explain 7"), HasSubstr("3 candidates are with workers"));
}

}  // namespace
}  // namespace hone
