// What one tenant gets of another by every method of every service: nothing.
#include <set>
#include <string>
#include <vector>

#include "compiler/support/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/service/access_fixture.h"
#include "tests/tuner/service/any_method.h"
#include "tests/tuner/service/fake_worker.h"

namespace hone {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// One tenant's jobs, workers, records and workloads are not there for another, whatever it asks and says.
TEST_F(Access, NothingOfAnotherTenantIsThere) {
  // What is vision's: a job that has ended with its records, one that waits, and a worker.
  const auto vision = As("admin", "vision");
  const FakeWorker worker("w", honed_->address(), {"", Issue("ca", "worker", "vision")});
  const uint64_t ended = CallMethod(*vision, "/hone.v1.Tune/Submit", Job("one", 2)).First<v1::SubmitReply>().job_id();
  const auto last = vision->Watch(ended, absl::Milliseconds(50),
                                  [](const DaemonClient::Sight& sight) { return sight.silence < absl::Seconds(20); });
  ASSERT_TRUE(last.ok() && last->state() == v1::JOB_DONE) << last.status();
  const v1::SubmitRequest waits = Job("two", 99);
  const uint64_t open = CallMethod(*vision, "/hone.v1.Tune/Submit", waits).First<v1::SubmitReply>().job_id();
  ASSERT_NE(open, 0u);
  v1::GetWorkloadRequest workload;
  workload.set_hash(waits.tasks(0).workload().hash());
  ASSERT_TRUE(CallMethod(*vision, "/hone.v1.Fleet/GetWorkload", workload).status.ok()) << "vision itself has it";
  const auto exported = [&] {
    return CallMethod(*vision, "/hone.v1.Tune/ExportRecords", v1::ExportRecordsRequest()).messages;
  };
  const std::vector<std::string> records = exported();
  ASSERT_THAT(records, SizeIs(1));

  const auto speech = As("admin", "speech");
  std::set<std::string> tried;
  const auto call = [&](const std::string& path, const google::protobuf::Message& request) {
    tried.insert(path);
    return CallMethod(*speech, path, request);
  };
  const auto is_not_there = [](const Answer& answer) {
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::NOT_FOUND) << answer.status.error_message();
    EXPECT_THAT(answer.messages, IsEmpty());
  };
  for (const uint64_t job : {ended, open}) {
    v1::WatchRequest watch;
    watch.set_job_id(job);
    is_not_there(call("/hone.v1.Tune/Watch", watch));
    v1::StopRequest stop;
    stop.set_job_id(job);
    is_not_there(call("/hone.v1.Tune/Stop", stop));
    v1::GetJobRequest get;
    get.set_job_id(job);
    is_not_there(call("/hone.v1.Tune/GetJob", get));
    v1::PauseRequest pause;
    pause.set_job_id(job);
    pause.set_paused(true);
    is_not_there(call("/hone.v1.Tune/Pause", pause));
    v1::ExplainRequest explain;
    explain.set_job_id(job);
    is_not_there(call("/hone.v1.Tune/Explain", explain));
  }
  const v1::ServiceStatus status = call("/hone.v1.Tune/Status", v1::StatusRequest()).First<v1::ServiceStatus>();
  EXPECT_EQ(status.jobs_size() + status.workers_size() + status.queued() + status.lent(), 0);
  v1::DrainWorkersRequest drain;
  drain.set_name("w");
  is_not_there(call("/hone.v1.Tune/DrainWorkers", drain));
  drain.set_name("*");
  EXPECT_EQ(call("/hone.v1.Tune/DrainWorkers", drain).First<v1::ListWorkersReply>().workers_size(), 0);
  EXPECT_EQ(call("/hone.v1.Tune/ListJobs", v1::ListJobsRequest()).First<v1::ListJobsReply>().jobs_size(), 0);
  EXPECT_EQ(call("/hone.v1.Tune/ListWorkers", v1::ListWorkersRequest()).First<v1::ListWorkersReply>().workers_size(),
            0);
  v1::BestRecordsRequest best;
  best.add_keys()->set_workload_hash(waits.tasks(0).workload().hash());
  best.mutable_keys(0)->set_device_class("fake/c2");
  best.mutable_keys(0)->set_threads(2);
  best.mutable_keys(0)->set_numeric(v1::NUMERIC_DEFAULT);
  EXPECT_TRUE(
      CallMethod(*vision, "/hone.v1.Tune/BestRecords", best).First<v1::BestRecordsReply>().answers(0).has_record());
  EXPECT_FALSE(call("/hone.v1.Tune/BestRecords", best).First<v1::BestRecordsReply>().answers(0).has_record());
  // A choice about a record of another tenant's changes nothing.
  best.mutable_keys(0)->set_model_hash("model");
  const auto found = [&] {
    return CallMethod(*vision, "/hone.v1.Tune/BestRecords", best).First<v1::BestRecordsReply>().answers(0);
  };
  v1::KeepChoicesRequest choices;
  choices.set_model_hash("model");
  choices.add_choices()->set_record(found().record().id());
  choices.mutable_choices(0)->set_faster_default("digest");
  EXPECT_TRUE(call("/hone.v1.Tune/KeepChoices", choices).status.ok());
  EXPECT_EQ(found().faster_default(), "");
  EXPECT_TRUE(CallMethod(*vision, "/hone.v1.Tune/KeepChoices", choices).status.ok());
  EXPECT_EQ(found().faster_default(), "digest") << "vision's own does";
  EXPECT_THAT(call("/hone.v1.Tune/ListRecords", v1::ListRecordsRequest()).messages, IsEmpty());
  EXPECT_THAT(call("/hone.v1.Tune/ExportRecords", v1::ExportRecordsRequest()).messages, IsEmpty());
  is_not_there(call("/hone.v1.Fleet/GetWorkload", workload));
  // A session is its tenant's, even for who has learnt it.
  v1::HelloRequest hello;
  hello.set_worker_name("w");
  hello.set_session(FakeWorker::LatestSession());
  hello.mutable_profile()->set_device_class("fake/c2");
  EXPECT_EQ(call("/hone.v1.Fleet/Hello", hello).status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  v1::SyncRequest sync;
  sync.set_session(FakeWorker::LatestSession());
  sync.set_seq(1'000'000);
  sync.set_credits(1);
  EXPECT_TRUE(call("/hone.v1.Fleet/Sync", sync).First<v1::SyncReply>().unknown_session());
  v1::BuildCall build;
  build.set_session(FakeWorker::LatestSession());
  is_not_there(call("/hone.v1.Fleet/Build", build));
  v1::BuiltChunk built;
  built.set_data("program");
  built.set_digest(Sha256("program"));
  built.set_total_bytes(7);
  v1::TakeBuiltRequest take;
  take.set_digest(built.digest());
  EXPECT_TRUE(CallMethod(*vision, "/hone.v1.Fleet/PutBuilt", built).status.ok());
  is_not_there(call("/hone.v1.Fleet/TakeBuilt", take));
  built.set_data("another");
  EXPECT_TRUE(call("/hone.v1.Fleet/PutBuilt", built).status.ok());
  EXPECT_EQ(CallMethod(*vision, "/hone.v1.Fleet/TakeBuilt", take).First<v1::BuiltChunk>().data(), "program")
      << "vision's own is what it was";
  // The same request is another job, the same records are a copy.
  const v1::SubmitReply submitted = call("/hone.v1.Tune/Submit", Job("one", 2)).First<v1::SubmitReply>();
  EXPECT_FALSE(submitted.existed());
  EXPECT_NE(submitted.job_id(), ended);
  v1::ExportChunk chunk;
  ASSERT_TRUE(chunk.ParseFromString(records[0]));
  EXPECT_TRUE(call("/hone.v1.Tune/ImportRecords", chunk).status.ok());
  EXPECT_EQ(exported(), records);

  for (const Method& method : AllMethods()) {
    EXPECT_EQ(tried.count(method.path()), 1u) << method.path() << ": say here what another tenant gets of it";
  }
}

}  // namespace
}  // namespace hone
