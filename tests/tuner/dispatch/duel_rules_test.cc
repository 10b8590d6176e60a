// Champions and who challenges them. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

using testing::SizeIs;

// ---- champions ----

class Duels : public testing::Test {
 protected:
  // The champion took 10 us; a challenger says it takes 8.
  void SetUp() override {
    desk_.Hello("w");
    job_ = desk_.Submit({"conv2d_1"});
    auto leases = desk_.Take("w", 1);
    desk_.Report("w", leases[0], Desk::Good(10));
    desk_.AnswerSearch({"fast"});
    leases = desk_.Take("w", 1);
    desk_.Report("w", leases[0], Desk::Good(8));
    leases = desk_.Take("w", 4);
    ASSERT_THAT(leases, SizeIs(1));
    duel_ = leases[0];
  }
  double best() { return desk_.store.best().begin()->second.second; }

  Desk desk_;
  uint64_t job_ = 0;
  v1::Lease duel_;
};

TEST_F(Duels, AreLentWithBothTraces) {
  EXPECT_EQ(best(), 10) << "a lucky sample wins nothing";
  EXPECT_TRUE(duel_.duel());
  EXPECT_EQ(duel_.trace(), "fast");
  EXPECT_EQ(duel_.champion_trace(), "conv2d_1 default");
  EXPECT_EQ(duel_.champion_us(), 10);
}

TEST_F(Duels, TheRatioDecides) {
  v1::Outcome outcome = Desk::Good(8.4);
  outcome.set_duel_ratio(0.85);
  outcome.set_duel_ratio_high(0.9);
  desk_.Report("w", duel_, outcome);
  EXPECT_DOUBLE_EQ(best(), 8.5);
  EXPECT_EQ(desk_.Job(job_).trials(), 2) << "a duel is no trial";
  EXPECT_DOUBLE_EQ(desk_.Job(job_).tasks(0).best_us(), 8.5);
}

TEST_F(Duels, AWinnerWhoseRecordAQuotaTookHasOneAgain) {
  const uint64_t fast = RecordId(desk_.store.best().begin()->first, "fast");
  const Prune prune = *desk_.store.FirstToPrune(10);
  ASSERT_THAT(prune.records, testing::ElementsAre(fast));
  const Write write = prune;
  ASSERT_TRUE(desk_.store.Commit(1, {&write, 1}).ok());
  ASSERT_EQ(desk_.store.records().count(fast), 0u);
  v1::Outcome outcome = Desk::Good(8.4);
  outcome.set_duel_ratio(0.85);
  desk_.Report("w", duel_, outcome);
  ASSERT_EQ(desk_.store.best().begin()->second.first, fast);
  EXPECT_EQ(desk_.store.records().at(fast).record.median_us(), 8) << "what it took as a trial";
}

TEST_F(Duels, ARecordOfALockFileIsNotTakenByAQuota) {
  ASSERT_THAT(desk_.store.FirstToPrune(10)->records, SizeIs(1));
  v1::KeepChoicesRequest request;
  request.add_locked(RecordId(desk_.store.best().begin()->first, "fast"));
  desk_.Do(KeepChoices{desk_.NewCall(), request});
  EXPECT_THAT(desk_.store.FirstToPrune(10)->records, SizeIs(0));
}

TEST_F(Duels, AnUnsureOneChangesNothingAndIsNotFoughtTwice) {
  v1::Outcome outcome = Desk::Good(8.4);
  outcome.set_duel_ratio(0.97);
  outcome.set_duel_ratio_high(1.01);
  desk_.Report("w", duel_, outcome);
  EXPECT_EQ(best(), 10);
  EXPECT_THAT(desk_.Take("w", 4), SizeIs(0));
  desk_.Restart();
  desk_.Hello("w");
  EXPECT_THAT(desk_.Take("w", 4), SizeIs(0)) << "nor after a restart";
}

// Against the default a gain must be clear; against whatever replaced it, sure.
TEST_F(Duels, TheDefaultGivesWayToAClearGainAlone) {
  const auto duel = [&](const v1::Lease& lease, double ratio, double high) {
    v1::Outcome outcome = Desk::Good(8);
    outcome.set_duel_ratio(ratio);
    outcome.set_duel_ratio_high(high);
    desk_.Report("w", lease, outcome);
  };
  const auto challenge = [&](const std::string& trace, double us) {
    desk_.AnswerSearch({trace});
    desk_.Report("w", desk_.Take("w", 1).at(0), Desk::Good(us));
    return desk_.Take("w", 4).at(0);
  };
  duel(duel_, 0.975, 0.985);
  EXPECT_EQ(best(), 10);
  duel(challenge("faster", 7.9), 0.95, 0.97);
  EXPECT_DOUBLE_EQ(best(), 9.5);
  duel(challenge("a little faster", 7.8), 0.985, 0.995);
  EXPECT_DOUBLE_EQ(best(), 9.5 * 0.985);
}

// One that could not replace the default if its time holds would cost a duel in vain.
TEST_F(Duels, AreNotFoughtAgainstTheDefaultForLessThanReplacesIt) {
  const auto duels_of = [&](const std::string& trace, double us) {
    desk_.AnswerSearch({trace});
    desk_.Report("w", desk_.Take("w", 1).at(0), Desk::Good(us));
    return desk_.Take("w", 4);
  };
  desk_.Report("w", duel_, Desk::Bad(v1::OUTCOME_WRONG_RESULT));
  EXPECT_THAT(duels_of("a little faster", 9.85), SizeIs(0));
  const std::vector<v1::Lease> duel = duels_of("faster", 9.75);
  ASSERT_THAT(duel, SizeIs(1));
  v1::Outcome outcome = Desk::Good(9.7);
  outcome.set_duel_ratio(0.97);
  outcome.set_duel_ratio_high(0.975);
  desk_.Report("w", duel[0], outcome);
  ASSERT_DOUBLE_EQ(best(), 9.7);
  EXPECT_THAT(duels_of("and again", 9.6), SizeIs(1)) << "the best one is no default any more";
}

TEST_F(Duels, AJobOfFewTrialsDoesNotWaitForOneThatIsNotFought) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"}, 2);
  desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(10));
  desk.AnswerSearch({"a little faster"});
  desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(9.85));
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
}

TEST_F(Duels, ALostOneOrACrashChangesNothing) {
  desk_.Report("w", duel_, Desk::Bad(v1::OUTCOME_WRONG_RESULT));
  EXPECT_EQ(best(), 10);
  EXPECT_THAT(desk_.Take("w", 4), SizeIs(0));
}

TEST_F(Duels, AreFoughtBeforeAJobOfFewTrialsEnds) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"}, 2);
  auto leases = desk.Take("w", 1);
  desk.Report("w", leases[0], Desk::Good(10));
  desk.AnswerSearch({"fast"});
  leases = desk.Take("w", 1);
  desk.Report("w", leases[0], Desk::Good(8));
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_RUNNING);
  leases = desk.Take("w", 1);
  ASSERT_THAT(leases, SizeIs(1));
  v1::Outcome outcome = Desk::Good(8);
  outcome.set_duel_ratio(0.8);
  desk.Report("w", leases[0], outcome);
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
  EXPECT_EQ(desk.Job(job).tasks(0).best_us(), 8);
}

// ---- what is published ----

// On a machine where one time of many is lucky, every candidate may claim to be faster than the best.
TEST(LastDuels, AreFewOnceTheBudgetIsUsedUp) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"}, 0, /*max_seconds=*/1);
  desk.Report("w", desk.Take("w", 1)[0], Desk::Good(10));
  desk.AnswerSearch({"a", "b", "c", "d", "e", "f"});
  for (const v1::Lease& lease : desk.Take("w", 6)) desk.Report("w", lease, Desk::Good(8));
  v1::Outcome lost = Desk::Good(12);
  lost.set_duel_ratio(1.2);
  const auto fight = [&] {
    const std::vector<v1::Lease> duel = desk.Take("w", 1);
    if (!duel.empty()) desk.Report("w", duel[0], lost);
    return !duel.empty();
  };
  EXPECT_TRUE(fight()) << "which counts among none: the job goes on";
  desk.Wait(3 * kSecond / 2);
  int fought = 0;
  while (fight()) ++fought;
  EXPECT_EQ(fought, 3);
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
}

TEST(FirstResults, AreMeasuredAgainBeforeTheyAreTheBest) {
  Desk desk(DispatchOptions{});
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"});
  desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(3));
  EXPECT_TRUE(desk.store.best().empty()) << "one report is no proof";
  EXPECT_EQ(desk.store.records().size(), 1u);
  const v1::Lease confirmation = desk.Take("w", 1).at(0);
  EXPECT_TRUE(confirmation.duel()) << "in fresh processes";
  EXPECT_EQ(confirmation.trace(), "conv2d_1 default");
  EXPECT_EQ(confirmation.champion_trace(), "");
  desk.Report("w", confirmation, Desk::Good(10));
  EXPECT_TRUE(desk.store.best().empty()) << "one of the two is wrong";
  const v1::Lease again = desk.Take("w", 1).at(0);
  EXPECT_EQ(again.trace(), "conv2d_1 default");
  desk.Report("w", again, Desk::Good(10));
  EXPECT_EQ(desk.store.best().begin()->second.second, 10) << "the last time counts where it is another";
  EXPECT_EQ(desk.Job(job).tasks(0).default_us(), 10);
  EXPECT_EQ(desk.Job(job).tasks(0).best_us(), 10);
  EXPECT_EQ(desk.Job(job).trials(), 1);
}

// Whatever disturbed the machine, first or then, made the time longer.
TEST(FirstResults, AreTheLeastOfTheTimesThatAgree) {
  const std::vector<std::vector<double>> all = {{10, 12}, {12, 10}, {10, 20, 11}, {20, 10, 11}, {10, 20, 40}};
  const std::vector<double> best = {10, 10, 10, 11, 40};
  for (size_t i = 0; i < all.size(); ++i) {
    Desk desk(DispatchOptions{});
    desk.Hello("w");
    const uint64_t job = desk.Submit({"conv2d_1"});
    for (const double us : all[i]) {
      EXPECT_TRUE(desk.store.best().empty());
      desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(us));
    }
    ASSERT_FALSE(desk.store.best().empty()) << i;
    EXPECT_EQ(desk.store.best().begin()->second.second, best[i]);
    EXPECT_EQ(desk.Job(job).tasks(0).default_us(), best[i]);
  }
}

// Both times may have been taken while the machine was disturbed.
TEST(FirstResults, AreMeasuredOnceMoreWhereASiblingIsMuchFaster) {
  for (const bool siblings : {true, false}) {
    for (const double third : {11.0, 19.0}) {
      Desk desk(DispatchOptions{});
      if (siblings) desk.anchor_of = {{"conv2d_1", "conv2d"}, {"conv2d_2", "conv2d"}};
      desk.Hello("w");
      const uint64_t job = desk.Submit({"conv2d_1", "conv2d_2"});
      for (const double us : {10.0, 10.0, 20.0, 20.0}) desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(us));
      EXPECT_EQ(desk.Job(job).tasks(0).best_us(), 10);
      if (siblings) {
        EXPECT_EQ(desk.Job(job).tasks(1).best_us(), 0);
        desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(third));
      }
      EXPECT_EQ(desk.Job(job).tasks(1).best_us(), siblings ? third : 20);
    }
  }
}

TEST(FirstResults, ThatAreNotConfirmedGiveWayToTheNext) {
  Desk desk(DispatchOptions{});
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"}, 2);
  desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(3));
  desk.AnswerSearch({"slower"});
  desk.Report("w", desk.Take("w", 1).at(0), Desk::Bad(v1::OUTCOME_WRONG_RESULT));
  EXPECT_TRUE(desk.store.best().empty());
  desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(20));
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_RUNNING) << "its budget is spent, what it publishes is not yet known";
  const v1::Lease confirmation = desk.Take("w", 1).at(0);
  EXPECT_EQ(confirmation.trace(), "slower");
  desk.Report("w", confirmation, Desk::Good(21));
  EXPECT_EQ(desk.store.best().begin()->second.second, 20) << "which the second time bears out";
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
}

TEST(FirstResults, AreConfirmedByAnotherWorkerWhereThereIsOne) {
  Desk desk(DispatchOptions{});
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(3));
  EXPECT_THAT(desk.Take("a", 1), SizeIs(0));
  const auto confirmation = desk.Take("b", 1);
  ASSERT_THAT(confirmation, SizeIs(1));
  EXPECT_TRUE(confirmation[0].duel());
}

// Who measured it first is stored with the measurement. That worker may be the first one to come again.
TEST(FirstResults, AreConfirmedByAnotherWorkerAfterARestart) {
  for (const bool comes_first : {true, false}) {
    Desk desk(DispatchOptions{});
    desk.Hello("a");
    desk.Hello("b");
    desk.Submit({"conv2d_1"});
    desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(3));
    desk.Restart();
    if (!comes_first) desk.Hello("b");
    desk.Hello("a");
    EXPECT_THAT(desk.Take("a", 1), SizeIs(0)) << "it does not confirm itself";
    if (comes_first) desk.Hello("b");
    const auto confirmation = desk.Take("b", 1);
    ASSERT_THAT(confirmation, SizeIs(1));
    EXPECT_TRUE(confirmation[0].duel());
    desk.Report("b", confirmation[0], Desk::Good(10));
    EXPECT_EQ(desk.store.best().begin()->second.second, 10) << "of two workers the slower counts";
  }
}

TEST(FirstResults, DoNotWaitForWorkersThatDoNotComeAgain) {
  Desk desk(DispatchOptions{});
  desk.Hello("a");
  desk.Submit({"conv2d_1"});
  desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(3));
  desk.Restart();
  desk.Hello("a");
  EXPECT_THAT(desk.Take("a", 1), SizeIs(0));
  desk.Wait(Micros{DispatchOptions().lost_after_ms} * 1000);
  const auto confirmation = desk.Take("a", 1);
  ASSERT_THAT(confirmation, SizeIs(1));
  EXPECT_TRUE(confirmation[0].duel());
}

// The worker that had the confirmation is gone when its daemon comes back.
TEST(FirstResults, AreKeptFromWhoMeasuredThemWhenTheirConfirmationIsLost) {
  Desk desk(DispatchOptions{});
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(3));
  ASSERT_THAT(desk.Take("b", 1), SizeIs(1));
  desk.Restart();
  desk.Hello("a");
  desk.Hello("c");
  desk.Wait(Micros{DispatchOptions().lease_ms} * 1000);
  desk.Hello("a");
  desk.Hello("c");
  EXPECT_THAT(desk.Take("a", 1), SizeIs(0));
  EXPECT_THAT(desk.Take("c", 1), SizeIs(1));
}

TEST(FirstResults, OfTwoWorkersTheSlowerCounts) {
  for (const auto& [first, second] : {std::pair(7.0, 10.0), std::pair(10.0, 7.0)}) {
    Desk desk(DispatchOptions{});
    desk.Hello("a");
    desk.Hello("b");
    const uint64_t job = desk.Submit({"conv2d_1"});
    desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(first));
    desk.Report("b", desk.Take("b", 1).at(0), Desk::Good(second));
    EXPECT_EQ(desk.store.best().begin()->second.second, 10) << "one of the two may lie";
    EXPECT_EQ(desk.Job(job).tasks(0).default_us(), 10);
  }
}

// A liar with two names, and somebody else.
TEST(FirstResults, AreConfirmedByAnotherPrincipalWhereThereIsOne) {
  Desk desk(DispatchOptions{});
  desk.principal = "token of the liar";
  desk.Hello("a");
  desk.Hello("b");
  desk.principal = "token of another";
  desk.Hello("c");
  desk.Submit({"conv2d_1"});
  desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(3));
  EXPECT_THAT(desk.Take("b", 1), SizeIs(0)) << "the second word would be the liar's again";
  const auto confirmation = desk.Take("c", 1);
  ASSERT_THAT(confirmation, SizeIs(1));
  EXPECT_TRUE(confirmation[0].duel());
  desk.Report("c", confirmation[0], Desk::Good(10));
  EXPECT_EQ(desk.store.best().begin()->second.second, 10);
}

TEST(FirstResults, OfAFleetThatSharesATokenAreConfirmedByAnotherWorker) {
  Desk desk(DispatchOptions{});
  desk.principal = "token of the fleet";
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(3));
  EXPECT_THAT(desk.Take("a", 1), SizeIs(0));
  EXPECT_THAT(desk.Take("b", 1), SizeIs(1));
}

// Whose name it was is stored with the measurement. The liar comes back first, under its other name.
TEST(FirstResults, AreNotConfirmedByASecondNameAfterARestart) {
  for (const bool another_comes : {true, false}) {
    Desk desk(DispatchOptions{});
    desk.principal = "token of the liar";
    desk.Hello("a");
    desk.Submit({"conv2d_1"});
    desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(3));
    desk.Restart();
    desk.Hello("b");
    EXPECT_THAT(desk.Take("b", 1), SizeIs(0)) << "others may still come";
    if (another_comes) {
      desk.principal = "token of another";
      desk.Hello("c");
    }
    desk.Wait(Micros{DispatchOptions().lost_after_ms} * 1000);
    EXPECT_THAT(desk.Take("b", 1), SizeIs(another_comes ? 0 : 1));
    if (another_comes) { EXPECT_THAT(desk.Take("c", 1), SizeIs(1)); }
  }
}

TEST(FirstResults, DoNotWaitForAnotherWorkerForEver) {
  Desk desk(DispatchOptions{});
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(3));
  EXPECT_THAT(desk.Take("a", 1), SizeIs(0));
  desk.Wait(10 * kSecond);
  const auto confirmation = desk.Take("a", 1);
  ASSERT_THAT(confirmation, SizeIs(1));
  EXPECT_TRUE(confirmation[0].duel());
}

TEST(FirstResults, DoNotWaitForWorkersWhoseMachinesAreNotQuiet) {
  Desk desk(DispatchOptions{});
  desk.Hello("a");
  desk.Hello("b");
  desk.Submit({"conv2d_1"});
  v1::SyncRequest asleep = desk.SyncOf("b");
  asleep.set_not_quiet(true);
  asleep.set_waiting_for("its hours, 22:00 to 06:00");
  desk.Sync(asleep);
  desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(3));
  EXPECT_THAT(desk.Take("a", 1), SizeIs(1));
}

TEST(DuelsOfTwoWorkers, TheSlowerTimeOfTheWinnerCounts) {
  Desk desk(DispatchOptions{});
  desk.Hello("a");
  desk.Hello("b");
  const uint64_t job = desk.Submit({"conv2d_1"});
  desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(10));
  desk.Report("b", desk.Take("b", 1).at(0), Desk::Good(10));
  desk.AnswerSearch({"fast"});
  desk.Report("a", desk.Take("a", 1).at(0), Desk::Good(8));
  v1::Outcome outcome = Desk::Good(6);
  outcome.set_duel_ratio(0.6);
  outcome.set_duel_ratio_high(0.61);
  desk.Report("b", desk.Take("b", 1).at(0), outcome);
  EXPECT_EQ(desk.store.best().begin()->second.second, 8) << "one of the two may lie";
  EXPECT_EQ(desk.Job(job).tasks(0).default_us(), 10);
}

TEST_F(Duels, ARatioThatNothingElseSaysIsNotBelieved) {
  v1::Outcome outcome = Desk::Good(8);
  outcome.set_duel_ratio(0.3);  // recorded were 8 us and 10
  outcome.set_duel_ratio_high(0.31);
  desk_.Report("w", duel_, outcome);
  EXPECT_EQ(best(), 10);
}

TEST(Bests, AreNotBelowWhatTheDeviceCan) {
  Desk desk;
  desk.Hello("w", 2, "", /*gflops=*/100);  // 10 us at best; what is far below is no honest time
  desk.Submit({"conv2d_1"});
  desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(14));
  desk.AnswerSearch({"a"});
  desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(4.5));
  const v1::Lease duel = desk.Take("w", 1).at(0);
  ASSERT_TRUE(duel.duel());
  v1::Outcome outcome = Desk::Good(4.5);
  outcome.set_duel_ratio(0.17);  // 2.4 us
  outcome.set_duel_ratio_high(0.18);
  desk.Report("w", duel, outcome);
  EXPECT_EQ(desk.store.best().begin()->second.second, 14);
}

// Two workers agree on 100 gflops: half of what follows from them is more than machines that are busy together miss.
TEST(Bests, AreNotFarBelowWhatSeveralSayThatTheDeviceCan) {
  for (const auto& [others_gflops, kind] :
       {std::pair(90.0, v1::OUTCOME_INVALID_TIMING), std::pair(9.0, v1::OUTCOME_OK)}) {
    Desk desk;
    desk.Hello("w", 2, "", /*gflops=*/100);  // 10 us at best
    desk.Hello("other", 2, "", others_gflops);
    desk.Submit({"conv2d_1"});
    desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(4.5));
    EXPECT_EQ(desk.store.trials().begin()->second.kind, kind) << others_gflops;
  }
}

// A duel may be the first to bring the bytes of what it proves to be the best.
TEST(Objects, OfADuelsWinnerAreKept) {
  for (const std::string measured : {"its bytes", "what the builder of last year made"}) {
    Desk desk;
    desk.Hello("w");
    desk.Submit({"conv2d_1"});
    desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(10));
    desk.AnswerSearch({"fast"});
    v1::Outcome trial = Desk::Good(8);
    trial.set_object_digest(Sha256(measured));
    desk.Report("w", desk.Take("w", 1).at(0), trial);
    v1::Outcome duel = Desk::Good(8);
    duel.set_duel_ratio(0.8);
    duel.set_object("its bytes");
    duel.set_object_digest(Sha256(duel.object()));
    desk.Report("w", desk.Take("w", 1).at(0), duel);
    EXPECT_EQ(desk.store.best().begin()->second.second, 8);
    const RecordPage page = *desk.store.Records(kLocalTenant, {.with_objects = true});
    EXPECT_EQ(page.rows[1].record.trace(), "fast");
    EXPECT_EQ(page.rows[1].record.object(), measured == "its bytes" ? measured : "") << "only of the digest stated";
  }
}

TEST(Imports, AreClaimsUntilTheyAreMeasuredHere) {
  Desk desk(DispatchOptions{});
  desk.Hello("w");
  desk.Submit({"conv2d_1"}, 1);
  const TuningKey key{.workload_hash = Sha256("text of conv2d_1"), .device_class = "fake/c2", .threads = 2};
  desk.Report("w", desk.Take("w", 1).at(0), Desk::Bad(v1::OUTCOME_CRASH));
  desk.Do(StopJob{900, 1});
  RecordRow row{.key = key, .record = {}, .origin = "imported"};
  row.record.set_id(RecordId(key, "theirs"));
  row.record.set_trace("theirs");
  row.record.set_median_us(0.001);
  const std::vector<Write> writes = {PutRecord{row}, SetBest{key, row.record.id(), 0.001}};
  ASSERT_TRUE(desk.store.Commit(1, writes).ok());

  const uint64_t job = desk.Submit({"conv2d_1"});
  EXPECT_EQ(desk.Job(job).tasks(0).best_us(), 0) << "a claim is no champion";
  const v1::Lease first = desk.Take("w", 1).at(0);
  EXPECT_EQ(first.trace(), "theirs");
  EXPECT_FALSE(first.duel());
  desk.Report("w", first, Desk::Good(12));
  EXPECT_EQ(desk.store.records().at(row.record.id()).origin, "tuned");
  EXPECT_EQ(desk.store.records().at(row.record.id()).record.median_us(), 12);
  desk.Report("w", desk.Take("w", 1).at(0), Desk::Good(12.5));
  EXPECT_EQ(desk.store.best().at(key).second, 12);
}

TEST(Imports, OfAKeyInUseBecomeCandidates) {
  Desk desk;
  desk.Hello("w");
  desk.Submit({"conv2d_1"});
  auto leases = desk.Take("w", 1);
  desk.Report("w", leases[0], Desk::Good(10));
  const TuningKey key = desk.store.best().begin()->first;
  RecordRow row{.key = key, .record = {}, .origin = "imported"};
  row.record.set_id(RecordId(key, "theirs"));
  row.record.set_trace("theirs");
  row.record.set_median_us(4);
  desk.Do(ImportLines{500, {}, {PutRecord{row}, SetBest{key, row.record.id(), 4}}});
  EXPECT_TRUE(desk.Answered(500));
  EXPECT_EQ(desk.store.best().begin()->second.second, 10);
  leases = desk.Take("w", 1);
  ASSERT_THAT(leases, SizeIs(1));
  EXPECT_FALSE(leases[0].duel()) << "nobody has measured it here";
  EXPECT_EQ(leases[0].trace(), "theirs");
}

}  // namespace
}  // namespace hone
