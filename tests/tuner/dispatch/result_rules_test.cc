// Reports of leases: from whom they count, until when, and what a failure means. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(Leases, ALateResultCountsUntilTheCandidateIsLentAgain) {
  Desk desk;
  desk.Hello("a");
  desk.Submit({"conv2d_1"});
  const auto first = desk.Take("a", 1);
  desk.Wait(31 * kSecond);
  desk.Hello("a", 2, "a2");
  EXPECT_TRUE(desk.Report("a2", first[0], Desk::Good(7)));
  EXPECT_EQ(desk.store.best().begin()->second.second, 7);
  EXPECT_THAT(desk.Take("a2", 1), SizeIs(0));
}

TEST(Leases, InfrastructureFailuresAreTriedAgainLaterAndNotForEver) {
  Desk desk;
  desk.Hello("a");
  const uint64_t job = desk.Submit({"conv2d_1"});
  desk.AnswerSearch({}, true);
  for (uint32_t attempt = 1; attempt <= 5; ++attempt) {
    const auto leases = desk.Take("a", 1);
    ASSERT_THAT(leases, SizeIs(1)) << attempt;
    EXPECT_EQ(leases[0].id().attempt(), attempt);
    EXPECT_TRUE(desk.Report("a", leases[0], Desk::Bad(v1::OUTCOME_INFRA)));
    EXPECT_THAT(desk.Take("a", 1), SizeIs(0)) << "not at once";
    desk.Wait((kSecond << (attempt - 1)) + 1);
  }
  EXPECT_EQ(desk.store.GetTasks(kLocalTenant, job)->at(0).failed.at("infra"), 1);
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_FAILED);
}

TEST(Leases, WhatAWorkerFailedAtIsTriedByAnother) {
  Desk desk;
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  const auto first = desk.Take("a", 1);
  ASSERT_THAT(first, SizeIs(1));
  ASSERT_TRUE(desk.Report("a", first[0], Desk::Bad(v1::OUTCOME_INFRA)));
  desk.Wait(2 * kSecond);
  EXPECT_THAT(desk.Take("a", 1), SizeIs(0));
  EXPECT_THAT(desk.Take("a", 0), SizeIs(0)) << "and it wants none from now on";
  const auto second = desk.Take("b", 1);
  ASSERT_THAT(second, SizeIs(1)) << "at once";
  ASSERT_TRUE(desk.Report("b", second[0], Desk::Bad(v1::OUTCOME_INFRA)));
  desk.Wait(13 * kSecond);
  EXPECT_THAT(desk.Take("b", 1), SizeIs(1)) << "the other had its time to take it";
}

// What measured a job's trials without being locked in by everything is seen in the job, and nothing a client says of
// it.
TEST(Leases, WhatASandboxLacksIsNotedInTheJob) {
  Desk desk;
  desk.missing_layers = {"landlock", "pid-namespace"};
  desk.Hello("bare");
  EXPECT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].missing_layers(),
              ElementsAre("landlock", "pid-namespace"));
  const uint64_t job = desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("bare", 1);
  ASSERT_THAT(leases, SizeIs(1));
  EXPECT_THAT(desk.Job(job).missing_layers(), SizeIs(0));
  EXPECT_TRUE(desk.Report("bare", leases[0], Desk::Good(1)));
  EXPECT_THAT(desk.Job(job).missing_layers(), ElementsAre("landlock", "pid-namespace"));
}

// The numbers of a lease can be guessed, its secret cannot: whoever does not show it changes nothing.
TEST(Leases, AreReportedByWhoHoldsThemAlone) {
  Desk desk;
  desk.Hello("a");
  desk.Hello("thief");
  const uint64_t job = desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("a", 1);
  ASSERT_THAT(leases, SizeIs(1));
  EXPECT_EQ(leases[0].id().secret().size(), 15u);
  for (const std::string& secret : {std::string(), std::string(15, 'x'), leases[0].id().secret().substr(0, 14)}) {
    v1::Lease stolen = leases[0];
    stolen.mutable_id()->set_secret(secret);
    EXPECT_EQ(desk.Verdict("thief", stolen, Desk::Good(1)), v1::REPORT_REFUSAL_NOT_HOLDER);
  }
  EXPECT_EQ(desk.Job(job).trials(), 0);
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[1].refused_reports(), 3);
  EXPECT_TRUE(desk.Report("a", leases[0], Desk::Good(7)));
  EXPECT_EQ(desk.store.best().begin()->second.second, 7);
}

// Also a report that comes in the holder's own session: what is said of it names the secret it showed, so that the true
// result is not taken for it, and the lease goes on.
TEST(Leases, AnAnswerToAForgedReportIsNoneToTheTrueOne) {
  Desk desk;
  desk.Hello("a");
  const uint64_t job = desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("a", 1);
  ASSERT_THAT(leases, SizeIs(1));
  v1::SyncRequest request = desk.SyncOf("a");
  for (const std::string& secret : {std::string("guessed"), leases[0].id().secret()}) {
    v1::TrialResult& result = *request.add_results();
    *result.mutable_id() = leases[0].id();
    result.mutable_id()->set_secret(secret);
    *result.mutable_outcome() = Desk::Good(secret == "guessed" ? 1 : 7);
  }
  const ReplyTo to = desk.Sync(request);
  ASSERT_TRUE(desk.Answered(to));
  std::vector<v1::LeaseId> acked(desk.SyncReplyTo(to).acked().begin(), desk.SyncReplyTo(to).acked().end());
  ASSERT_THAT(desk.SyncReplyTo(to).refused(), SizeIs(1));
  EXPECT_EQ(desk.SyncReplyTo(to).refused(0).id().secret(), "guessed");
  EXPECT_EQ(desk.SyncReplyTo(to).refused(0).why(), v1::REPORT_REFUSAL_NOT_HOLDER);
  if (acked.empty()) {  // it was not durable yet
    const v1::SyncReply next = desk.SyncReplyTo(desk.Sync(desk.SyncOf("a")));
    acked.assign(next.acked().begin(), next.acked().end());
  }
  ASSERT_THAT(acked, SizeIs(1));
  EXPECT_EQ(acked[0].secret(), leases[0].id().secret());
  EXPECT_EQ(desk.Job(job).trials(), 1);
  EXPECT_EQ(desk.store.best().begin()->second.second, 7);
}

// A worker that lost the secret of a lease it still holds is told so, and gets the lease anew: nobody else does.
TEST(Leases, WhoLostTheSecretIsLentTheLeaseAgain) {
  Desk desk;
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("a", 1);
  v1::Lease damaged = leases[0];
  damaged.mutable_id()->clear_secret();
  EXPECT_EQ(desk.Verdict("a", damaged, Desk::Good(7)), v1::REPORT_REFUSAL_NOT_HOLDER);
  EXPECT_THAT(desk.Take("b", 1), SizeIs(0)) << "the lease was not ended";
  const auto again = desk.Take("a", 1);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].SerializeAsString(), leases[0].SerializeAsString());
  EXPECT_TRUE(desk.Report("a", again[0], Desk::Good(7)));
}

// A result whose acknowledgement was lost, and one of a lease that there never was.
TEST(Leases, ThatAreOverAreRefusedAsSuch) {
  Desk desk;
  desk.Hello("a");
  desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("a", 1);
  v1::Lease invented = leases[0];
  invented.mutable_id()->set_attempt(9);
  EXPECT_EQ(desk.Verdict("a", invented, Desk::Good(1)), v1::REPORT_REFUSAL_OVER);
  EXPECT_TRUE(desk.Report("a", leases[0], Desk::Good(7)));
  EXPECT_EQ(desk.Verdict("a", leases[0], Desk::Good(1)), v1::REPORT_REFUSAL_OVER);
  EXPECT_EQ(desk.store.best().begin()->second.second, 7);
}

TEST(Leases, AreTakenUpAfterARestartByWhoHeldThemAlone) {
  Desk desk;
  desk.Hello("a");
  desk.Submit({"conv2d_1"});
  auto leases = desk.Take("a", 1);
  desk.Restart();
  desk.Hello("thief");
  auto stolen = leases;
  stolen[0].mutable_id()->clear_secret();
  desk.Take("thief", 0, stolen, v1::PHASE_MEASURING);
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].leases(), 0);
  desk.Hello("a");
  desk.Take("a", 0, leases, v1::PHASE_MEASURING);
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[1].leases(), 1);
  EXPECT_TRUE(desk.Report("a", leases[0], Desk::Good(9)));
  EXPECT_EQ(desk.store.best().begin()->second.second, 9);
}

TEST(Leases, HaveSecretsOfTheirOwn) {
  Desk desk({.lease_key = "what honed drew"}), other({.lease_key = "what another drew"});
  std::set<std::string> secrets;
  for (Desk* d : {&desk, &other}) {
    d->Hello("a");
    d->Submit({"conv2d_1", "dense_2"});
    for (const v1::Lease& lease : d->Take("a", 2)) secrets.insert(lease.id().secret());
  }
  EXPECT_THAT(secrets, SizeIs(4));
}

}  // namespace
}  // namespace hone
