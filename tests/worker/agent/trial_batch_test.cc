// Batches of real candidates, built, verified and raced.
#include "worker/agent/trial_batch.h"

#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/workloads.h"
#include "worker/agent/builder_pool.h"

namespace hone::testing {
namespace {

constexpr char kTiled[] = R"(b0 = sch.get_block("C", func_name="main")
l1, l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l1, factors=[None, 4])
sch.reorder(l4, l2, l3, l5)
)";
constexpr char kParallel[] = R"(b0 = sch.get_block("C", func_name="main")
l1, l2, l3 = sch.get_loops(b0)
sch.parallel(l1)
)";

class TrialBatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    v1::Workload workload;
    workload.set_text(ToText(Matmul(32, 48, 24)));
    absl::StatusOr<std::unique_ptr<TaskContext>> task =
        TaskContext::Create(workload, HostTarget().text, builders_, absl::Seconds(20));
    ASSERT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
  }

  // The outcome of a batch of one; where the machine was not quiet enough to tell, of another, as the daemon asks.
  v1::Outcome Run(const std::string& trace, const std::string& champion_trace, bool duel = false) {
    v1::Lease lease;
    lease.set_trace(trace);
    lease.set_threads(2);
    lease.set_champion_trace(champion_trace);
    lease.set_champion_us(champion_trace.empty() ? 0 : 10);
    lease.set_build_limit_ms(20000);
    lease.set_run_limit_ms(10000);
    lease.set_duel(duel);
    std::vector<v1::Outcome> outcomes;
    for (int attempt = 0; attempt < 20; ++attempt) {
      TrialBatch batch(*task_, HostTarget().text, builders_, &champion_, &noise_, [](const v1::LeaseId&, v1::Phase) {});
      outcomes = batch.Run({lease});
      EXPECT_EQ(outcomes.size(), 1u);
      if (outcomes.size() != 1 || outcomes[0].kind() != v1::OUTCOME_INFRA) break;
    }
    return outcomes.empty() ? v1::Outcome() : outcomes[0];
  }

  BuilderPool builders_{2};
  std::unique_ptr<TaskContext> task_;
  KnownChampion champion_;
  double noise_ = 0.01;
};

TEST_F(TrialBatchTest, ACandidateIsTimed) {
  const v1::Outcome outcome = Run(kTiled, "");
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_OK) << outcome.detail();
  EXPECT_GE(outcome.timing().samples_us_size(), 3);
  EXPECT_FALSE(outcome.object().empty());
  EXPECT_EQ(champion_.request, "");
}

TEST_F(TrialBatchTest, ATraceThatDoesNotReplayIsABuildError) {
  const v1::Outcome outcome = Run("b0 = sch.get_block(\"no such\", func_name=\"main\")\n", kTiled);
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_BUILD_ERROR);
  EXPECT_TRUE(champion_.right);
}

TEST_F(TrialBatchTest, AChampionIsBuiltAndVerifiedOnce) {
  EXPECT_EQ(Run(kParallel, kTiled).kind(), v1::OUTCOME_OK);
  EXPECT_TRUE(champion_.right);
  const std::string request = champion_.request;
  champion_.built.mutable_reply()->set_generator("kept");  // a champion that is built again comes without it
  const v1::Outcome duel = Run(kParallel, kTiled, /*duel=*/true);
  EXPECT_EQ(duel.kind(), v1::OUTCOME_OK) << duel.detail();
  EXPECT_GT(duel.duel_ratio(), 0);
  EXPECT_EQ(champion_.request, request);
  EXPECT_EQ(champion_.built.reply().generator(), "kept");
}

TEST_F(TrialBatchTest, AnotherChampionIsBuiltAnew) {
  Run(kParallel, kTiled);
  champion_.built.mutable_reply()->set_generator("kept");
  EXPECT_EQ(Run(kTiled, kParallel, /*duel=*/true).kind(), v1::OUTCOME_OK);
  EXPECT_NE(champion_.built.reply().generator(), "kept");
  EXPECT_TRUE(champion_.right);
}

// A champion that cannot be started any more is out of the race, and built anew for the next.
TEST_F(TrialBatchTest, AChampionThatDoesNotStartIsOut) {
  Run(kParallel, kTiled);
  champion_.built.mutable_reply()->set_image("not an image");
  const v1::Outcome outcome = Run(kParallel, kTiled);
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_OK) << outcome.detail();
  EXPECT_EQ(champion_.request, "");
  Run(kParallel, kTiled);
  EXPECT_TRUE(champion_.right);
}

}  // namespace
}  // namespace hone::testing
