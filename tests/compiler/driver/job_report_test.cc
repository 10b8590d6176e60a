// A job as people read it: what the progress line claims, and what the table says of tasks that were not measured.
#include "compiler/driver/service/job_report.h"

#include <algorithm>
#include <regex>

#include "absl/strings/str_split.h"
#include "compiler/driver/bundles/compare_bundles.h"
#include "compiler/driver/models/hints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

v1::TaskSnapshot Task(const std::string& name, double weight, double default_us, double best_us) {
  v1::TaskSnapshot task;
  task.set_name(name);
  task.set_weight(weight);
  task.set_flop(1e6);
  task.set_default_us(default_us);
  task.set_best_us(best_us);
  task.set_lower_bound_us(best_us * 1.3);  // of a machine that was busy when its peak was measured
  task.set_state("open");
  return task;
}

v1::JobSnapshot Job(const std::vector<v1::TaskSnapshot>& tasks) {
  v1::JobSnapshot job;
  job.set_state(v1::JOB_RUNNING);
  job.set_trials(30);
  job.set_max_trials(100);
  job.set_seconds(10);
  job.set_seconds_since_gain(7);
  job.set_current_task("conv2d_3x3");
  for (const v1::TaskSnapshot& task : tasks) *job.add_tasks() = task;
  return job;
}

TEST(ProgressLine, HasTheModelsTimeOnceEveryTaskIsMeasured) {
  const std::string half = ProgressLine(Job({Task("a", 1, 100, 50), Task("b", 2, 0, 0)}));
  EXPECT_THAT(half, AllOf(HasSubstr("trials 30/100"), HasSubstr("tasks 1/2"), HasSubstr("gain 7s ago"),
                          HasSubstr("3.0/s"), HasSubstr("left 23s"), HasSubstr("conv2d_3x3"), Not(HasSubstr("best"))));
  EXPECT_TRUE(ProgressJson(Job({Task("a", 1, 100, 50), Task("b", 2, 0, 0)})).at("best_ms").is_null());
  const std::string whole = ProgressLine(Job({Task("a", 1, 100, 50), Task("b", 2, 1000, 500)}));
  EXPECT_THAT(whole, AllOf(HasSubstr("tasks 2/2"), HasSubstr("best 1.050 ms (2.00x)")));
}

// A task whose default schedule failed has no ratio; its time belongs to the model all the same.
TEST(ProgressLine, CountsATaskWithoutADefaultTime) {
  EXPECT_THAT(ProgressLine(Job({Task("a", 1, 100, 50), Task("b", 1, 0, 950)})), HasSubstr("best 1.000 ms (2.00x)"));
}

TEST(TaskTable, IsSortedByShareAndSaysWhatWasNotMeasured) {
  v1::TaskSnapshot failed = Task("failed", 1, 0, 0);
  (*failed.mutable_failed())["timeout"] = 3;
  const std::string table =
      TaskTable(Job({Task("small", 1, 0, 10), Task("absent", 1, 0, 0), Task("large", 3, 60, 30), failed}));
  const std::vector<std::string> lines = absl::StrSplit(table, '\n');
  EXPECT_THAT(lines[1], AllOf(HasSubstr("90.0%"), HasSubstr("large"), HasSubstr("2.00x"), HasSubstr("open")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("10.0%"), HasSubstr("small")));
  EXPECT_THAT(lines[3], AllOf(HasSubstr("not measured"), HasSubstr("absent")));
  EXPECT_THAT(lines[4], AllOf(HasSubstr("not measured: 3 candidates failed"), HasSubstr("failed")));
  EXPECT_THAT(table, HasSubstr("share: of the model's time"));
  const std::regex percent("([0-9.]+)%");
  for (std::sregex_iterator at(table.begin(), table.end(), percent); at != std::sregex_iterator(); ++at) {
    EXPECT_LE(std::stod((*at)[1]), 100) << table;
  }
}

TEST(SpeedUp, IsAChangeWhenTheIntervalLeavesOutOne) {
  SpeedUp speed_up;
  speed_up.ratio = 1.09;
  speed_up.low = 1.04;
  speed_up.high = 1.12;
  EXPECT_EQ(ToText(speed_up), "1.09x (1.04-1.12)");
  speed_up.low = 1.003;
  EXPECT_EQ(ToText(speed_up), "no measurable change (1.00-1.12)");
  speed_up.low = 0.97;
  EXPECT_EQ(ToText(speed_up), "no measurable change (0.97-1.12)");
}

TEST(ShellWord, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(ShellWord("models/resnet18.onnx"), "models/resnet18.onnx");
  EXPECT_EQ(ShellWord("a model.onnx"), "'a model.onnx'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(JobReport, SaysHowOftenTheFirstPicksWereRight) {
  v1::JobSnapshot job;
  EXPECT_EQ(FirstPicks(job), "") << "nothing was judged";
  EXPECT_TRUE(ResultJson(job)["model_top1"].is_null());
  job.set_judged_batches(14);
  job.set_draft_top1(0.708);
  job.set_model_top1(0.93);
  EXPECT_EQ(FirstPicks(job), "first picks: draft 71 %, cost model 93 % of a batch's best (14 batches)");
  EXPECT_EQ(ResultJson(job)["judged_batches"], 14);
  EXPECT_EQ(ResultJson(job)["draft_top1"], 0.708);
}

}  // namespace
}  // namespace hone
