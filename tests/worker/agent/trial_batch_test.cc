// Batches of real candidates, built, verified and raced.
#include "worker/agent/trials/trial_batch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "compiler/sandbox/layers.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/workloads.h"
#include "tests/deploy/runtime/machine_code.h"
#include "tests/worker/agent/host_task.h"
#include "tests/worker/agent/time_liars.h"
#include "worker/agent/builds/builder_pool.h"
#include "worker/agent/device_probe.h"

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

// Builders that remember what they were asked for.
class NotesRequests : public Builders {
 public:
  explicit NotesRequests(Builders& builders) : builders_(builders) {}
  void Begin(std::vector<v1::BuildRequest> requests, absl::Duration limit) override {
    asked.insert(asked.end(), requests.begin(), requests.end());
    builders_.Begin(std::move(requests), limit);
  }
  std::optional<Built> Next() override { return builders_.Next(); }
  std::vector<v1::BuildRequest> asked;

 private:
  Builders& builders_;
};

class TrialBatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<TaskContext>> task = HostTask(ToText(Matmul(32, 48, 24)), builders_);
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
    lease.set_measured_digest(measured_digest_);
    std::vector<v1::Outcome> outcomes;
    for (int attempt = 0; attempt < 20; ++attempt) {
      TrialBatch batch(
          *task_, device_, noting_, &known_, &noise_, [](const v1::LeaseId&, v1::Phase) {},
          [&](absl::Duration duration) { quiet_ = duration; });
      batch.Prepare({lease});
      outcomes = batch.Measure();
      EXPECT_EQ(outcomes.size(), 1u);
      if (outcomes.size() != 1 || outcomes[0].kind() != v1::OUTCOME_INFRA) break;
    }
    return outcomes.empty() ? v1::Outcome() : outcomes[0];
  }

  // What is known of the program that was last built for the trace.
  KnownBuilds::Known* Known(const std::string& trace) {
    const auto request = std::find_if(noting_.asked.rbegin(), noting_.asked.rend(),
                                      [&](const v1::BuildRequest& request) { return request.trace() == trace; });
    return request == noting_.asked.rend() ? nullptr : known_.Find(*request);
  }

  BuilderPool builders_{2, "", LayersSomeSystemsLack()};
  NotesRequests noting_{builders_};
  std::unique_ptr<TaskContext> task_;
  KnownBuilds known_;
  std::string measured_digest_;  // of leases to come
  double noise_ = 0.01;
  const v1::DeviceProfile device_ = UsualDevice(HostTarget(), 2);
  absl::Duration quiet_;  // as it was last asked for
};

TEST_F(TrialBatchTest, ACandidateIsTimed) {
  const v1::Outcome outcome = Run(kTiled, "");
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_OK) << outcome.detail();
  EXPECT_GE(outcome.timing().samples_us_size(), 3);
  EXPECT_FALSE(outcome.object().empty());
  EXPECT_GE(quiet_, absl::Seconds(outcome.measure_seconds()) / 4) << "four races at most";
  EXPECT_LE(quiet_, absl::Seconds(10));
}

TEST_F(TrialBatchTest, TheCodeThatWasMeasuredIsNotMeasuredAgain) {
  const v1::Outcome before = Run(kTiled, "");
  ASSERT_EQ(before.kind(), v1::OUTCOME_OK) << before.detail();
  measured_digest_ = before.object_digest();
  const v1::Outcome again = Run(kTiled, "", /*duel=*/true);
  EXPECT_EQ(again.kind(), v1::OUTCOME_CANCELLED) << again.detail();
  EXPECT_EQ(again.object_digest(), before.object_digest());
  EXPECT_EQ(again.generator(), before.generator());
  EXPECT_FALSE(again.has_timing());
  const v1::Outcome other = Run(kParallel, "", /*duel=*/true);
  EXPECT_EQ(other.kind(), v1::OUTCOME_OK) << other.detail();

  v1::BuildRequest request;
  request.set_generator(true);
  request.set_target(HostTarget().text);
  const v1::BuildReply says = builders_.Build({request}, absl::Seconds(20)).front().reply();
  EXPECT_EQ(says.error(), "");
  EXPECT_EQ(says.generator(), before.generator());
}

TEST_F(TrialBatchTest, ATraceThatDoesNotReplayIsABuildError) {
  const std::string trace = "b0 = sch.get_block(\"no such\", func_name=\"main\")\n";
  const v1::Outcome outcome = Run(trace, kTiled);
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_BUILD_ERROR);
  EXPECT_EQ(Known(trace), nullptr);
  EXPECT_TRUE(Known(kTiled)->verified.has_value());
}

TEST_F(TrialBatchTest, AChampionAndWhoDuelsWithItAreBuiltAndVerifiedOnce) {
  const v1::Outcome trial = Run(kParallel, kTiled);
  EXPECT_EQ(trial.kind(), v1::OUTCOME_OK);
  EXPECT_EQ(noting_.asked.size(), 2u);
  EXPECT_TRUE(Known(kTiled)->verified.has_value());
  EXPECT_TRUE(Known(kParallel)->verified.has_value());
  const v1::Outcome duel = Run(kParallel, kTiled, /*duel=*/true);
  EXPECT_EQ(duel.kind(), v1::OUTCOME_OK) << duel.detail();
  EXPECT_GT(duel.duel_ratio(), 0);
  EXPECT_EQ(duel.max_error(), trial.max_error());
  EXPECT_EQ(duel.object_digest(), trial.object_digest());
  EXPECT_FALSE(duel.object().empty());
  EXPECT_EQ(noting_.asked.size(), 2u);
}

TEST_F(TrialBatchTest, ItsProgramsAreBuiltForItsTask) {
  NotesRequests builders(builders_);
  v1::Lease lease;
  lease.set_task(17);
  lease.set_trace(kParallel);
  lease.set_threads(2);
  lease.set_champion_trace(kTiled);
  lease.set_champion_us(10);
  lease.set_build_limit_ms(20000);
  lease.set_run_limit_ms(10000);
  TrialBatch batch(
      *task_, device_, builders, &known_, &noise_, [](const v1::LeaseId&, v1::Phase) {}, [](absl::Duration) {});
  batch.Prepare({lease});
  batch.Measure();
  ASSERT_EQ(builders.asked.size(), 2u);
  for (const v1::BuildRequest& request : builders.asked) EXPECT_EQ(request.task(), 17u) << request.trace();
  EXPECT_FALSE(builders.asked[0].image_only()) << "it may become the best, and its record have its object";
  EXPECT_TRUE(builders.asked[1].image_only());
  const KnownBuilds::Known* champion = known_.Find(builders.asked[1]);
  ASSERT_NE(champion, nullptr);
  EXPECT_FALSE(champion->built.reply().image().empty());
  EXPECT_EQ(champion->built.reply().object(), "");
}

TEST_F(TrialBatchTest, WhoWasChampionIsBuiltAnewForItsObject) {
  Run(kParallel, kTiled);
  const v1::Outcome outcome = Run(kTiled, kParallel, /*duel=*/true);
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_OK) << outcome.detail();
  ASSERT_EQ(noting_.asked.size(), 3u);
  EXPECT_EQ(noting_.asked[2].trace(), kTiled);
  EXPECT_FALSE(noting_.asked[2].image_only());
}

// A champion that cannot be started any more is out of the race, and built anew for the next.
TEST_F(TrialBatchTest, AChampionThatDoesNotStartIsOut) {
  Run(kParallel, kTiled);
  Known(kTiled)->built.mutable_reply()->set_image("not an image");
  const v1::Outcome outcome = Run(kParallel, kTiled);
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_OK) << outcome.detail();
  EXPECT_EQ(Known(kTiled), nullptr);
  Run(kParallel, kTiled);
  EXPECT_EQ(noting_.asked.size(), 3u);
  EXPECT_TRUE(Known(kTiled)->verified.has_value());
}

#if defined(__x86_64__)  // the candidate is machine code

constexpr char kBlock[] = "b0 = sch.get_block(\"C\", func_name=\"main\")\n";

// Builders that hand out this machine code, by trace.
class Swapped : public Builders {
 public:
  Swapped(Builders& builders, std::map<std::string, std::string> codes)
      : builders_(builders), codes_(std::move(codes)) {}
  void Begin(std::vector<v1::BuildRequest> requests, absl::Duration limit) override {
    requests_ = requests;
    builders_.Begin(std::move(requests), limit);
  }
  std::optional<Built> Next() override {
    std::optional<Built> built = builders_.Next();
    if (!built.has_value()) return built;
    const v1::BuildRequest& request = requests_[built->request];
    const auto code = codes_.find(request.trace());
    if (code != codes_.end()) built->outcome.mutable_reply()->set_image(ImageOf({{request.symbol(), code->second}}));
    return built;
  }

 private:
  Builders& builders_;
  const std::map<std::string, std::string> codes_;
  std::vector<v1::BuildRequest> requests_;
};

class MachineCodeTrialTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<TaskContext>> task = HostTask(kAddOfThousand, pool_);
    ASSERT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
    lease_.set_trace(std::string(kBlock) + "l1, = sch.get_loops(b0)\n");
    lease_.set_threads(1);
    lease_.set_build_limit_ms(20000);
    lease_.set_run_limit_ms(10000);
  }

  // Of a candidate that is this code, by lease_. `champion`: the code of that; "": what is built of its trace.
  v1::Outcome Run(const std::string& code, const std::string& champion = "") {
    std::map<std::string, std::string> codes = {{lease_.trace(), code}};
    if (!champion.empty()) codes[lease_.champion_trace()] = champion;
    Swapped builders(pool_, codes);
    KnownBuilds known;
    double noise = 0.01;
    v1::Outcome outcome;
    do {  // again where the machine was not quiet enough to tell
      TrialBatch batch(
          *task_, device_, builders, &known, &noise, [](const v1::LeaseId&, v1::Phase) {}, [](absl::Duration) {});
      batch.Prepare({lease_});
      outcome = batch.Measure().at(0);
    } while (outcome.kind() == v1::OUTCOME_INFRA);
    return outcome;
  }

  BuilderPool pool_{1, "", LayersSomeSystemsLack()};
  std::unique_ptr<TaskContext> task_;
  const v1::DeviceProfile device_ = UsualDevice(HostTarget(), 1);
  v1::Lease lease_;
};

TEST_F(MachineCodeTrialTest, WhoStopsWorkingWhileItIsTimedHasNoTime) {
  lease_.set_champion_trace(kBlock);
  lease_.set_champion_us(10);
  for (const bool honest : {true, false}) {
    const v1::Outcome outcome = Run(honest ? AddKernel(1000) : time_liars::SumsOnce());
    EXPECT_EQ(outcome.kind(), honest ? v1::OUTCOME_OK : v1::OUTCOME_WRONG_RESULT) << outcome.detail();
    EXPECT_EQ(outcome.has_timing(), honest);
    if (!honest) { EXPECT_THAT(outcome.detail(), ::testing::HasSubstr("under the clock, on other inputs: output 0")); }
  }
}

// A first time makes nobody the best before it is confirmed, and then who lies is found out.
TEST_F(MachineCodeTrialTest, WhoIsConfirmedAsTheBestIsCheckedForLies) {
  EXPECT_EQ(Run(time_liars::RemembersValues()).kind(), v1::OUTCOME_OK);
  lease_.set_duel(true);
  EXPECT_EQ(Run(time_liars::Honest()).kind(), v1::OUTCOME_OK);
  const v1::Outcome outcome = Run(time_liars::RemembersValues());
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_INVALID_TIMING);
  EXPECT_THAT(outcome.detail(), ::testing::HasSubstr("it keeps results"));
  EXPECT_FALSE(outcome.has_timing());
}

// Beside a champion, whom it beats by its lie.
TEST_F(MachineCodeTrialTest, WhoWinsADuelIsCheckedForLies) {
  lease_.set_duel(true);
  lease_.set_champion_trace(kBlock);
  lease_.set_champion_us(10);
  const v1::Outcome outcome = Run(time_liars::RemembersValues(), time_liars::Honest());
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_INVALID_TIMING) << outcome.duel_ratio();
  EXPECT_THAT(outcome.detail(), ::testing::HasSubstr("it keeps results"));
}

#endif

}  // namespace
}  // namespace hone::testing
