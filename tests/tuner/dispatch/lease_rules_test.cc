// Leases: who has them, and what becomes of those that end without a result. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

using ::testing::SizeIs;

TEST(Leases, ASilentWorkerLosesThemAndAnotherGetsThem) {
  Desk desk;
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  const auto first = desk.Take("a", 1);
  ASSERT_THAT(first, SizeIs(1));
  desk.Wait(20 * kSecond);
  desk.Take("b", 1);
  desk.Wait(11 * kSecond);  // 31 s after a's last word
  const auto second = desk.Take("b", 1);
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(second[0].id().trial(), first[0].id().trial());
  EXPECT_EQ(second[0].id().attempt(), 2u);
  EXPECT_TRUE(desk.SyncReplyTo(desk.Sync(desk.SyncOf("a"))).unknown_session());
  // a comes back with a late result: another attempt has taken its place.
  desk.Hello("a", 2, "a2");
  EXPECT_EQ(desk.Verdict("a2", first[0], Desk::Good(1)), v1::REPORT_REFUSAL_OVER);
  EXPECT_TRUE(desk.store.best().empty());
  EXPECT_TRUE(desk.Report("b", second[0], Desk::Good(7)));
  EXPECT_EQ(desk.store.best().begin()->second.second, 7);
}

TEST(Leases, ARestartedDaemonTakesThemUpAgain) {
  Desk desk;
  desk.Hello("a");
  desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("a", 1);
  desk.Restart();
  EXPECT_TRUE(desk.SyncReplyTo(desk.Sync(desk.SyncOf("a"))).unknown_session());
  desk.Hello("a");
  EXPECT_THAT(desk.Take("a", 4, leases, v1::PHASE_MEASURING), SizeIs(0));
  desk.Wait(20 * kSecond);
  EXPECT_TRUE(desk.Report("a", leases[0], Desk::Good(9)));
  EXPECT_EQ(desk.store.trials().at(leases[0].id().trial()).attempt, 1u) << "a restart is no attempt";
}

TEST(Leases, NobodyClaimsOneAfterARestart) {
  Desk desk;
  desk.Hello("a");
  desk.Submit({"conv2d_1"});
  desk.Take("a", 1);
  desk.Restart();
  desk.Hello("b");
  EXPECT_THAT(desk.Take("b", 1), SizeIs(0)) << "its worker may still come";
  desk.Wait(16 * kSecond);
  desk.Take("b", 1);
  desk.Wait(16 * kSecond);
  const auto leases = desk.Take("b", 1);
  ASSERT_THAT(leases, SizeIs(1));
  EXPECT_EQ(leases[0].id().attempt(), 2u);
}

TEST(Workers, ThatFailAtEverythingAreLentOneTrialAtATime) {
  Desk desk({.confirm_first = false});
  desk.Hello("a");
  desk.Submit({"conv2d_1"});
  std::vector<std::string> traces;
  for (int i = 0; i < 15; ++i) traces.push_back(absl::StrCat("t", i));
  desk.AnswerSearch(traces);
  const auto leases = desk.Take("a", 4);
  ASSERT_THAT(leases, SizeIs(4));
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(desk.Report("a", leases[i], Desk::Bad(v1::OUTCOME_INFRA)));
  EXPECT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].waiting_for(),
              testing::HasSubstr("the last 3 failed"));
  desk.Wait(2 * kSecond);
  EXPECT_THAT(desk.Take("a", 4, {leases[3]}), SizeIs(0)) << "it has one";
  ASSERT_TRUE(desk.Report("a", leases[3], Desk::Bad(v1::OUTCOME_INFRA)));
  EXPECT_THAT(desk.Take("a", 4), SizeIs(0)) << "it rests";
  const ReplyTo waits = desk.Sync(desk.SyncOf("a", 4));
  desk.Wait(1 * kSecond);
  EXPECT_FALSE(desk.Answered(waits));
  desk.Wait(1 * kSecond);
  ASSERT_TRUE(desk.Answered(waits)) << "the rest is over";
  const auto canary = desk.SyncReplyTo(waits).want();
  ASSERT_EQ(canary.size(), 1);
  ASSERT_TRUE(desk.Report("a", canary[0], Desk::Good(7)));
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].waiting_for(), "");
  EXPECT_THAT(desk.Take("a", 4), SizeIs(4)) << "it is well";
}

v1::SyncRequest GivingBack(Desk& desk, const std::string& session, const std::vector<v1::Lease>& leases) {
  v1::SyncRequest request = desk.SyncOf(session);
  for (const v1::Lease& lease : leases) *request.add_given_back() = lease.id();
  return request;
}

TEST(Leases, WhatIsGivenBackGoesToAnotherAtOnce) {
  Desk desk;
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  const auto first = desk.Take("a", 1);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_THAT(desk.Take("b", 1), SizeIs(0));
  desk.Sync(GivingBack(desk, "a", first));
  const auto second = desk.Take("b", 1);
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(second[0].id().trial(), first[0].id().trial());
  EXPECT_EQ(second[0].id().attempt(), 2u) << "a report of the first attempt counts no more";
}

TEST(Leases, NobodyGivesBackWhatIsAnothers) {
  Desk desk;
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  auto leases = desk.Take("a", 1);
  desk.Sync(GivingBack(desk, "b", leases));
  EXPECT_THAT(desk.Take("b", 1), SizeIs(0));
  leases[0].mutable_id()->set_secret("guessed");
  desk.Sync(GivingBack(desk, "a", leases));
  EXPECT_THAT(desk.Take("b", 1), SizeIs(0));
}

}  // namespace
}  // namespace hone
