// Builds for workers that only measure. One rule a test.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Builds : public ::testing::Test {
 protected:
  void SetUp() override {
    desk_.Wait(kSecond);
    desk_.Hello("board", 2, "", 0, "its host's", WorkerRole::kMeasure);
    desk_.Hello("pool", 2, "", 0, "its host's", WorkerRole::kBuild);
  }
  ReplyTo Ask(const std::string& trace, const std::string& session = "board", const std::string& workload = "") {
    const ReplyTo to = desk_.NewCall();
    v1::BuildCall call;
    call.set_session(session);
    call.mutable_request()->set_workload(workload);
    call.mutable_request()->set_trace(trace);
    call.set_limit_ms(1000);
    desk_.Do(AskBuild{to, call});
    return to;
  }
  std::vector<v1::BuildLease> TakeBuilds(const std::string& session, uint32_t credits,
                                         const std::vector<v1::BuildLease>& held = {}) {
    v1::SyncRequest request = desk_.SyncOf(session, credits);
    for (const v1::BuildLease& lease : held) *request.add_building() = lease.id();
    const ReplyTo to = desk_.Sync(request);
    if (!desk_.Answered(to)) return {};
    const v1::SyncReply& reply = desk_.SyncReplyTo(to);
    return {reply.build().begin(), reply.build().end()};
  }
  // Says what was built of it; true when the daemon no longer wants it.
  bool Report(const std::string& session, const v1::BuildLease& lease) {
    v1::SyncRequest request = desk_.SyncOf(session);
    v1::BuildResult& result = *request.add_built();
    *result.mutable_id() = lease.id();
    result.mutable_outcome()->mutable_reply()->set_object("object of " + lease.request().trace());
    const ReplyTo to = desk_.Sync(request);
    if (!desk_.Answered(to)) return false;
    const auto& keep = desk_.SyncReplyTo(to).keep_builds();
    return std::ranges::none_of(keep, [&](const v1::BuildId& id) { return id.build() == lease.id().build(); });
  }
  std::string ObjectOf(ReplyTo call) {
    const v1::BuildOutcome* outcome = Outcome(call);
    return outcome == nullptr ? "" : outcome->reply().object();
  }
  const v1::BuildOutcome* Outcome(ReplyTo call) {
    return desk_.Answered(call) ? std::get_if<v1::BuildOutcome>(&desk_.replies.at(call)) : nullptr;
  }
  std::string RefusalOf(ReplyTo call) {
    const Refusal* refusal = desk_.Answered(call) ? std::get_if<Refusal>(&desk_.replies.at(call)) : nullptr;
    return refusal == nullptr ? "" : refusal->message;
  }

  Desk desk_;
};

TEST_F(Builds, AreLentToBuildersAndAnsweredToWhoAsked) {
  const ReplyTo first = Ask("a"), second = Ask("b");
  const auto leases = TakeBuilds("pool", 5);
  ASSERT_THAT(leases, SizeIs(2));
  EXPECT_EQ(leases[0].request().trace(), "a") << "in the order asked";
  EXPECT_EQ(leases[0].limit_ms(), 1000u);
  EXPECT_TRUE(Report("pool", leases[1]));
  EXPECT_EQ(ObjectOf(second), "object of b");
  EXPECT_FALSE(desk_.Answered(first));
  EXPECT_TRUE(Report("pool", leases[0]));
  EXPECT_EQ(ObjectOf(first), "object of a");
  EXPECT_TRUE(Report("pool", leases[0])) << "once more: of no use, and forgotten";
}

TEST_F(Builds, TrialsAreLentToMeasurersWhileSomebodyBuilds) {
  const uint64_t job = desk_.Submit({"conv2d_1"});
  EXPECT_THAT(TakeBuilds("pool", 5), SizeIs(0));
  EXPECT_THAT(desk_.Take("pool", 5), SizeIs(0)) << "a builder measures nothing";
  const auto leases = desk_.Take("board", 5);
  ASSERT_THAT(leases, SizeIs(1));
  EXPECT_TRUE(desk_.Report("board", leases[0], Desk::Good(7)));
  EXPECT_EQ(desk_.Job(job).hold_up(), v1::HOLD_UP_NONE);
  desk_.Do(CallGone{desk_.Sync(desk_.SyncOf("pool"))});
  desk_.Sync(desk_.SyncOf("board"));
  desk_.Wait(4 * kSecond);  // the builder is gone, as far as one can see
  EXPECT_EQ(desk_.Job(job).hold_up(), v1::HOLD_UP_NO_WORKER);
  EXPECT_THAT(desk_.Job(job).held_up_by(), HasSubstr("no worker builds for worker board"));
  desk_.AnswerSearch({"t1", "t2"});
  EXPECT_THAT(desk_.Take("board", 1), SizeIs(0));
  desk_.Sync(desk_.SyncOf("pool"));
  EXPECT_EQ(desk_.Job(job).hold_up(), v1::HOLD_UP_NONE);
  EXPECT_THAT(desk_.Take("board", 1), SizeIs(1));
}

// What built a job's candidates without being locked in by everything is seen in that job, as what measured them is.
TEST_F(Builds, WhatABuildersSandboxLacksIsNotedInTheJob) {
  desk_.missing_layers = {"landlock"};
  desk_.Hello("bare", 2, "", 0, "its host's", WorkerRole::kBuild);
  const uint64_t job = desk_.Submit({"conv2d_1"});
  ASSERT_THAT(desk_.Take("board", 1), SizeIs(1));
  const uint64_t other = desk_.Submit({"dense_2"});
  const ReplyTo call = Ask("a", "board", "text of conv2d_1");
  const auto builds = TakeBuilds("bare", 1);
  ASSERT_THAT(builds, SizeIs(1));
  EXPECT_THAT(desk_.Job(job).missing_layers(), SizeIs(0));
  EXPECT_TRUE(Report("bare", builds[0]));
  EXPECT_TRUE(desk_.Answered(call));
  EXPECT_THAT(desk_.Job(job).missing_layers(), ElementsAre("landlock"));
  EXPECT_THAT(desk_.Job(other).missing_layers(), SizeIs(0)) << "nothing of it was built";
  desk_.Restart();
  EXPECT_THAT(desk_.Job(job).missing_layers(), ElementsAre("landlock")) << "the job keeps it";
}

TEST_F(Builds, ALostBuilderCostsItsOwnLeaseAlone) {
  desk_.Submit({"conv2d_1"});
  const auto trials = desk_.Take("board", 1);
  ASSERT_THAT(trials, SizeIs(1));
  const ReplyTo call = Ask(trials[0].trace());
  const auto lost = TakeBuilds("pool", 1);
  ASSERT_THAT(lost, SizeIs(1));
  desk_.Hello("pool", 2, "restarted", 0, "its host's", WorkerRole::kBuild);
  const auto again = TakeBuilds("restarted", 1);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].id().attempt(), 2u);
  desk_.Hello("other", 2, "", 0, "its host's", WorkerRole::kBuild);
  EXPECT_TRUE(Report("other", lost[0])) << "of the first lease, which is over";
  EXPECT_FALSE(desk_.Answered(call));
  EXPECT_TRUE(Report("restarted", again[0]));
  EXPECT_EQ(ObjectOf(call), "object of " + trials[0].trace());
  v1::SyncRequest held = desk_.SyncOf("board");
  *held.add_held()->mutable_id() = trials[0].id();
  desk_.Sync(held);
  EXPECT_TRUE(desk_.Report("board", trials[0], Desk::Good(7)));
  EXPECT_EQ(desk_.store.trials().begin()->second.attempt, 1u);
}

TEST_F(Builds, ARequestThatTwoBuildersWereLostWithIsQuarantined) {
  const ReplyTo call = Ask("poison");
  ASSERT_THAT(TakeBuilds("pool", 1), SizeIs(1));
  desk_.Hello("pool", 2, "second", 0, "its host's", WorkerRole::kBuild);
  ASSERT_THAT(TakeBuilds("second", 1), SizeIs(1));
  desk_.Hello("pool", 2, "third", 0, "its host's", WorkerRole::kBuild);
  EXPECT_THAT(TakeBuilds("third", 1), SizeIs(0));
  ASSERT_NE(Outcome(call), nullptr);
  EXPECT_THAT(Outcome(call)->reply().error(), HasSubstr("quarantined: 2 builders were lost"));
  EXPECT_FALSE(Outcome(call)->infrastructure());
  EXPECT_NE(Outcome(Ask("poison")), nullptr) << "whoever asks again";
  EXPECT_EQ(Outcome(Ask("another")), nullptr);
}

TEST_F(Builds, ABuilderThatWasOnlyCutOffIsNotCounted) {
  const ReplyTo call = Ask("a");
  ASSERT_THAT(TakeBuilds("pool", 1), SizeIs(1));
  desk_.Wait(20 * kSecond);
  desk_.Sync(desk_.SyncOf("board"));
  desk_.Wait(11 * kSecond);  // 31 s after the builder's last word
  desk_.Hello("pool", 2, "", 0, "its host's", WorkerRole::kBuild);
  ASSERT_THAT(TakeBuilds("pool", 1), SizeIs(1));
  desk_.Hello("pool", 2, "restarted", 0, "its host's", WorkerRole::kBuild);
  EXPECT_FALSE(desk_.Answered(call));
  const auto third = TakeBuilds("restarted", 1);
  ASSERT_THAT(third, SizeIs(1));
  EXPECT_EQ(third[0].id().attempt(), 3u);
}

TEST_F(Builds, OneThatHangsIsTakenBackAndGivenUpInTheEnd) {
  const ReplyTo call = Ask("a");
  auto lent = TakeBuilds("pool", 1);
  ASSERT_THAT(lent, SizeIs(1));
  for (int i = 0; i < 16 && !desk_.Answered(call); ++i) {  // both go on calling
    desk_.Wait(5 * kSecond);
    desk_.Sync(desk_.SyncOf("board"));
    const auto more = TakeBuilds("pool", 1, lent);
    if (!more.empty()) lent = more;
  }
  ASSERT_NE(Outcome(call), nullptr);
  EXPECT_THAT(Outcome(call)->reply().error(), HasSubstr("2 builders were lost"));
}

TEST_F(Builds, WaitForABuilderAndNotForEver) {
  desk_.Do(CallGone{desk_.Sync(desk_.SyncOf("pool"))});
  const ReplyTo call = Ask("a");
  for (int i = 0; i < 25; ++i) {
    desk_.Wait(10 * kSecond);
    desk_.Sync(desk_.SyncOf("board"));
  }
  ASSERT_NE(Outcome(call), nullptr);
  EXPECT_TRUE(Outcome(call)->infrastructure());
  EXPECT_THAT(Outcome(call)->reply().error(), HasSubstr("no worker built it within 240 s"));
}

TEST_F(Builds, WhoHangsUpHasNothingBuilt) {
  desk_.Do(CallGone{Ask("waits")});
  EXPECT_THAT(TakeBuilds("pool", 1), SizeIs(0));
  const ReplyTo call = Ask("lent");
  const auto lent = TakeBuilds("pool", 1);
  ASSERT_THAT(lent, SizeIs(1));
  v1::SyncRequest request = desk_.SyncOf("pool");
  *request.add_building() = lent[0].id();
  const ReplyTo sync = desk_.Sync(request);
  EXPECT_FALSE(desk_.Answered(sync));
  desk_.Do(CallGone{call});
  ASSERT_TRUE(desk_.Answered(sync)) << "it is told at once";
  EXPECT_TRUE(desk_.SyncReplyTo(sync).keep_builds().empty());
  EXPECT_TRUE(Report("pool", lent[0]));
  EXPECT_FALSE(desk_.Answered(call));
}

TEST_F(Builds, BuildersTakeTurns) {
  desk_.Hello("pool2", 2, "", 0, "its host's", WorkerRole::kBuild);
  const ReplyTo one = desk_.Sync(desk_.SyncOf("pool", 2)), two = desk_.Sync(desk_.SyncOf("pool2", 2));
  Ask("a");
  ASSERT_TRUE(desk_.Answered(one));
  ASSERT_EQ(desk_.SyncReplyTo(one).build_size(), 1);
  v1::SyncRequest request = desk_.SyncOf("pool", 1);
  *request.add_building() = desk_.SyncReplyTo(one).build(0).id();
  const ReplyTo more = desk_.Sync(request);
  Ask("b");
  EXPECT_FALSE(desk_.Answered(more));
  ASSERT_TRUE(desk_.Answered(two));
  EXPECT_EQ(desk_.SyncReplyTo(two).build(0).request().trace(), "b");
}

TEST_F(Builds, OnlyTheHolderSaysWhatWasBuilt) {
  const ReplyTo call = Ask("a");
  auto lent = TakeBuilds("pool", 1);
  ASSERT_THAT(lent, SizeIs(1));
  desk_.Hello("other", 2, "", 0, "its host's", WorkerRole::kBuild);
  v1::BuildLease guessed = lent[0];
  guessed.mutable_id()->set_secret("guessed");
  Report("other", guessed);
  EXPECT_FALSE(desk_.Answered(call));
  for (const v1::WorkerInfo& worker : desk_.dispatcher->Workers(kLocalTenant, desk_.now)) {
    EXPECT_EQ(worker.refused_reports(), worker.name() == "other") << worker.name();
    EXPECT_EQ(worker.role(), worker.name() == "board" ? "measure" : "build") << worker.name();
  }
  EXPECT_TRUE(Report("pool", lent[0]));
  EXPECT_EQ(ObjectOf(call), "object of a");
}

TEST_F(Builds, AreAskedForByThoseThatOnlyMeasureAndWithinBounds) {
  desk_.Hello("both");
  EXPECT_THAT(RefusalOf(Ask("a", "both")), HasSubstr("did not say that it only measures"));
  EXPECT_THAT(RefusalOf(Ask("a", "pool")), HasSubstr("did not say that it only measures"));
  EXPECT_THAT(RefusalOf(Ask("a", "nobody")), HasSubstr("say hello"));
  for (int i = 0; i < 64; ++i) EXPECT_FALSE(desk_.Answered(Ask(absl::StrCat("trace ", i))));
  EXPECT_THAT(RefusalOf(Ask("one more")), HasSubstr("waits for 64 builds (at most 64)"));
  EXPECT_EQ(desk_.dispatcher->Counts().builds_waiting, 64);
}

// It builds what it measures, and is not quiet.
TEST_F(Builds, AreLentToAWorkerThatMayNotMeasureNow) {
  desk_.Wait(4 * kSecond);  // the builder never called
  desk_.Hello("both");
  const uint64_t job = desk_.Submit({"conv2d_1"});
  const ReplyTo board = desk_.Sync(desk_.SyncOf("board", 1)), call = Ask("a");
  EXPECT_FALSE(desk_.Answered(board)) << "nobody builds";
  v1::SyncRequest noisy = desk_.SyncOf("both", 0);
  noisy.set_not_quiet(true);
  noisy.set_waiting_for("a quiet machine");
  noisy.set_build_credits(1);
  const ReplyTo both = desk_.Sync(noisy);
  ASSERT_TRUE(desk_.Answered(both));
  ASSERT_THAT(desk_.SyncReplyTo(both).build(), SizeIs(1));
  EXPECT_THAT(desk_.SyncReplyTo(both).want(), SizeIs(0)) << "what it would have to measure";
  ASSERT_TRUE(desk_.Answered(board));
  EXPECT_THAT(desk_.SyncReplyTo(board).want(), SizeIs(1)) << "somebody builds for it now";
  EXPECT_EQ(desk_.Job(job).hold_up(), v1::HOLD_UP_NONE);
  const v1::BuildLease lease = desk_.SyncReplyTo(both).build(0);
  const ReplyTo second = Ask("b");
  noisy.set_seq(desk_.SyncOf("both").seq());
  noisy.set_build_credits(0);
  *noisy.add_building() = lease.id();
  EXPECT_FALSE(desk_.Answered(desk_.Sync(noisy))) << "it has as many as it wants";
  EXPECT_TRUE(Report("both", lease)) << "and it is quiet again";
  EXPECT_EQ(ObjectOf(call), "object of a");
  EXPECT_FALSE(desk_.Answered(second));
  desk_.AnswerSearch({"t1", "t2"});
  EXPECT_THAT(desk_.Take("board", 5, {desk_.SyncReplyTo(board).want(0)}), SizeIs(0)) << "nobody builds any more";
  EXPECT_THAT(TakeBuilds("both", 5), SizeIs(0)) << "it measures";
  EXPECT_THAT(desk_.Take("both", 5), SizeIs(2));
}

TEST_F(Builds, OfALostWorkerThatCouldNotMeasureGoToOthers) {
  desk_.Hello("both");
  const ReplyTo call = Ask("a");
  v1::SyncRequest noisy = desk_.SyncOf("both");
  noisy.set_not_quiet(true);
  noisy.set_build_credits(1);
  EXPECT_THAT(desk_.SyncReplyTo(desk_.Sync(noisy)).build(), SizeIs(1));
  EXPECT_THAT(TakeBuilds("pool", 1), SizeIs(0));
  desk_.Hello("both", 2, "restarted");
  const auto again = TakeBuilds("pool", 1);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_TRUE(Report("pool", again[0]));
  EXPECT_EQ(ObjectOf(call), "object of a");
}

TEST_F(Builds, AreNotLentToWorkersThatOnlyMeasure) {
  Ask("a");
  v1::SyncRequest request = desk_.SyncOf("board");
  request.set_not_quiet(true);
  request.set_build_credits(5);
  EXPECT_FALSE(desk_.Answered(desk_.Sync(request)));
}

TEST(BuildBytes, OfRequestsAreBounded) {
  Desk desk({.max_build_bytes = 100});
  desk.Hello("board", 2, "", 0, "its host's", WorkerRole::kMeasure);
  v1::BuildCall call;
  call.set_session("board");
  call.mutable_request()->set_trace("short");
  desk.Do(AskBuild{1001, call});
  EXPECT_FALSE(desk.Answered(1001));
  call.mutable_request()->set_trace(std::string(80, 'x'));
  desk.Do(AskBuild{1002, call});
  ASSERT_TRUE(desk.Answered(1002));
  EXPECT_THAT(std::get<Refusal>(desk.replies.at(1002)).message, HasSubstr("bytes of requests (at most 100)"));
  desk.Do(CallGone{1001});
  desk.Do(AskBuild{1003, call});
  EXPECT_FALSE(desk.Answered(1003)) << "there is room again";
}

TEST_F(Builds, ARestartedDaemonIsAskedAgain) {
  Ask("a");
  auto lent = TakeBuilds("pool", 1);
  ASSERT_THAT(lent, SizeIs(1));
  desk_.Restart();
  EXPECT_THAT(RefusalOf(Ask("a")), HasSubstr("say hello"));
  SetUp();
  const ReplyTo call = Ask("a");
  ASSERT_THAT(TakeBuilds("pool", 1), SizeIs(1));
  EXPECT_EQ(lent[0].id().build(), 1u);
  Report("pool", lent[0]);  // of the earlier epoch, with the number that another build has now
  EXPECT_FALSE(desk_.Answered(call));
}

}  // namespace
}  // namespace hone
