// Workers and leases. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"
#include "tuner/dispatch/lost_names.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

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

TEST(Leases, AQuietWindowIsGranted) {
  Desk desk;
  desk.Hello("a");
  desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("a", 1);
  v1::SyncRequest request = desk.SyncOf("a");
  *request.add_held()->mutable_id() = leases[0].id();
  request.set_quiet_ms(60'000);
  desk.Sync(request);
  desk.Wait(80 * kSecond);
  EXPECT_FALSE(desk.SyncReplyTo(desk.Sync(desk.SyncOf("a"))).unknown_session());
}

// Timings are taken meanwhile: an answer, and what it makes the worker do, would be in them.
TEST(Leases, NothingIsSaidInAQuietWindow) {
  for (const bool ends_early : {false, true}) {
    Desk desk({.sync_hold_ms = 5'000, .confirm_first = false});
    desk.Hello("a");
    desk.Submit({"conv2d_1"});
    const auto leases = desk.Take("a", 1);
    v1::SyncRequest request = desk.SyncOf("a", 4);
    *request.add_held()->mutable_id() = leases[0].id();
    request.set_quiet_ms(20'000);
    const ReplyTo measuring = desk.Sync(request);
    desk.AnswerSearch({"t1"});
    desk.Wait(15 * kSecond);
    EXPECT_FALSE(desk.Answered(measuring)) << "neither with news nor when it was held for long";
    EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].state(), "busy");
    EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].leases(), 1) << "others may have what waits";
    if (ends_early) {
      request.set_seq(desk.SyncOf("a").seq());
      request.set_quiet_ms(0);
      const ReplyTo done = desk.Sync(request);
      EXPECT_TRUE(desk.Answered(measuring));
      ASSERT_TRUE(desk.Answered(done));
      EXPECT_EQ(desk.SyncReplyTo(done).want_size(), 1);
    } else {
      desk.Wait(5 * kSecond);
      ASSERT_TRUE(desk.Answered(measuring));
      EXPECT_LE(desk.SyncReplyTo(measuring).want_size(), 1);
      EXPECT_THAT(desk.Take("a", 4, leases), SizeIs(1)) << "what waited for it";
    }
  }
}

TEST(Leases, AQuietWindowHoldsUpADrainAndNotTheEnd) {
  Desk desk;
  desk.Hello("a");
  v1::SyncRequest request = desk.SyncOf("a");
  request.set_quiet_ms(20'000);
  const ReplyTo measuring = desk.Sync(request);
  desk.Do(DrainWorkers{.to = desk.NewCall(), .name = "a"});
  EXPECT_FALSE(desk.Answered(measuring));
  desk.Do(ShutDown{});
  EXPECT_TRUE(desk.Answered(measuring));
}

TEST(Leases, ALostAnswerIsSaidAgain) {
  Desk desk;
  desk.Hello("a");
  desk.Submit({"conv2d_1", "dense_2"});
  const auto lost = desk.Take("a", 2);
  const auto again = desk.Take("a", 2);
  ASSERT_THAT(again, SizeIs(2)) << "and no others beside them";
  EXPECT_EQ(again[0].id().trial(), lost[0].id().trial());
  EXPECT_EQ(again[0].id().attempt(), 1u);
}

TEST(Leases, ANewerSyncReleasesTheOlder) {
  Desk desk;
  desk.Hello("a");
  const v1::SyncRequest older = desk.SyncOf("a");
  const ReplyTo first = desk.Sync(older);
  EXPECT_FALSE(desk.Answered(first));
  const ReplyTo second = desk.Sync(desk.SyncOf("a"));
  EXPECT_TRUE(desk.Answered(first));
  EXPECT_FALSE(desk.Answered(second));
  EXPECT_TRUE(desk.Answered(desk.Sync(older))) << "one that arrives late is answered at once";
  EXPECT_FALSE(desk.Answered(second));
  desk.Wait(10 * kSecond);
  EXPECT_TRUE(desk.Answered(second)) << "no Sync is held longer than promised";
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

TEST(Leases, TwoLivingWorkersMayHaveOneName) {
  Desk desk;
  desk.Hello("a", 2, "one");
  desk.Sync(desk.SyncOf("one"));
  desk.Hello("a", 2, "two");
  desk.Sync(desk.SyncOf("two"));
  EXPECT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now), SizeIs(2));
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
  EXPECT_EQ(leases[0].id().secret().size(), 16u);
  for (const std::string& secret : {std::string(), std::string(16, 'x'), leases[0].id().secret().substr(0, 15)}) {
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

TEST(Workers, ANameIsNotTakenFromWhoLives) {
  Desk desk;
  desk.Hello("a", 2, "true");
  desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("true", 1);
  for (const char* key : {"", "a guess"}) {
    const ReplyTo refused = desk.Hello("a", 2, "false", 0, key);
    const Refusal* refusal = std::get_if<Refusal>(&desk.replies.at(refused));
    ASSERT_NE(refusal, nullptr) << key;
    EXPECT_EQ(refusal->code, static_cast<int>(absl::StatusCode::kAlreadyExists));
    EXPECT_THAT(refusal->message, testing::HasSubstr("another worker has the name a and was heard of 0 s ago"));
  }
  EXPECT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now), SizeIs(1));
  EXPECT_TRUE(desk.Report("true", leases[0], Desk::Good(7))) << "its leases stayed its own";
  desk.Hello("a", 2, "restarted");
  EXPECT_THAT(desk.dispatcher->Workers(kLocalTenant, desk.now), SizeIs(1)) << "who has the key takes its own name over";
  desk.Wait(31 * kSecond);
  EXPECT_TRUE(std::holds_alternative<v1::HelloReply>(desk.replies.at(desk.Hello("a", 2, "false", 0, "a guess"))))
      << "a lost worker's name is free for all of its principal";
}

TEST(Workers, ALostNameStaysItsPrincipals) {
  Desk desk;
  const auto may_be_a = [&](const std::string& principal, const std::string& name_key) {
    desk.principal = principal;
    const ReplyTo to = desk.Hello("a", 2, absl::StrCat("session ", desk.NewCall()), 0, name_key);
    return std::holds_alternative<v1::HelloReply>(desk.replies.at(to));
  };
  const Micros lost = Micros{DispatchOptions().lease_ms} * 1000 + kSecond;
  ASSERT_TRUE(may_be_a("its own", "its host's"));
  desk.Wait(lost);
  EXPECT_FALSE(may_be_a("somebody else", ""));
  EXPECT_FALSE(may_be_a("somebody else", "a guess"));
  EXPECT_TRUE(may_be_a("its own", "another host's"));
  desk.Wait(lost);
  EXPECT_TRUE(may_be_a("its own of tomorrow", "another host's")) << "a host whose token is a new one";
  desk.Wait(lost);
  EXPECT_FALSE(may_be_a("its own", "its host's"));
  desk.Wait(kLostNameStays - 2 * kSecond);
  EXPECT_FALSE(may_be_a("its own", "its host's"));
  desk.Wait(2 * kSecond);
  EXPECT_TRUE(may_be_a("its own", "its host's"));
}

TEST(Workers, OfAnotherVersionAreRefused) {
  Desk desk;
  v1::HelloRequest request;
  request.set_worker_name("w");
  request.set_session("s");
  request.mutable_profile()->set_device_class("fake/c2");
  request.mutable_version()->set_min(3);
  request.mutable_version()->set_max(4);
  desk.Do(Hello{1, request});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(1)).code, static_cast<int>(absl::StatusCode::kUnimplemented));
  request.clear_version();
  request.clear_session();
  desk.Do(Hello{2, request});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(2)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
}

// What a store could not index would end the daemon.
TEST(Names, ThatNoIndexTakesAreRefused) {
  Desk desk;
  v1::HelloRequest hello;
  hello.set_worker_name("w");
  hello.set_session("s");
  hello.mutable_profile()->set_device_class(std::string(kLongestName + 1, 'x'));
  desk.Do(Hello{1, hello});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(1)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
  hello.mutable_profile()->set_device_class("fake/c2");
  hello.set_worker_name("w\nx");  // what is stored of a worker has lines
  desk.Do(Hello{3, hello});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(3)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
  v1::KeepChoicesRequest choices;
  choices.set_model_hash(std::string(kLongestName + 1, 'x'));
  desk.Do(KeepChoices{2, choices});
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(2)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
}

// It is shown to others, beside what all workers say.
TEST(Workers, SayNoMoreThanAMessageHolds) {
  Desk desk;
  v1::HelloRequest hello;
  hello.set_worker_name("w");
  hello.set_session("s");
  hello.mutable_profile()->set_device_class("fake/c2");
  for (int i = 0; i < 1000; ++i) hello.add_missing_layers("a layer that nobody knows");
  const ReplyTo to = desk.NewCall();
  desk.Do(Hello{to, hello});
  EXPECT_THAT(std::get<Refusal>(desk.replies.at(to)).message, testing::HasSubstr("and 24576 are allowed"));
  desk.Hello("w");
  v1::SyncRequest request = desk.SyncOf("w");
  request.set_waiting_for(std::string(1023, 'w') + "\u20ac" + std::string(1 << 20, 'w'));
  desk.Sync(request);
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].waiting_for(), std::string(1023, 'w'));
}

TEST(ShuttingDown, TellsTheWorkers) {
  Desk desk;
  desk.Hello("w");
  const ReplyTo held = desk.Sync(desk.SyncOf("w"));
  desk.Do(ShutDown{});
  ASSERT_TRUE(desk.Answered(held));
  EXPECT_TRUE(desk.SyncReplyTo(held).shut_down());
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

// Its name is in what users are told of jobs that wait.
TEST(Sessions, HaveOneName) {
  Desk desk;
  desk.Hello("w", 2, "session");
  const ReplyTo renamed = desk.Hello("other", 2, "session");
  EXPECT_EQ(std::get<Refusal>(desk.replies.at(renamed)).code, static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(std::holds_alternative<v1::HelloReply>(desk.replies.at(desk.Hello("w", 4, "session"))));
  ASSERT_EQ(desk.dispatcher->Workers(kLocalTenant, 0).size(), 1u);
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, 0)[0].name(), "w");
}

}  // namespace
}  // namespace hone
