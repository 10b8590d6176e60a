#include "worker/agent/work_queue.h"

#include "gtest/gtest.h"

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

TEST(WorkQueue, ALeaseThatIsNoLongerWantedIsDropped) {
  WorkQueue queue;
  queue.Apply({}, Wanting(1));
  v1::SyncRequest asked;
  queue.Describe(32, &asked);
  queue.Apply(asked, {});
  EXPECT_EQ(Held(queue), 0);
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
