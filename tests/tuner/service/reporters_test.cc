// What is measured and built counts from whom it was lent to, and a record from whoever may speak of it.
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "database/sqlite/sqlite_store.h"
#include "database/store/record_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/service/access_fixture.h"
#include "tests/tuner/service/any_method.h"
#include "tests/tuner/service/fake_worker.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// A worker of a fleet, by its calls. It says that it is there, and what it is asked to say.
struct FleetCaller {
  FleetCaller(std::unique_ptr<DaemonClient> by, const std::string& name, v1::HelloRequest hello = {})
      : client(std::move(by)), session("session of " + name) {
    hello.set_worker_name(name);
    hello.set_session(session);
    hello.set_threads(2);
    hello.mutable_profile()->set_device_class("fake/c2");
    hello.mutable_profile()->set_target("cpu:fake");
    hello.mutable_profile()->set_cores(2);
    EXPECT_TRUE(CallMethod(*client, "/hone.v1.Fleet/Hello", hello).status.ok());
  }

  v1::SyncReply Sync(uint32_t credits, const std::vector<v1::TrialResult>& results,
                     const std::vector<v1::BuildResult>& built = {}) {
    v1::SyncRequest request;
    request.set_session(session);
    request.set_seq(++seq);
    request.set_credits(credits);
    for (const v1::TrialResult& result : results) *request.add_results() = result;
    for (const v1::BuildResult& result : built) *request.add_built() = result;
    return CallMethod(*client, "/hone.v1.Fleet/Sync", request).First<v1::SyncReply>();
  }

  std::unique_ptr<DaemonClient> client;
  std::string session;
  uint64_t seq = 0;
};

// Whose word a measurement is goes by the certificate, whatever the worker calls itself.
TEST_F(Access, AWorkersWordIsThatOfItsCertificate) {
  v1::HelloRequest hello;
  hello.set_worker_name("w");
  hello.set_session("session of w");
  hello.set_threads(2);
  hello.mutable_profile()->set_device_class("fake/c2");
  ASSERT_TRUE(CallMethod(*As("worker", "vision"), "/hone.v1.Fleet/Hello", hello).status.ok());
  const auto store = OpenSqliteStore(folder_ / "t.db", StoreMode::kRead);
  ASSERT_TRUE(store.ok()) << store.status();
  const absl::StatusOr<StoredState> state = (*store)->LoadState();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_THAT(state->device_classes, SizeIs(1));
  ASSERT_EQ(state->device_classes[0].profile.probes_size(), 1);
  EXPECT_EQ(state->device_classes[0].profile.probes(0).worker(), "certificate of vision, worker of vision\nw");
}

// Reports of a lease: of a worker of the tenant's own that guesses the secret, of another tenant's that has learnt it,
// and the true one said twice.
TEST_F(Access, LeasesAreReportedByTheirHoldersOnce) {
  const auto vision = As("client", "vision");
  const uint64_t job = CallMethod(*vision, "/hone.v1.Tune/Submit", Job("one", 2)).First<v1::SubmitReply>().job_id();
  FleetCaller holder(As("worker", "vision"), "holder"), guesser(As("worker", "vision"), "guesser"),
      stranger(As("worker", "speech"), "w");
  const v1::SyncReply lent = holder.Sync(1, {});
  ASSERT_EQ(lent.want_size(), 1);
  const auto report = [&](const std::string& secret, double us) {
    v1::TrialResult result;
    *result.mutable_id() = lent.want(0).id();
    result.mutable_id()->set_secret(secret);
    *result.mutable_outcome() = GoodOutcome(lent.want(0));
    result.mutable_outcome()->mutable_timing()->set_median_us(us);
    for (float& sample : *result.mutable_outcome()->mutable_timing()->mutable_samples_us()) {
      sample = static_cast<float>(us);
    }
    return result;
  };
  const auto trials = [&] {
    v1::GetJobRequest get;
    get.set_job_id(job);
    return CallMethod(*vision, "/hone.v1.Tune/GetJob", get).First<v1::JobSnapshot>().trials();
  };
  const std::string secret = lent.want(0).id().secret();
  const v1::SyncReply guessed = guesser.Sync(0, {report("0123456789abcdef", 1)});
  ASSERT_EQ(guessed.refused_size(), 1);
  EXPECT_EQ(guessed.refused(0).why(), v1::REPORT_REFUSAL_NOT_HOLDER);
  const v1::SyncReply strange = stranger.Sync(0, {report(secret, 1)});
  ASSERT_EQ(strange.refused_size(), 1);
  EXPECT_EQ(strange.refused(0).why(), v1::REPORT_REFUSAL_OVER) << "it is not told that there is such a lease";
  EXPECT_EQ(guessed.acked_size() + strange.acked_size(), 0);
  EXPECT_EQ(trials(), 0) << "a forged report counted";
  EXPECT_EQ(holder.Sync(0, {report(secret, 500)}).acked_size(), 1);
  EXPECT_EQ(trials(), 1);
  holder.Sync(0, {report(secret, 1)});
  EXPECT_EQ(trials(), 1) << "a replayed report counted";
  const v1::ListWorkersReply workers =
      CallMethod(*vision, "/hone.v1.Tune/ListWorkers", v1::ListWorkersRequest()).First<v1::ListWorkersReply>();
  ASSERT_EQ(workers.workers_size(), 2);
  EXPECT_EQ(workers.workers(1).refused_reports(), 1);
  v1::GetJobRequest get;
  get.set_job_id(job);
  EXPECT_NE(CallMethod(*vision, "/hone.v1.Tune/GetJob", get).First<v1::JobSnapshot>().tasks(0).best_us(), 1);
}

// A build is answered by who has it, once: neither by a guess, nor by what was said of another, nor by another
// tenant's.
TEST_F(Access, BuildsAreReportedByTheirHoldersOnce) {
  v1::HelloRequest measures, builds;
  measures.set_can_measure(true);
  builds.set_can_build(true);
  FleetCaller board(As("worker", "vision"), "board", measures), holder(As("worker", "vision"), "holder", builds);
  FleetCaller guesser(As("worker", "vision"), "guesser", builds), stranger(As("worker", "speech"), "stranger", builds);
  const auto ask = [&](const std::string& trace) {
    v1::BuildCall call;
    call.set_session(board.session);
    call.mutable_request()->set_trace(trace);
    call.set_limit_ms(20'000);
    return std::async(std::launch::async,
                      [&board, call] { return CallMethod(*board.client, "/hone.v1.Fleet/Build", call); });
  };
  const auto lend = [&] {
    v1::SyncReply lent;
    for (const absl::Time end = absl::Now() + absl::Seconds(20); lent.build().empty() && absl::Now() < end;) {
      lent = holder.Sync(1, {});
    }
    EXPECT_EQ(lent.build_size(), 1);
    return lent.build_size() == 1 ? lent.build(0).id() : v1::BuildId();
  };
  const auto result = [](v1::BuildId id, const std::string& secret, const std::string& object) {
    id.set_secret(secret);
    v1::BuildResult built;
    *built.mutable_id() = id;
    built.mutable_outcome()->mutable_reply()->set_object(object);
    return built;
  };
  const auto waits = [](std::future<Answer>& call) {
    return call.wait_for(std::chrono::milliseconds(300)) == std::future_status::timeout;
  };
  std::future<Answer> first = ask("first");
  const v1::BuildId lent = lend();
  guesser.Sync(0, {}, {result(lent, "0123456789abcdef", "forged")});
  EXPECT_TRUE(waits(first)) << "a guess was taken for an answer";
  stranger.Sync(0, {}, {result(lent, lent.secret(), "forged")});
  EXPECT_TRUE(waits(first)) << "another tenant's was, who has learnt the secret";
  holder.Sync(0, {}, {result(lent, lent.secret(), "true")});
  EXPECT_EQ(first.get().First<v1::BuildOutcome>().reply().object(), "true");

  std::future<Answer> second = ask("second");
  const v1::BuildId next = lend();
  EXPECT_NE(next.build(), lent.build());
  holder.Sync(0, {}, {result(lent, lent.secret(), "replayed")});
  v1::BuildId mixed = next;
  holder.Sync(0, {}, {result(mixed, lent.secret(), "replayed")});
  mixed.set_attempt(next.attempt() + 1);
  holder.Sync(0, {}, {result(mixed, next.secret(), "of no attempt")});
  mixed = next;
  mixed.set_epoch(next.epoch() - 1);
  holder.Sync(0, {}, {result(mixed, next.secret(), "of an earlier life")});
  EXPECT_TRUE(waits(second)) << "what was said of another lease was taken for an answer";
  holder.Sync(0, {}, {result(next, next.secret(), "true")});
  EXPECT_EQ(second.get().First<v1::BuildOutcome>().reply().object(), "true");

  const v1::ListWorkersReply workers =
      CallMethod(*As("viewer", "vision"), "/hone.v1.Tune/ListWorkers", v1::ListWorkersRequest())
          .First<v1::ListWorkersReply>();
  std::map<std::string, uint64_t> refused;
  for (const v1::WorkerInfo& worker : workers.workers()) refused[worker.name()] = worker.refused_reports();
  EXPECT_EQ(refused["guesser"], 1u);
  EXPECT_EQ(refused["holder"], 1u) << "with the secret of another build";
}

// Whether a record that was measured here still holds is no client's to say.
TEST_F(Access, WhatWasMeasuredIsNoClientsToDoubt) {
  const auto client = As("client", "vision"), admin = As("admin", "vision");
  const FakeWorker worker("w", honed_->address(), {"", Issue("ca", "worker", "vision")});
  const v1::SubmitRequest job = Job("one", 2);
  const uint64_t id = CallMethod(*client, "/hone.v1.Tune/Submit", job).First<v1::SubmitReply>().job_id();
  const auto last = client->Watch(id, absl::Milliseconds(50),
                                  [](const DaemonClient::Sight& sight) { return sight.silence < absl::Seconds(20); });
  ASSERT_TRUE(last.ok() && last->state() == v1::JOB_DONE) << last.status();
  v1::BestRecordsRequest best;
  best.add_keys()->set_workload_hash(job.tasks(0).workload().hash());
  best.mutable_keys(0)->set_device_class("fake/c2");
  best.mutable_keys(0)->set_threads(2);
  best.mutable_keys(0)->set_numeric(v1::NUMERIC_DEFAULT);
  const auto record = [&] {
    return CallMethod(*client, "/hone.v1.Tune/BestRecords", best).First<v1::BestRecordsReply>().answers(0).record();
  };
  ASSERT_EQ(record().origin(), "tuned");
  const auto doubt = [&](DaemonClient& caller) {
    v1::ExportChunk chunk;
    chunk.set_lines(ToJsonLine(CheckRecord{kLocalTenant, record().id(), "another generator", "other code"}) + "\n");
    const Answer answer = CallMethod(caller, "/hone.v1.Tune/ImportRecords", chunk);
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    return answer.First<v1::ImportReply>();
  };
  const v1::ImportReply refused = doubt(*client);
  ASSERT_EQ(refused.refused_size(), 1);
  EXPECT_THAT(refused.refused(0), HasSubstr("line 1: what another build makes of a record is an admin's to say"));
  EXPECT_EQ(record().origin(), "tuned");
  EXPECT_EQ(doubt(*As("admin", "speech")).refused_size(), 0);
  EXPECT_EQ(record().origin(), "tuned") << "it is another tenant's";
  EXPECT_EQ(doubt(*admin).refused_size(), 0);
  EXPECT_EQ(record().origin(), "stale");
}

}  // namespace
}  // namespace hone
