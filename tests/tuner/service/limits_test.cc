// What a caller, a tenant or a stranger may take of the daemon: each limit holds, says so, and ends nothing.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "compiler/support/sanitized.h"
#include "compiler/support/sha256.h"
#include "database/sqlite_store.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/database/rows_for_tests.h"
#include "tests/tuner/service/two_tenants.h"
#include "tuner/service/call_meter.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int64_t kSecond = 1'000'000;

TEST(CallMeter, FillsUpWithTime) {
  CallMeter meter({.calls_per_second = 10, .streams = 1});
  int admitted = 0;
  for (int i = 0; i < 100; ++i) admitted += meter.Charge("a", "t", kSecond).ok();
  EXPECT_EQ(admitted, 10);
  EXPECT_TRUE(meter.Charge("b", "t", kSecond).ok()) << "another caller's account";
  EXPECT_THAT(std::string(meter.Charge("a", "t", kSecond).message()), HasSubstr("a makes more than 10 calls a second"));
  for (int i = 0; i < 100; ++i) admitted += meter.Charge("a", "t", kSecond + kSecond / 2).ok();
  EXPECT_EQ(admitted, 15);
  for (int i = 0; i < 100; ++i) admitted += meter.Charge("a", "t", 1000 * kSecond).ok();
  EXPECT_EQ(admitted, 25) << "what is not used up is not saved for ever";
}

TEST(CallMeter, CountsStreamsThatAreOpen) {
  CallMeter meter({.calls_per_second = 10, .streams = 2});
  auto first = meter.OpenStream("a", "t", false), second = meter.OpenStream("a", "t", false);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(meter.OpenStream("a", "t", false).status()));
  EXPECT_TRUE(meter.OpenStream("b", "t", false).ok());
  auto copy = *first;
  first->reset();
  EXPECT_FALSE(meter.OpenStream("a", "t", false).ok()) << "a copy of it lives";
  copy.reset();
  EXPECT_TRUE(meter.OpenStream("a", "t", false).ok());
}

TEST(CallMeter, CountsTheThreadsThatStreamsHold) {
  CallMeter meter({.streams = 2, .streams_of_all = 4});
  auto first = meter.OpenStream("a", "t", true), second = meter.OpenStream("a", "t", true);
  auto owners = meter.OpenStream("", "t", true), others = meter.OpenStream("c", "u", true);
  ASSERT_TRUE(first.ok() && second.ok() && owners.ok() && others.ok());
  const absl::Status refused = meter.OpenStream("d", "v", true).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("all callers together have 4"));
  EXPECT_FALSE(meter.OpenStream("", "t", true).ok()) << "the owner's threads are the same";
  EXPECT_TRUE(meter.OpenStream("d", "v", false).ok()) << "it waits without a thread";
  second->reset();
  EXPECT_TRUE(meter.OpenStream("d", "v", true).ok());
}

// Each certificate more would be an allowance more.
TEST(CallMeter, CountsTheCallsOfAllCallersOfATenant) {
  CallMeter meter({.calls_per_second = 10, .tenant_multiple = 2});
  int admitted = 0;
  for (int caller = 0; caller < 10; ++caller) {
    for (int i = 0; i < 5; ++i) admitted += meter.Charge(absl::StrCat("caller ", caller), "vision", kSecond).ok();
  }
  EXPECT_EQ(admitted, 20);
  EXPECT_THAT(std::string(meter.Charge("one more", "vision", kSecond).message()),
              HasSubstr("tenant vision makes more than 20 calls a second"));
  EXPECT_TRUE(meter.Charge("ears", "speech", kSecond).ok()) << "another tenant's account";
  for (int i = 0; i < 1000; ++i) meter.Charge("loud", "speech", kSecond).IgnoreError();
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(meter.Charge("ears", "speech", kSecond).ok())
        << "what is refused the loud one costs its tenant nothing";
  }
}

TEST(CallMeter, CountsTheStreamsOfAllCallersOfATenant) {
  CallMeter meter({.streams = 1, .tenant_multiple = 3, .streams_of_all = 4});
  std::vector<std::shared_ptr<const void>> open;
  for (const char* caller : {"a", "b", "c"}) open.push_back(meter.OpenStream(caller, "vision", false).value());
  EXPECT_THAT(std::string(meter.OpenStream("d", "vision", false).status().message()),
              HasSubstr("tenant vision has 3 streams open"));
  EXPECT_TRUE(meter.OpenStream("", "vision", false).ok()) << "the owner's have no limit";
  open.pop_back();
  EXPECT_TRUE(meter.OpenStream("d", "vision", false).ok());
  open.clear();
  for (const char* caller : {"a", "b"}) open.push_back(meter.OpenStream(caller, "vision", true).value());
  EXPECT_THAT(std::string(meter.OpenStream("c", "vision", true).status().message()),
              HasSubstr("tenant vision has 2 submissions, listings, exports and imports open, half of those"));
  EXPECT_TRUE(meter.OpenStream("c", "vision", false).ok()) << "it waits without a thread";
  EXPECT_TRUE(meter.OpenStream("ears", "speech", true).ok());
}

v1::SubmitRequest Job(const std::string& id, int tasks) {
  v1::SubmitRequest request;
  request.set_request_id(id);
  request.set_threads(99);  // no worker has as many: the job waits
  request.set_numeric(v1::NUMERIC_DEFAULT);
  for (int i = 0; i < tasks; ++i) {
    v1::TaskSpec& task = *request.add_tasks();
    task.mutable_workload()->set_name(absl::StrCat("dense_", i));
    task.mutable_workload()->set_text(absl::StrCat("text of dense_", i));
    task.mutable_workload()->set_hash(Sha256(task.workload().text()));
    task.mutable_workload()->set_flop(1e6);
    task.set_weight(1);
  }
  return request;
}

grpc::Status Submit(DaemonClient& client, const v1::SubmitRequest& request, uint64_t* job = nullptr) {
  const absl::StatusOr<v1::SubmitReply> reply = client.Submit(request, absl::Seconds(60));
  if (job != nullptr) *job = reply.ok() ? reply->job_id() : 0;
  return ToGrpc(reply.status());
}

grpc::Status List(DaemonClient& client) {
  v1::ListJobsReply reply;
  return client.tune().ListJobs(client.Context().get(), {}, &reply);
}

class Limits : public TwoTenants {};

TEST_F(Limits, OfCallsOfOneToken) {
  const auto honed = Start({"--max-rate", "3"});
  const auto vision = As(*honed, "eyes-0123456789"), speech = As(*honed, "ears-0123456789");
  grpc::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = List(*vision);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("makes more than 3 calls a second (honed --max-rate)"));
  EXPECT_TRUE(List(*speech).ok()) << "another token's calls are its own";
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_TRUE(List(*vision).ok()) << "it has called less often";
}

// Many tokens of a tenant have together what the tenant has.
TEST_F(Limits, OfCallsOfAllTokensOfATenant) {
  WriteTokens("client vision eyes-0123456789\nclient vision nose-0123456789\nclient speech ears-0123456789\n");
  const auto honed = Start({"--max-rate", "3", "--tenant-multiple", "1"});
  const auto vision = As(*honed, "eyes-0123456789"), same = As(*honed, "nose-0123456789");
  grpc::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = List(*vision);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  for (int i = 0; i < 1000 && (i == 0 || status.ok()); ++i) status = List(*same);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("tenant vision makes more than 3 calls a second"));
  EXPECT_TRUE(List(*As(*honed, "ears-0123456789")).ok()) << "another tenant's calls are its own";
}

TEST_F(Limits, OfStreamsOfOneToken) {
  const auto honed = Start({"--max-streams", "2"});
  const auto vision = As(*honed, "eyes-0123456789"), speech = As(*honed, "ears-0123456789");
  v1::WatchRequest watch;
  watch.set_interval_ms(20);
  for (DaemonClient* client : {vision.get(), speech.get()}) {
    uint64_t job = 0;
    ASSERT_TRUE(Submit(*client, Job("one", 1), &job).ok());
    if (client == vision.get()) watch.set_job_id(job);
  }
  const auto first = vision->Context(), second = vision->Context(), third = vision->Context();
  v1::JobEvent event;
  const auto a = vision->tune().Watch(first.get(), watch), b = vision->tune().Watch(second.get(), watch);
  ASSERT_TRUE(a->Read(&event) && b->Read(&event));
  const auto c = vision->tune().Watch(third.get(), watch);
  EXPECT_FALSE(c->Read(&event));
  const grpc::Status refused = c->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("2 streams open (honed --max-streams)"));
  EXPECT_TRUE(List(*vision).ok()) << "other calls are not streams";
  const auto theirs = speech->Context();
  EXPECT_TRUE(speech->tune().ListRecords(theirs.get(), {})->Finish().ok());
  first->TryCancel();
  a->Finish();
  bool open = false;
  for (const absl::Time end = absl::Now() + absl::Seconds(30); !open && absl::Now() < end;) {
    const auto again = vision->Context();
    const auto d = vision->tune().Watch(again.get(), watch);
    open = d->Read(&event);
    again->TryCancel();
    d->Finish();
  }
  EXPECT_TRUE(open) << "one has ended";
}

TEST_F(Limits, AWatchEndsWhenItsTokenLeavesTheFile) {
  const auto honed = Start({});
  const auto vision = As(*honed, "eyes-0123456789"), speech = As(*honed, "ears-0123456789");
  v1::JobEvent event;
  std::vector<std::shared_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::JobEvent>>> watches;
  for (DaemonClient* client : {vision.get(), speech.get()}) {
    uint64_t job = 0;
    ASSERT_TRUE(Submit(*client, Job("waits", 1), &job).ok());
    v1::WatchRequest watch;
    watch.set_job_id(job);
    watch.set_interval_ms(20);
    contexts.push_back(client->Context(absl::Seconds(60)));
    watches.push_back(client->tune().Watch(contexts.back().get(), watch));
    ASSERT_TRUE(watches.back()->Read(&event)) << "it is open";
  }
  WriteTokens("client speech ears-0123456789\n");
  while (watches[0]->Read(&event)) EXPECT_EQ(event.snapshot().state(), v1::JOB_WAITING);
  const grpc::Status status = watches[0]->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("the token is none of the daemon's"));
  EXPECT_TRUE(watches[1]->Read(&event)) << "the other token is still there";
  contexts[1]->TryCancel();
  watches[1]->Finish();
}

TEST_F(Limits, OfJobsAndTheirKernels) {
  const auto honed = Start({"--max-jobs", "2", "--max-tasks", "5"});
  const auto vision = As(*honed, "eyes-0123456789"), speech = As(*honed, "ears-0123456789");
  const grpc::Status large = Submit(*vision, Job("large", 6));
  EXPECT_EQ(large.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(large.error_message(), HasSubstr("tenant vision would have 6 in work, and may have 5"));
  uint64_t job = 0;
  EXPECT_TRUE(Submit(*vision, Job("one", 3), &job).ok());
  EXPECT_EQ(Submit(*vision, Job("two", 3)).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Submit(*vision, Job("two", 2)).ok());
  const grpc::Status third = Submit(*vision, Job("three", 1));
  EXPECT_EQ(third.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(third.error_message(), HasSubstr("2 jobs of tenant vision wait or run"));
  EXPECT_TRUE(Submit(*vision, Job("two", 2)).ok()) << "a request that is known is no new job";
  EXPECT_TRUE(Submit(*speech, Job("three", 1)).ok()) << "another tenant's jobs are its own";
  v1::StopRequest stop;
  stop.set_job_id(job);
  v1::JobSnapshot snapshot;
  ASSERT_TRUE(vision->tune().Stop(vision->Context().get(), stop, &snapshot).ok());
  grpc::Status status = third;
  for (const absl::Time end = absl::Now() + absl::Seconds(30); !status.ok() && absl::Now() < end;) {
    status = Submit(*vision, Job("three", 1));
  }
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(Limits, OfAMessage) {
  const auto honed = Start({});
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  const auto channel = grpc::CreateCustomChannel(honed->address(), grpc::InsecureChannelCredentials(), arguments);
  const auto stub = v1::Tune::NewStub(channel);
  v1::SubmitRequest request = Job("one", 1);
  v1::SubmitReply reply;
  const auto submit = [&](size_t bytes) {
    request.set_plan(std::string(bytes, 'x'));
    const auto context = MakeContext({"eyes-0123456789", {}}, absl::Seconds(30));
    const auto writer = stub->Submit(context.get(), &reply);
    writer->WriteLast(request, grpc::WriteOptions());
    return writer->Finish().error_code();
  };
  EXPECT_EQ(submit(5 << 20), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(submit(3 << 20), grpc::StatusCode::OK);
}

TEST_F(Limits, OfTime) {
  const auto honed = Start({});
  grpc::ClientContext endless;
  endless.AddMetadata("authorization", "Bearer eyes-0123456789");
  v1::ListJobsReply reply;
  const grpc::Status status = As(*honed, "")->tune().ListJobs(&endless, {}, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("deadline"));

  const auto vision = As(*honed, "eyes-0123456789");
  const grpc::Status long_one = vision->tune().ListJobs(vision->Context(absl::Hours(2)).get(), {}, &reply);
  EXPECT_EQ(long_one.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(long_one.error_message(), HasSubstr("s away, and this call may have 600; make it again with a nearer"));
  EXPECT_TRUE(vision->tune().ListJobs(vision->Context(absl::Minutes(10)).get(), {}, &reply).ok());
  const auto records = vision->Context(absl::Hours(23));
  EXPECT_EQ(vision->tune().ListRecords(records.get(), {})->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const auto whole = vision->Context(absl::Hours(1));
  EXPECT_TRUE(vision->tune().ExportRecords(whole.get(), {})->Finish().ok()) << "a whole database";
}

v1::SubmitRequest Piece(const v1::SubmitRequest& job) {
  v1::SubmitRequest piece = job;
  piece.set_more(true);
  return piece;
}

TEST_F(Limits, OfSilence) {
  const auto honed = Start({"--max-silence", "1"});
  const auto vision = As(*honed, "eyes-0123456789");
  const auto is_of_silence = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("the caller sent or took nothing for 1s (honed --max-silence)"));
  };
  const absl::Time end = absl::Now() + absl::Seconds(50);  // before the deadline of the calls
  v1::SubmitReply reply;
  const auto nothing = vision->Context();
  is_of_silence(vision->tune().Submit(nothing.get(), &reply)->Finish());
  const auto begun = vision->Context();
  const auto half = vision->tune().Submit(begun.get(), &reply);
  ASSERT_TRUE(half->Write(Piece(Job("half", 1))));
  is_of_silence(half->Finish());
  v1::ImportReply imported;
  const auto import = vision->Context();
  is_of_silence(vision->tune().ImportRecords(import.get(), &imported)->Finish());
  EXPECT_LT(absl::Now(), end);

  const auto slow = vision->Context();
  const auto pieces = vision->tune().Submit(slow.get(), &reply);
  ASSERT_TRUE(pieces->Write(Piece(Job("slow", 1))));
  for (int i = 0; i < 8; ++i) {
    absl::SleepFor(absl::Milliseconds(250));
    v1::SubmitRequest piece;
    piece.set_more(i < 7);
    pieces->Write(piece);
  }
  const grpc::Status status = pieces->Finish();
  EXPECT_TRUE(status.ok()) << "it took two seconds, and was never silent for one: " << status.error_message();
}

// A channel with a connection of its own: channels to one address share theirs else, and its streams.
std::shared_ptr<grpc::Channel> OwnConnection(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

TEST_F(Limits, StreamsOfAllCallersLeaveThreadsForOtherCalls) {
  constexpr int kCallers = 4, kStreamsOfOne = 64;
  std::string tokens = "client vision eyes-0123456789\n";
  for (int i = 0; i < kCallers; ++i) absl::StrAppend(&tokens, "client c", i, " caller-0123456789-", i, "\n");
  WriteTokens(tokens);
  const auto honed = Start({});
  struct Open {
    std::unique_ptr<grpc::ClientContext> context;
    v1::SubmitReply reply;
    std::unique_ptr<grpc::ClientWriter<v1::SubmitRequest>> writer;
  };
  std::vector<Open> open(kCallers * kStreamsOfOne);
  std::vector<std::unique_ptr<v1::Tune::Stub>> stubs;
  for (size_t i = 0; i < open.size(); ++i) {
    const size_t caller = i / kStreamsOfOne;
    if (stubs.size() == caller) stubs.push_back(v1::Tune::NewStub(OwnConnection(honed->address())));
    open[i].context = MakeContext({absl::StrCat("caller-0123456789-", caller), {}}, absl::Seconds(60));
    open[i].writer = stubs[caller]->Submit(open[i].context.get(), &open[i].reply);
    open[i].writer->Write(Piece(Job("half", 1)));
  }
  absl::SleepFor(absl::Seconds(1));  // for those that are refused to be
  const auto stub = v1::Tune::NewStub(OwnConnection(honed->address()));
  for (int i = 0; i < 20; ++i) {
    const auto context = MakeContext({"eyes-0123456789", {}}, absl::Seconds(10));
    v1::ListJobsReply reply;
    const grpc::Status status = stub->ListJobs(context.get(), {}, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  const auto context = MakeContext({"eyes-0123456789", {}}, absl::Seconds(10));
  const grpc::Status stream = stub->ListRecords(context.get(), {})->Finish();
  EXPECT_EQ(stream.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(stream.error_message(), HasSubstr("all callers together have 128 submissions, listings"));
  for (Open& call : open) call.context->TryCancel();
  for (Open& call : open) call.writer->Finish();
  const auto again = MakeContext({"eyes-0123456789", {}}, absl::Seconds(10));
  EXPECT_TRUE(stub->ListJobs(again.get(), {}, std::make_unique<v1::ListJobsReply>().get()).ok());
}

// A port that nobody has now.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(name);
  HONE_CHECK(bind(fd, reinterpret_cast<const sockaddr*>(&name), length) == 0);
  HONE_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) == 0);
  close(fd);
  return ntohs(name.sin_port);
}

std::string MetricsAt(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string text;
  const std::string_view question = "GET /metrics HTTP/1.0\r\n\r\n";
  if (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 &&
      send(fd, question.data(), question.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(question.size())) {
    char bytes[4096];
    for (ssize_t got; (got = recv(fd, bytes, sizeof(bytes), 0)) > 0;) text.append(bytes, static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

// Hashing a job of 64 MiB takes long: others must not wait for the dispatcher meanwhile.
TEST_F(Limits, AJobThatIsRefusedNeverReachesTheDispatcher) {
  const int port = FreePort();
  const auto honed = Start({"--http", absl::StrCat("127.0.0.1:", port)});
  const auto vision = As(*honed, "eyes-0123456789");
  v1::SubmitRequest forged = Job("forged", 3);
  forged.mutable_tasks(2)->mutable_workload()->set_hash(Sha256("another text"));
  const grpc::Status status = Submit(*vision, forged);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("task 2 (dense_2): the hash is not that of the workload's text"));
  const std::string metrics = MetricsAt(port);
  EXPECT_THAT(metrics, HasSubstr("hone_event_seconds_count{event=\"start\"} 1"));
  EXPECT_THAT(metrics, Not(HasSubstr("event=\"submit\"")));
  ASSERT_TRUE(Submit(*vision, Job("true", 3)).ok());
  EXPECT_THAT(MetricsAt(port), HasSubstr("hone_event_seconds_count{event=\"submit\"} 1"));
}

TEST_F(Limits, TheTasksOfALargeJobComeInPages) {
  static constexpr int kTasks = 25'000;
  const auto honed = Start({"--max-tasks", "30000"});
  const auto vision = As(*honed, "eyes-0123456789");
  v1::SubmitRequest request = Job("large", kTasks);
  for (v1::TaskSpec& task : *request.mutable_tasks()) {
    task.mutable_workload()->mutable_name()->append(std::string(150, 'x'));
  }
  uint64_t job = 0;
  const grpc::Status submitted = Submit(*vision, request, &job);
  ASSERT_TRUE(submitted.ok()) << submitted.error_message();
  const absl::StatusOr<v1::JobSnapshot> whole = vision->GetJob(job);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->tasks_size(), kTasks);
  EXPECT_EQ(whole->next_task(), 0u);
  for (int i = 0; i < kTasks; ++i) ASSERT_THAT(whole->tasks(i).name(), StartsWith(absl::StrCat("dense_", i, "x")));

  const auto is_a_page = [](const v1::JobSnapshot& page) {
    EXPECT_GT(page.tasks_size(), kTasks / 2);
    EXPECT_LT(page.tasks_size(), kTasks);
    EXPECT_EQ(page.next_task(), page.tasks().rbegin()->task_id());
  };
  v1::WatchRequest watch;
  watch.set_job_id(job);
  const auto watching = vision->Context();
  const auto stream = vision->tune().Watch(watching.get(), watch);
  v1::JobEvent event;
  ASSERT_TRUE(stream->Read(&event));
  is_a_page(event.snapshot());
  watching->TryCancel();
  stream->Finish();
  v1::ExplainRequest explain;
  explain.set_job_id(job);
  v1::JobExplanation explanation;
  ASSERT_TRUE(vision->tune().Explain(vision->Context().get(), explain, &explanation).ok());
  is_a_page(explanation.job());
  v1::PauseRequest pause;
  pause.set_job_id(job);
  pause.set_paused(true);
  v1::JobSnapshot answer;
  ASSERT_TRUE(vision->tune().Pause(vision->Context().get(), pause, &answer).ok());
  is_a_page(answer);
  v1::StopRequest stop;
  stop.set_job_id(job);
  ASSERT_TRUE(vision->tune().Stop(vision->Context().get(), stop, &answer).ok());
  is_a_page(answer);
}

int64_t ResidentBytes(pid_t pid) {
  int64_t all = 0, resident = 0;
  std::ifstream(absl::StrCat("/proc/", pid, "/statm")) >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// The most that it ever took.
int64_t PeakResidentKiB(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib;
  }
  return 0;
}

// As it is written it stands for sixteen million letters, and a matcher that writes it out takes gigabytes.
TEST_F(Limits, OfAnExpression) {
  const auto honed = Start({});
  const rlimit memory{rlim_t{4} << 30, rlim_t{4} << 30};  // the machine's is not for a test to use up
  if (!kSanitized) { ASSERT_EQ(prlimit(honed->pid(), RLIMIT_AS, &memory, nullptr), 0); }
  const auto vision = As(*honed, "eyes-0123456789");
  const auto list = [&](const std::string& expression) {
    v1::ListRecordsRequest request;
    request.set_workload_regex(expression);
    const auto context = vision->Context(absl::Seconds(20));
    return vision->tune().ListRecords(context.get(), request)->Finish();
  };
  ASSERT_TRUE(list("conv|dense").ok());
  const int64_t before = PeakResidentKiB(honed->pid());
  for (const std::string& expression : {std::string("(((a{1,255}){1,255}){1,255})"), std::string(1 << 20, '(')}) {
    const grpc::Status status = list(expression);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("the expression"));
  }
  EXPECT_LT(PeakResidentKiB(honed->pid()) - before, 64 << 10);
}

// Eight of them are due 400 snapshots of half a megabyte a second.
TEST_F(Limits, WatchesThatNobodyReadsTakeNoMoreMemory) {
  const auto honed = Start({});
  const auto vision = As(*honed, "eyes-0123456789");
  v1::SubmitRequest request = Job("large", 2000);
  for (v1::TaskSpec& task : *request.mutable_tasks()) {
    task.mutable_workload()->mutable_name()->append(std::string(180, 'x'));
  }
  v1::WatchRequest watch;
  watch.set_interval_ms(20);
  uint64_t job = 0;
  ASSERT_TRUE(Submit(*vision, request, &job).ok());
  watch.set_job_id(job);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::JobEvent>>> streams;
  for (int i = 0; i < 8; ++i) {
    contexts.push_back(vision->Context());
    streams.push_back(vision->tune().Watch(contexts.back().get(), watch));
  }
  absl::SleepFor(absl::Seconds(1));
  const int64_t before = ResidentBytes(honed->pid());
  absl::SleepFor(absl::Seconds(4));
  const int64_t grown = ResidentBytes(honed->pid()) - before;
  EXPECT_LT(grown, 64 << 20) << "of 800 MB that were due";
  EXPECT_TRUE(List(*vision).ok());
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& stream : streams) stream->Finish();
}

// What does not fit into a message: many jobs, and a record with a large object.
TEST_F(Limits, LargeAnswersComeInPieces) {
  const TuningKey key = TestKey("conv2d_1");
  const auto import_into = [](DaemonClient& client, const std::vector<v1::ExportChunk>& chunks) {
    v1::ImportReply reply;
    const auto context = client.Context();
    const auto writer = client.tune().ImportRecords(context.get(), &reply);
    for (const v1::ExportChunk& chunk : chunks) writer->Write(chunk);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.records();
  };
  const auto export_from = [](DaemonClient& client) {
    std::vector<v1::ExportChunk> chunks;
    const auto context = client.Context();
    const auto reader = client.tune().ExportRecords(context.get(), {});
    for (v1::ExportChunk chunk; reader->Read(&chunk);) chunks.push_back(chunk);
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return chunks;
  };
  {
    const std::unique_ptr<TuningStore> store = *OpenSqliteStore(folder_ / "owner.db", StoreMode::kWrite);
    const uint64_t epoch = *store->BeginEpoch();
    std::vector<Write> writes = TestGround();
    writes.push_back(PutRecord{TestRecord(key, "large", 10, std::string(5 << 20, 'x'))});
    ASSERT_TRUE(store->Commit(epoch, writes).ok());
  }
  const HonedProcess owner({"--db", folder_ / "owner.db"});
  ASSERT_TRUE(owner.ready());
  const std::vector<v1::ExportChunk> chunks = export_from(*As(owner, ""));
  EXPECT_GE(chunks.size(), 6u);
  const auto honed = Start({});
  const auto vision = As(*honed, "eyes-0123456789");
  EXPECT_EQ(import_into(*vision, chunks), 1u);
  EXPECT_EQ(export_from(*vision).size(), chunks.size());

  std::set<uint64_t> made, listed;
  for (int i = 0; i < 12; ++i) {
    v1::SubmitRequest request = Job(absl::StrCat("job ", i), 1);
    request.set_model_name(std::string(150'000, 'm'));  // pages of a megabyte
    uint64_t job = 0;
    ASSERT_TRUE(Submit(*vision, request, &job).ok());
    made.insert(job);
  }
  int pages = 0;
  v1::ListJobsRequest page;
  do {
    v1::ListJobsReply reply;
    const grpc::Status status = vision->tune().ListJobs(vision->Context().get(), page, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
    for (const v1::JobSnapshot& job : reply.jobs()) EXPECT_TRUE(listed.insert(job.job_id()).second);
    page.set_after(reply.next());
    ++pages;
  } while (page.after() != 0);
  EXPECT_EQ(listed, made);
  EXPECT_GT(pages, 1);
}

TEST_F(Limits, TokensAreReadAgainWhenTheyChange) {
  const auto honed = Start({});
  const auto vision = As(*honed, "eyes-0123456789"), hearing = As(*honed, "nose-0123456789");
  ASSERT_EQ(List(*hearing).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  WriteTokens("client smell nose-0123456789\n");
  grpc::Status status;
  for (const absl::Time end = absl::Now() + absl::Seconds(30); absl::Now() < end;
       absl::SleepFor(absl::Milliseconds(50))) {
    if ((status = List(*hearing)).ok()) break;
  }
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(List(*vision).error_code(), grpc::StatusCode::PERMISSION_DENIED) << "its token is gone";
  WriteTokens("king smell crown\n");  // cannot serve: the tokens from before stay
  absl::SleepFor(absl::Seconds(2));
  EXPECT_TRUE(List(*hearing).ok());
}

TEST_F(Limits, HealthIsForEverybody) {
  const HonedProcess honed({"--db", folder_ / "owner.db"});
  ASSERT_TRUE(honed.ready());
  grpc::GenericStub stub(OpenChannel(honed.address(), {}));
  grpc::CompletionQueue queue;
  const grpc::Slice nothing("");  // of the service "": all of it
  const auto context = MakeContext({}, absl::Seconds(20));
  const auto call =
      stub.PrepareUnaryCall(context.get(), "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&nothing, 1), &queue);
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice slice;
  ASSERT_TRUE(reply.DumpToSingleSlice(&slice).ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(slice.begin()), slice.size()), "\x08\x01") << "SERVING";
}

// Connections that say nothing, from this machine's address 127.0.0.`from`.
class Idle {
 public:
  explicit Idle(const std::string& address, uint32_t from = 1) : from_(INADDR_LOOPBACK + from - 1) {
    const size_t colon = address.rfind(':');
    name_.sin_family = AF_INET;
    name_.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &name_.sin_addr);
  }
  ~Idle() {
    for (const int fd : open_) close(fd);
  }
  // False when the process may have no more descriptors, or the other end does not answer.
  bool Connect() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    open_.push_back(fd);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(from_);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) return false;
    return connect(fd, reinterpret_cast<const sockaddr*>(&name_), sizeof(name_)) == 0;
  }
  size_t size() const { return open_.size(); }
  // Those that the other end has closed.
  size_t closed() const {
    return static_cast<size_t>(std::ranges::count_if(open_, [](int fd) {
      char byte = 0;
      const ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno == ECONNRESET);
    }));
  }

 private:
  const uint32_t from_;
  sockaddr_in name_{};
  std::vector<int> open_;
};

// Waits until the other end has closed so many of theirs at once: those that it takes it closes after ten seconds, for
// they say nothing.
bool WaitForClosed(const std::vector<const Idle*>& peers, size_t count) {
  for (const absl::Time end = absl::Now() + absl::Seconds(5); absl::Now() < end;) {
    size_t closed = 0;
    for (const Idle* peer : peers) closed += peer->closed();
    if (closed >= count) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

TEST_F(Limits, IdleConnectionsDoNotStopTheService) {
  constexpr size_t kWanted = 5000, kOfAPeer = 1000, kOthers = 300;
  rlimit descriptors{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  if (descriptors.rlim_max < kWanted + kOthers) {
    GTEST_SKIP() << "a process may have " << descriptors.rlim_max << " descriptors here, and " << kWanted + kOthers
                 << " are needed (ulimit -Hn)";
  }
  descriptors.rlim_cur = descriptors.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
  const auto honed = Start({});
  const auto before = As(*honed, "eyes-0123456789");
  ASSERT_TRUE(List(*before).ok());
  std::vector<std::unique_ptr<Idle>> peers;
  for (size_t count = 0; count < kWanted; ++count) {
    if (count % kOfAPeer == 0) peers.push_back(std::make_unique<Idle>(honed->address(), 2 + peers.size()));
    ASSERT_TRUE(peers.back()->Connect()) << "after " << count;
  }
  EXPECT_TRUE(List(*before).ok());
  const auto after = As(*honed, "ears-0123456789");
  ASSERT_NE(after, nullptr);
  EXPECT_TRUE(Submit(*after, Job("one", 1)).ok());
}

// Whether the daemon takes one within that time.
bool NewConnection(const std::string& address, absl::Duration limit) {
  return OwnConnection(address)->WaitForConnected(absl::ToChronoTime(absl::Now() + limit));
}

// Beyond the limit connections are closed; those before go on, and others are taken when some have ended.
TEST_F(Limits, OfConnections) {
  const auto honed = Start({"--max-connections", "20"});
  const auto before = As(*honed, "eyes-0123456789");
  ASSERT_TRUE(List(*before).ok());
  {
    // None of them alone may have more than half.
    Idle first(honed->address()), second(honed->address(), 2), third(honed->address(), 3);
    while (first.size() < 20) ASSERT_TRUE(first.Connect() && second.Connect() && third.Connect());
    EXPECT_TRUE(WaitForClosed({&first, &second, &third}, 40));
    EXPECT_LT(first.closed() + second.closed() + third.closed(), 60u) << "some were below the limit";
    EXPECT_TRUE(List(*before).ok());
    EXPECT_FALSE(NewConnection(honed->address(), absl::Seconds(1)));
  }
  EXPECT_TRUE(NewConnection(honed->address(), absl::Seconds(60)));
}

// Who takes all that one address may have takes none of those of others.
TEST_F(Limits, OfConnectionsOfOnePeer) {
  const auto honed = Start({"--max-connections", "100", "--max-peer-connections", "10"});
  {
    Idle peer(honed->address(), 2), other(honed->address(), 3);
    while (peer.size() < 200) ASSERT_TRUE(peer.Connect()) << "after " << peer.size();
    EXPECT_TRUE(WaitForClosed({&peer}, 190)) << peer.closed();
    EXPECT_LT(peer.closed(), peer.size()) << "some were below the limit";
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(other.Connect());
    EXPECT_TRUE(List(*As(*honed, "eyes-0123456789")).ok());
    EXPECT_EQ(other.closed(), 0u);
  }
  bool taken = false;
  for (const absl::Time end = absl::Now() + absl::Seconds(60); !taken && absl::Now() < end;) {
    Idle again(honed->address(), 2);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(again.Connect());
    absl::SleepFor(absl::Milliseconds(300));
    taken = again.closed() == 0;
  }
  EXPECT_TRUE(taken) << "those before have ended";
}

TEST_F(Limits, OnePeerHasNoMoreThanHalfOfTheConnections) {
  const auto honed = Start({"--max-connections", "20"});
  Idle peer(honed->address(), 2);
  while (peer.size() < 40) ASSERT_TRUE(peer.Connect()) << "after " << peer.size();
  EXPECT_TRUE(WaitForClosed({&peer}, 30)) << peer.closed();
  EXPECT_TRUE(List(*As(*honed, "eyes-0123456789")).ok());
}

// Where descriptors run out the daemon turns connections away, and takes them again when others have ended.
TEST_F(Limits, RunningOutOfDescriptorsEndsNothing) {
  const auto honed = Start({});
  const auto before = As(*honed, "eyes-0123456789");
  ASSERT_TRUE(List(*before).ok());
  const rlimit few{200, 200};
  ASSERT_EQ(prlimit(honed->pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  {
    Idle idle(honed->address());
    while (idle.size() < 400) ASSERT_TRUE(idle.Connect()) << "after " << idle.size();
    EXPECT_TRUE(List(*before).ok());
    EXPECT_TRUE(WaitForClosed({&idle}, 300)) << "what is kept for other than connections is above 100 of 200";
    EXPECT_TRUE(Submit(*before, Job("one", 1)).ok()) << "the database has descriptors left";
  }
  const auto after = As(*honed, "ears-0123456789");
  ASSERT_NE(after, nullptr);
  EXPECT_TRUE(List(*after).ok());
  honed->Signal(SIGTERM);
  EXPECT_EQ(honed->Wait(), 0) << honed->Errors();
}

}  // namespace
}  // namespace hone
