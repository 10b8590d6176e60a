// Candidates that compute what they are asked and lie about the time it takes: each is found out, and an honest one is
// not taken for one.
#include "worker/agent/trials/check_winner.h"

#include "compiler/codegen/compile.h"
#include "compiler/sandbox/layers.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/machine_code.h"
#include "tests/worker/agent/host_task.h"
#include "tests/worker/agent/time_liars.h"
#include "worker/agent/builds/builder_pool.h"
#include "worker/measure/statistics.h"

namespace hone::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using namespace time_liars;

#if defined(__x86_64__)  // candidates are machine code

class CheckWinnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<TaskContext>> task = HostTask(kAddOfThousand, builders_);
    ASSERT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
    const absl::StatusOr<CompiledKernel> kernel = CompilePlain(*ParsePrimFunc(kAddOfThousand), HostTarget(), {});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    set_ = kernel->set;
    set_.scratch_bytes = 4096;
  }

  // As a race times it, then as a winner is checked.
  v1::OutcomeKind Check(const std::string& code, std::string* detail, const std::string& program = "") {
    const std::string image = ImageOf({{set_.symbol, code}}), set = Serialize(set_);
    WinnerCheck check = {.limits = {.run = absl::Seconds(20), .runner = program}, .duration = absl::Milliseconds(60)};
    Verified started = VerifyCandidate(*task_, image, set, NumericLevel::kDefault, check.limits);
    if (!started.runner.has_value()) {
      *detail = started.detail;
      return started.kind;
    }
    std::vector<double> us;
    for (int attempt = 0; us.size() < 5; ++attempt) {
      const RunnerVerdict verdict = started.runner->Time({.inner = 20}, absl::Seconds(20));
      // A virtual machine's host may have taken its processor away meanwhile.
      if (verdict.kind == RunnerVerdict::kImpossibleTime && attempt < 20) continue;
      EXPECT_TRUE(verdict.ok()) << verdict.message;
      if (!verdict.ok()) break;
      for (const TimedSample& sample : verdict.samples) us.push_back(sample.us);
    }
    check.call_us = Median(us);
    return CheckWinner(*task_, image, set, check, detail);
  }

  BuilderPool builders_{1, "", LayersSomeSystemsLack()};
  std::unique_ptr<TaskContext> task_;
  KernelSet set_;
};

TEST_F(CheckWinnerTest, AnHonestOneIsTaken) {
  for (int time = 0; time < 4; ++time) {
    std::string detail;
    EXPECT_EQ(Check(Honest(), &detail), v1::OUTCOME_OK) << detail;
    EXPECT_EQ(Check(AddKernel(1000), &detail), v1::OUTCOME_OK) << detail;
  }
}

TEST_F(CheckWinnerTest, WhoRemembersWhereItsInputsWereLeavesOutputsDestroyed) {
  std::string detail;
  EXPECT_EQ(Check(RemembersPointers(), &detail), v1::OUTCOME_WRONG_RESULT) << detail;
  EXPECT_THAT(detail, HasSubstr("under the clock: output 0"));
}

TEST_F(CheckWinnerTest, WhoSkipsWhatLooksRightIsFoundOut) {
  std::string detail;
  // The patch that is destroyed covers the element it looks at one time in 63.
  EXPECT_THAT(Check(SkipsWhatIsRight(), &detail), AnyOf(v1::OUTCOME_WRONG_RESULT, v1::OUTCOME_INVALID_TIMING));
  EXPECT_THAT(detail, AnyOf(HasSubstr("under the clock: output 0"), HasSubstr("it keeps results")));
}

TEST_F(CheckWinnerTest, WhoRemembersTheValuesOfItsInputsIsSlowerOnOthers) {
  std::string detail;
  EXPECT_EQ(Check(RemembersValues(), &detail), v1::OUTCOME_INVALID_TIMING) << detail;
  EXPECT_THAT(detail, HasSubstr("it keeps results"));
}

TEST_F(CheckWinnerTest, WhoIsFastOnTheInputsItKnowsIsSlowerOnOthers) {
  std::string detail;
  EXPECT_EQ(Check(KnowsItsInputs(), &detail), v1::OUTCOME_INVALID_TIMING) << detail;
  EXPECT_THAT(detail, HasSubstr("it keeps results"));
}

TEST_F(CheckWinnerTest, WhoLetsItsClockStandIsContradictedByTheWorkers) {
  std::string detail;
  EXPECT_EQ(Check(Honest(), &detail, std::string(HONE_BIN) + "/hone-lying-runner"), v1::OUTCOME_INVALID_TIMING);
  EXPECT_THAT(detail, HasSubstr("by the worker's clock"));
}

#endif

}  // namespace
}  // namespace hone::testing
