// What a caller or a tenant may take of the daemon: each limit holds, says so, and ends nothing.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "compiler/support/sanitized.h"
#include "compiler/support/sha256.h"
#include "database/sqlite/sqlite_store.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/database/rows_for_tests.h"
#include "tests/processes.h"
#include "tests/tuner/service/limits.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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
  const int64_t before = KiBOf(honed->pid(), "VmHWM");
  for (const std::string& expression : {std::string("(((a{1,255}){1,255}){1,255})"), std::string(1 << 20, '(')}) {
    const grpc::Status status = list(expression);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("the expression"));
  }
  EXPECT_LT(KiBOf(honed->pid(), "VmHWM") - before, 64 << 10);
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

}  // namespace
}  // namespace hone
