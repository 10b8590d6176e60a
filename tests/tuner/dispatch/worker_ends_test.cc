// Workers that are drained or lost, and what they had. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

using ::testing::SizeIs;

TEST(Leases, ACandidateThatTwoWorkersWereLostWithIsQuarantined) {
  Desk desk;
  const uint64_t job = desk.Submit({"conv2d_1", "dense_2"});
  for (const std::string session : {"life 1", "life 2"}) {
    desk.Hello("a", 2, session);  // the same worker, restarted: its old session is over
    const auto leases = desk.Take(session, 2);
    ASSERT_THAT(leases, SizeIs(2));
    v1::SyncRequest request = desk.SyncOf(session);
    for (const v1::Lease& lease : leases) {
      v1::LeaseState& state = *request.add_held();
      *state.mutable_id() = lease.id();
      state.set_phase(lease.trace() == "conv2d_1 default" ? v1::PHASE_VERIFYING : v1::PHASE_QUEUED);
    }
    desk.Do(CallGone{desk.Sync(request)});  // the connection broke
  }
  desk.Hello("a", 2, "life 3");
  EXPECT_EQ(desk.Job(job).tasks(0).failed().at("crash"), 1);
  const auto leases = desk.Take("life 3", 2);
  ASSERT_THAT(leases, SizeIs(1)) << "the one that only waited is innocent";
  EXPECT_EQ(leases[0].trace(), "dense_2 default");
}

TEST(Leases, WorkThatDoesNotEndIsTakenBackAndWaitingForTheMachineIsNone) {
  Desk desk;
  desk.Hello("w");
  desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("w", 1);
  ASSERT_THAT(leases, SizeIs(1));
  const auto taken_back_after = [&](v1::Phase phase, int seconds) {
    for (int i = 0; i < seconds; i += 10) {
      v1::SyncRequest request = desk.SyncOf("w");
      v1::LeaseState& state = *request.add_held();
      *state.mutable_id() = leases[0].id();
      state.set_phase(phase);
      desk.Sync(request);
      desk.Wait(10 * kSecond);
    }
    return desk.dispatcher->counters().taken_back;
  };
  EXPECT_EQ(taken_back_after(v1::PHASE_VERIFYING, 200), 0);
  EXPECT_EQ(taken_back_after(v1::PHASE_VERIFIED, 900), 0) << "another measures";
  EXPECT_EQ(taken_back_after(v1::PHASE_MEASURING, 200), 0);
  EXPECT_EQ(taken_back_after(v1::PHASE_MEASURING, 200), 1);
}

TEST(Leases, ADrainingWorkerGetsNoMore) {
  Desk desk;
  desk.Hello("a");
  desk.Submit({"conv2d_1"});
  v1::SyncRequest request = desk.SyncOf("a", 4);
  request.set_draining(true);
  const ReplyTo told = desk.Sync(request);
  ASSERT_TRUE(desk.Answered(told)) << "at once: it holds nothing and may end";
  EXPECT_THAT(desk.SyncReplyTo(told).want(), SizeIs(0));
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].state(), "draining");
}

TEST(Workers, WithoutAnOpenCallAreShownAsLostAndMayComeBack) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("w", 4);
  ASSERT_THAT(leases, SizeIs(1));
  v1::SyncRequest holds = desk.SyncOf("w");
  *holds.add_held()->mutable_id() = leases[0].id();
  const ReplyTo open = desk.Sync(holds);
  ASSERT_FALSE(desk.Answered(open));
  desk.Wait(4 * kSecond);
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].state(), "busy") << "its call is open";
  desk.Do(CallGone{open});
  desk.Wait(2 * kSecond);
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].state(), "busy");
  desk.Wait(1 * kSecond);
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].state(), "lost");
  EXPECT_EQ(desk.Job(job).hold_up(), v1::HOLD_UP_NO_WORKER);
  EXPECT_EQ(desk.Job(job).held_up_by(), "no worker is connected: w was lost");
  EXPECT_TRUE(desk.Report("w", leases[0], Desk::Good(10))) << "its lease lasted on";
  EXPECT_EQ(desk.Job(job).hold_up(), v1::HOLD_UP_NONE);
}

TEST(Workers, ThatWereLostAreShownForAWhile) {
  Desk desk;
  desk.Hello("w");
  desk.Wait(40 * kSecond);
  ASSERT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now), SizeIs(1)) << "its session is over";
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].state(), "lost");
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].last_seen_seconds(), 40);
  desk.Hello("w", 2, "another session");
  ASSERT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now), SizeIs(1)) << "it is back";
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].state(), "idle");
  desk.Wait(3600 * kSecond);
  EXPECT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now), SizeIs(0));
}

TEST(Leases, AWorkerThatIsAskedToDrainIsToldAndLentNoMore) {
  Desk desk;
  desk.Hello("a");
  const ReplyTo held = desk.Sync(desk.SyncOf("a"));
  desk.Do(DrainWorkers{.to = 900, .name = "a"});
  EXPECT_EQ(std::get<v1::ListWorkersReply>(desk.replies.at(900)).workers(0).state(), "draining");
  ASSERT_TRUE(desk.Answered(held));
  EXPECT_TRUE(desk.SyncReplyTo(held).drain());
  desk.Submit({"conv2d_1"});
  const ReplyTo next = desk.Sync(desk.SyncOf("a", 4));
  EXPECT_FALSE(desk.Answered(next)) << "it has been told, and is lent nothing";
  EXPECT_EQ(desk.Job(1).hold_up(), v1::HOLD_UP_NO_WORKER);
  desk.Do(DrainWorkers{.to = 901, .name = "nobody"});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(901)).code, static_cast<int>(absl::StatusCode::kNotFound));
}

// A candidate is quarantined after two workers were lost over it; two that were cut off from the network are not lost.
TEST(Leases, ACandidateIsNotBlamedForALostNetwork) {
  for (const bool comes_back : {true, false}) {
    Desk desk;
    desk.Submit({"conv2d_1"});
    for (int life = 0; life < 2; ++life) {
      const std::string session = absl::StrCat("s", life);
      desk.Hello(absl::StrCat("w", life), 2, session);
      const auto leases = desk.Take(session, 1);
      ASSERT_THAT(leases, SizeIs(1)) << life;
      desk.Take(session, 0, leases, v1::PHASE_MEASURING);
      desk.Wait(41 * kSecond);
      EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now).back().state(), "lost");
      if (comes_back) desk.Hello(absl::StrCat("w", life), 2, session);
      if (comes_back) desk.Wait(60 * kSecond);  // idle, and away again
    }
    desk.Hello("last");
    EXPECT_EQ(desk.Take("last", 1).size(), comes_back ? 1u : 0u);
    EXPECT_EQ(desk.dispatcher->counters().workers_cut_off, comes_back ? 2 : 0);
  }
}

}  // namespace
}  // namespace hone
