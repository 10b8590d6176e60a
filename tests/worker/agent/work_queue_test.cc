#include "worker/agent/session/work_queue.h"

#include <optional>

#include "absl/time/clock.h"
#include "compiler/support/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/support/keeps_from_ending.h"

namespace hone {
namespace {

v1::Lease LeaseOf(uint64_t trial) {
  v1::Lease lease;
  lease.mutable_id()->set_trial(trial);
  lease.mutable_id()->set_attempt(1);
  lease.set_workload_hash("w");
  return lease;
}

v1::SyncReply Wanting(uint64_t trial) {
  v1::SyncReply reply;
  *reply.add_want() = LeaseOf(trial);
  return reply;
}

int Held(WorkQueue& queue) {
  v1::SyncRequest request;
  queue.Describe(32, &request);
  return request.held_size();
}

// Two calls were out at once: each answer lends something, and the second knows nothing of the first.
TEST(WorkQueue, AnAnswerSaysNothingAboutLeasesThatCameWithAnother) {
  WorkQueue queue;
  v1::SyncRequest asked;
  queue.Describe(32, &asked);
  queue.Apply(asked, Wanting(1));
  queue.Apply(asked, Wanting(2));
  EXPECT_EQ(Held(queue), 2);
  EXPECT_EQ(queue.Take(16).size(), 2u);
}

TEST(WorkQueue, SaysWhatIsLeftOfKilledProcessesAndWorksOn) {
  WorkQueue queue;
  std::optional<ChildProcess> child = *ChildProcess::Start("/bin/sleep", {"600"}, {.namespaces = kAllNamespaces});
  KeepsFromEnding keeper(child->pid());
  if (!keeper.holds()) GTEST_SKIP() << "this machine lets nobody enter a pid namespace";
  v1::SyncRequest before, during, after;
  queue.Describe(32, &before);
  EXPECT_EQ(before.waiting_for(), "");
  child.reset();
  queue.Describe(32, &during);
  EXPECT_THAT(during.waiting_for(), ::testing::HasSubstr("1 of its processes that were killed to end"));
  EXPECT_EQ(during.credits(), 32u);
  keeper.LetGo();
  for (const absl::Time end = absl::Now() + absl::Seconds(20); !ChildProcess::Left().empty() && absl::Now() < end;) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  queue.Describe(32, &after);
  EXPECT_EQ(after.waiting_for(), "");
}

TEST(WorkQueue, ALeaseThatIsNoLongerWantedIsDropped) {
  WorkQueue queue;
  queue.Apply({}, Wanting(1));
  v1::SyncRequest asked;
  queue.Describe(32, &asked);
  queue.Apply(asked, {});
  EXPECT_EQ(Held(queue), 0);
}

// A session that looks at the same news again and again would be a busy one.
TEST(WorkQueue, NewsAreWaitedForOnce) {
  WorkQueue queue;
  queue.Poke();
  queue.WaitForNews(absl::InfiniteDuration());
  const absl::Time start = absl::Now();
  queue.WaitForNews(absl::Milliseconds(20));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(20));
}

// A message has 4 MiB at most: results with objects go in several, each until it is acknowledged.
TEST(WorkQueue, ResultsFitIntoMessages) {
  WorkQueue queue;
  v1::SyncReply lent;
  for (uint64_t trial = 1; trial <= 8; ++trial) *lent.add_want() = LeaseOf(trial);
  queue.Apply({}, lent);
  uint64_t large = 0;
  for (const v1::Lease& lease : queue.Take(16)) {
    v1::Outcome outcome;
    large = large == 0 ? lease.id().trial() : large;
    outcome.set_object(std::string(lease.id().trial() == large ? 5 << 20 : 1 << 20, 'x'));
    queue.Finish(lease.id(), outcome);
  }
  size_t results = 0, objects = 0;
  for (int calls = 0; results < 8 && calls < 8; ++calls) {
    v1::SyncRequest request;
    queue.Describe(32, &request);
    EXPECT_LT(request.ByteSizeLong(), size_t{4} << 20);
    v1::SyncReply reply;
    for (const v1::TrialResult& result : request.results()) {
      ++results;
      objects += result.outcome().object().empty() ? 0 : 1;
      *reply.add_acked() = result.id();
    }
    queue.Apply(request, reply);
  }
  EXPECT_EQ(results, 8u);
  EXPECT_EQ(objects, 7u) << "one is larger than a message, and its record does without";
}

TEST(WorkQueue, AResultIsOfferedUntilItIsAcknowledged) {
  WorkQueue queue;
  queue.Apply({}, Wanting(1));
  const std::vector<v1::Lease> batch = queue.Take(16);
  ASSERT_EQ(batch.size(), 1u);
  queue.Finish(batch[0].id(), {});
  for (int i = 0; i < 2; ++i) {
    v1::SyncRequest request;
    queue.Describe(32, &request);
    EXPECT_EQ(request.results_size(), 1);
    EXPECT_EQ(request.held_size(), 0);
  }
  v1::SyncReply reply;
  *reply.add_acked() = batch[0].id();
  queue.Apply({}, reply);
  v1::SyncRequest request;
  queue.Describe(32, &request);
  EXPECT_EQ(request.results_size(), 0);
}

// A worker tells one result of a lease. What the daemon says of a report with another secret is about somebody else's.
TEST(WorkQueue, AnAnswerIsForTheResultWithItsSecretAlone) {
  for (const bool acknowledged : {true, false}) {
    WorkQueue queue;
    v1::SyncReply lent = Wanting(1);
    lent.mutable_want(0)->mutable_id()->set_secret("true");
    queue.Apply({}, lent);
    queue.Finish(queue.Take(16)[0].id(), {});
    for (const char* secret : {"", "guessed", "true"}) {
      EXPECT_EQ(queue.results(), 1u);
      v1::SyncReply reply;
      v1::LeaseId& id = acknowledged ? *reply.add_acked() : *reply.add_refused()->mutable_id();
      id = lent.want(0).id();
      id.set_secret(secret);
      queue.Apply({}, reply);
    }
    EXPECT_EQ(queue.results(), 0u) << acknowledged;
  }
}

// What waits goes back when the machine is not fit to be measured on; what is under work is finished.
TEST(WorkQueue, GivesBackWhatNobodyWorksOn) {
  WorkQueue queue;
  queue.Apply({}, Wanting(1));
  ASSERT_EQ(queue.Take(16).size(), 1u);
  queue.Apply({}, Wanting(2));
  queue.SetLacks("its hours");
  v1::SyncRequest request;
  queue.Describe(32, &request);
  ASSERT_EQ(request.given_back_size(), 1);
  EXPECT_EQ(request.given_back(0).trial(), 2u);
  EXPECT_EQ(request.held_size(), 1);
  EXPECT_EQ(request.credits(), 0u);
  EXPECT_TRUE(request.not_quiet());
  EXPECT_EQ(request.waiting_for(), "its hours");
  queue.Apply(request, {});
  v1::SyncRequest next;
  queue.Describe(32, &next);
  EXPECT_EQ(next.given_back_size(), 0) << "the daemon has heard it";
  EXPECT_TRUE(queue.Take(16).empty());
  queue.SetLacks("");
  v1::SyncRequest again;
  queue.Describe(32, &again);
  EXPECT_EQ(again.credits(), 31u);
}

v1::SyncReply Building(uint64_t build) {
  v1::SyncReply reply;
  v1::BuildLease& lease = *reply.add_build();
  lease.mutable_id()->set_build(build);
  lease.mutable_id()->set_attempt(1);
  return reply;
}

TEST(WorkQueue, BuildsForOthersWhileItMayNotMeasure) {
  WorkQueue queue;
  const auto told = [&] {
    v1::SyncRequest request;
    queue.Describe(32, &request);
    return request;
  };
  queue.SetLacks("its hours");
  EXPECT_EQ(told().build_credits(), 0u) << "it was not offered";
  queue.OfferBuilds(2);
  EXPECT_EQ(told().build_credits(), 2u);
  EXPECT_EQ(told().credits(), 0u);
  queue.Apply(told(), Building(7));
  EXPECT_TRUE(queue.WaitForWork(absl::InfiniteDuration()));
  EXPECT_EQ(told().build_credits(), 1u);
  ASSERT_EQ(told().building_size(), 1);
  const std::vector<v1::BuildLease> leases = queue.TakeBuilds();
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_TRUE(queue.TakeBuilds().empty());
  queue.SetLacks("");
  EXPECT_EQ(told().build_credits(), 0u) << "it measures again";
  EXPECT_EQ(told().credits(), 32u);
  EXPECT_EQ(told().building_size(), 1) << "what is under work goes on";
  EXPECT_TRUE(queue.HasLeases());
  const uint64_t news = queue.finished();
  queue.FinishBuild(leases[0].id(), {});
  EXPECT_GT(queue.finished(), news);
  const v1::SyncRequest request = told();
  ASSERT_EQ(request.built_size(), 1);
  EXPECT_EQ(request.build_seconds(), 0) << "of no job of its own";
  EXPECT_TRUE(queue.HasWork());
  queue.Apply(request, {});
  EXPECT_FALSE(queue.HasWork()) << "nobody waits for it any more";
}

TEST(WorkQueue, ResultsAndBuildsFitIntoOneMessage) {
  WorkQueue queue;
  queue.Apply({}, Wanting(1));
  v1::Outcome outcome;
  outcome.set_object(std::string(2 << 20, 'x'));
  queue.Finish(queue.Take(1)[0].id(), outcome);
  queue.SetLacks("its hours");
  queue.OfferBuilds(1);
  queue.Apply({}, Building(7));
  v1::BuildOutcome built;
  built.mutable_reply()->set_object(std::string(2 << 20, 'x'));
  queue.FinishBuild(queue.TakeBuilds().at(0).id(), built);
  v1::SyncRequest first, second;
  queue.Describe(32, &first);
  EXPECT_EQ(first.results_size(), 1);
  EXPECT_EQ(first.built_size(), 0);
  ASSERT_EQ(first.building_size(), 1) << "until there is room, it is under work";
  v1::SyncReply reply;
  *reply.add_acked() = first.results(0).id();
  *reply.add_keep_builds() = first.building(0);
  queue.Apply(first, reply);
  queue.Describe(32, &second);
  EXPECT_EQ(second.built_size(), 1);
}

TEST(WorkQueue, AsksForQuietUntilAllIsMeasured) {
  WorkQueue queue;
  const auto quiet_ms = [&] {
    v1::SyncRequest request;
    queue.Describe(32, &request);
    return request.quiet_ms();
  };
  v1::SyncReply lent = Wanting(1);
  *lent.add_want() = LeaseOf(2);
  queue.Apply({}, lent);
  const std::vector<v1::Lease> batch = queue.Take(16);
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(quiet_ms(), 0u);
  for (const v1::Lease& lease : batch) queue.SetPhase(lease.id(), v1::PHASE_MEASURING);
  const uint64_t news = queue.finished();
  queue.QuietFor(absl::Hours(1));
  EXPECT_GT(queue.finished(), news) << "it is told at once";
  EXPECT_GT(quiet_ms(), 3'000'000u);
  EXPECT_LE(quiet_ms(), 3'600'000u);
  queue.Finish(batch[0].id(), {});
  EXPECT_GT(quiet_ms(), 0u);
  queue.Finish(batch[1].id(), {});
  EXPECT_EQ(quiet_ms(), 0u);
  queue.QuietFor(absl::ZeroDuration());
  EXPECT_EQ(quiet_ms(), 0u) << "it took longer than was thought";
}

TEST(WorkQueue, AResultOfWhatWentBackIsNone) {
  WorkQueue queue;
  queue.Apply({}, Wanting(1));
  const std::vector<v1::Lease> batch = queue.Take(16);
  queue.GiveBack(/*all=*/true);
  EXPECT_TRUE(queue.gave_up());
  queue.Finish(batch[0].id(), {});
  v1::SyncRequest request;
  queue.Describe(32, &request);
  EXPECT_EQ(request.results_size(), 0);
  EXPECT_EQ(request.given_back_size(), 1);
}

// Of two tenants with the same workload, neither is in a race with what the other wrote.
TEST(WorkQueue, ABatchIsOfOneTask) {
  WorkQueue queue;
  v1::SyncReply lent;
  for (uint64_t trial = 1; trial <= 4; ++trial) {
    v1::Lease& lease = *lent.add_want();
    lease = LeaseOf(trial);
    lease.set_task(trial % 2);
  }
  queue.Apply({}, lent);
  const auto trials = [&] {
    std::vector<uint64_t> of_batch;
    for (const v1::Lease& lease : queue.Take(16)) of_batch.push_back(lease.id().trial());
    return of_batch;
  };
  EXPECT_THAT(trials(), ::testing::ElementsAre(1, 3));
  EXPECT_THAT(trials(), ::testing::ElementsAre(2, 4));
}

// A batch that only waits for the turn is not under work: a worker lost meanwhile says nothing about its candidates.
TEST(WorkQueue, LeasesAreUnderWorkWhenTheyAreTaken) {
  WorkQueue queue;
  queue.Apply({}, Wanting(1));
  ASSERT_TRUE(queue.WaitForWork(absl::Seconds(10)));
  v1::SyncRequest waiting;
  queue.Describe(32, &waiting);
  EXPECT_EQ(waiting.held(0).phase(), v1::PHASE_QUEUED);
  queue.Take(16);
  v1::SyncRequest working;
  queue.Describe(32, &working);
  EXPECT_EQ(working.held(0).phase(), v1::PHASE_BUILDING);
}

}  // namespace
}  // namespace hone
