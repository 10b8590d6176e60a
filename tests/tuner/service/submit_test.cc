// Jobs that are too large for one message: their requests come in pieces, whole or not at all, within a tenant's
// memory.
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/random.h"
#include "compiler/support/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/service/two_tenants.h"
#include "tuner/service/endpoints/submit_pieces.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

template <class Part>
void AddTask(const std::string& name, size_t bytes, Part* part) {
  v1::TaskSpec& task = *part->add_tasks();
  task.mutable_workload()->set_name(name);
  task.mutable_workload()->set_text(absl::StrCat(name, std::string(bytes, 'x')));
  task.mutable_workload()->set_hash(Sha256(task.workload().text()));
  task.set_weight(1);
  part->add_anchors(absl::StrCat("anchor of ", name));
}

// One that waits: no worker has as many threads.
v1::SubmitRequest Job(const std::string& id, int tasks, size_t bytes_of_task) {
  v1::SubmitRequest request;
  request.set_request_id(id);
  request.set_model_name("model of " + id);
  request.set_threads(99);
  request.set_numeric(v1::NUMERIC_DEFAULT);
  request.set_seed(7);
  for (int i = 0; i < tasks; ++i) AddTask(absl::StrCat("dense_", i), bytes_of_task, &request);
  return request;
}

v1::SubmitRequest Together(const std::vector<v1::SubmitRequest>& pieces) {
  v1::SubmitRequest whole;
  for (const v1::SubmitRequest& piece : pieces) EXPECT_TRUE(AppendPiece(piece, whole).ok());
  return whole;
}

// Of any sizes, so that pieces end within the tasks, the anchors and the parts.
TEST(SubmitPieces, AreTheRequestAgain) {
  Random random(11);
  size_t most = 0;
  for (int round = 0; round < 20; ++round) {
    v1::SubmitRequest request = Job(absl::StrCat("job ", round), 0, 0);
    const auto fill = [&](auto* part) {
      const uint64_t tasks = random.Below(12);
      for (uint64_t i = 0; i < tasks; ++i) AddTask(absl::StrCat("conv2d_", i), random.Below(3 * kMiB), part);
      for (uint64_t i = random.Below(4); i > 0; --i) part->add_anchors(std::string(random.Below(2 * kMiB), 'a'));
    };
    fill(&request);
    for (uint64_t i = random.Below(4); i > 0; --i) {
      v1::SubmitPart& part = *request.add_parts();
      part.set_target(absl::StrCat("cpu:kind", i));
      part.set_threads(static_cast<int>(i));
      fill(&part);
    }
    const auto pieces = SplitSubmit(request);
    ASSERT_TRUE(pieces.ok()) << pieces.status();
    for (size_t i = 0; i < pieces->size(); ++i) {
      EXPECT_LE((*pieces)[i].ByteSizeLong(), 4 * kMiB);
      EXPECT_EQ((*pieces)[i].more(), i + 1 < pieces->size());
    }
    EXPECT_TRUE(Together(*pieces).SerializeAsString() == request.SerializeAsString()) << "round " << round;
    most = std::max(most, pieces->size());
  }
  EXPECT_GT(most, 4u);
}

// So that it is what a client and a daemon of an earlier release say and understand.
TEST(SubmitPieces, AreOneWhereThatIsEnough) {
  const v1::SubmitRequest request = Job("one", 20, 100'000);
  const auto pieces = SplitSubmit(request);
  ASSERT_TRUE(pieces.ok() && pieces->size() == 1) << pieces.status();
  EXPECT_TRUE(pieces->front().SerializeAsString() == request.SerializeAsString());
}

TEST(SubmitPieces, NameWhatNoMessageCanHold) {
  v1::SubmitRequest request = Job("one", 3, 10);
  AddTask("conv2d_large", 5 * kMiB, &request);
  const absl::Status status = SplitSubmit(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("kernel conv2d_large takes 5242"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--tasks"));
}

TEST(SubmitPieces, GoOnWithPartsThatWereBegunAlone) {
  v1::SubmitRequest piece, whole;
  piece.add_parts()->set_continued(true);
  EXPECT_TRUE(absl::IsInvalidArgument(AppendPiece(piece, whole)));
}

class SubmitTest : public TwoTenants {
 protected:
  void Start(const std::vector<std::string>& more) {
    honed_ = TwoTenants::Start(more);
    vision_ = As(*honed_, "eyes-0123456789");
    speech_ = As(*honed_, "ears-0123456789");
    ASSERT_TRUE(honed_->ready() && vision_ != nullptr && speech_ != nullptr);
  }
  static absl::StatusOr<v1::SubmitReply> Submit(DaemonClient& client, const v1::SubmitRequest& request) {
    return client.Submit(request, absl::Seconds(60));
  }
  static v1::JobSnapshot GetJob(DaemonClient& client, uint64_t id) {
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::JobSnapshot job;
    const grpc::Status status = client.tune().GetJob(client.Context().get(), request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }
  int Jobs() {
    v1::ListJobsReply reply;
    EXPECT_TRUE(vision_->tune().ListJobs(vision_->Context().get(), {}, &reply).ok());
    return reply.jobs_size();
  }
  // Submits until there is room; other errors fail the test.
  void SubmitWhenThereIsRoom(const v1::SubmitRequest& request) {
    absl::StatusOr<v1::SubmitReply> reply = Submit(*vision_, request);
    for (const absl::Time end = absl::Now() + absl::Seconds(30); !reply.ok() && absl::Now() < end;) {
      ASSERT_TRUE(absl::IsUnavailable(reply.status())) << reply.status();
      reply = Submit(*vision_, request);
    }
    EXPECT_TRUE(reply.ok()) << reply.status();
  }

  std::unique_ptr<HonedProcess> honed_;
  std::unique_ptr<DaemonClient> vision_, speech_;
};

// A submission that the test sends message by message.
class OpenSubmit {
 public:
  OpenSubmit(DaemonClient& client, absl::Duration timeout)
      : context_(client.Context(timeout)), writer_(client.tune().Submit(context_.get(), &reply_)) {}
  ~OpenSubmit() {
    if (!finished_) Cancel();
  }
  bool Write(const v1::SubmitRequest& message) { return writer_->Write(message); }
  grpc::Status Finish() {
    finished_ = true;
    writer_->WritesDone();
    return writer_->Finish();
  }
  grpc::Status Cancel() {
    finished_ = true;
    context_->TryCancel();
    return writer_->Finish();
  }

 private:
  bool finished_ = false;
  std::unique_ptr<grpc::ClientContext> context_;
  v1::SubmitReply reply_;
  std::unique_ptr<grpc::ClientWriter<v1::SubmitRequest>> writer_;
};

// The first message of a request that says that another follows.
v1::SubmitRequest Beginning(const std::string& id, size_t bytes) {
  v1::SubmitRequest request = Job(id, 1, bytes);
  request.set_more(true);
  return request;
}

TEST_F(SubmitTest, AJobLargerThanAMessageArrivesWhole) {
  Start({});
  v1::SubmitRequest request = Job("large", 40, 300'000);
  v1::SubmitPart& part = *request.add_parts();
  part.set_target("cpu:other");
  part.set_threads(99);
  for (int i = 0; i < 20; ++i) AddTask(absl::StrCat("conv2d_", i), 300'000, &part);
  ASSERT_GT(request.ByteSizeLong(), 16 * kMiB);
  const auto reply = Submit(*vision_, request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  const v1::JobSnapshot job = GetJob(*vision_, reply->job_id());
  const auto expect_tasks = [](const v1::JobSnapshot& got, const auto& sent) {
    ASSERT_EQ(got.tasks_size(), sent.size());
    for (int i = 0; i < sent.size(); ++i) EXPECT_EQ(got.tasks(i).workload_hash(), sent[i].workload().hash()) << i;
  };
  EXPECT_EQ(job.model_name(), "model of large");
  expect_tasks(job, request.tasks());
  ASSERT_EQ(job.part_jobs_size(), 1);
  const v1::JobSnapshot other = GetJob(*vision_, job.part_jobs(0));
  EXPECT_EQ(other.target(), "cpu:other");
  expect_tasks(other, part.tasks());

  const auto again = Submit(*vision_, request);  // as after an answer that was lost
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->job_id(), reply->job_id());
  EXPECT_TRUE(again->existed());
  EXPECT_EQ(Jobs(), 2) << "it and its part";
}

TEST_F(SubmitTest, ACallThatEndsBeforeItsRequestMakesNoJob) {
  Start({});
  OpenSubmit closed(*vision_, absl::Seconds(60)), cut(*vision_, absl::Seconds(60)), late(*vision_, absl::Seconds(1));
  for (OpenSubmit* call : {&closed, &cut, &late}) ASSERT_TRUE(call->Write(Beginning("half", 1000)));
  const grpc::Status ended = closed.Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(ended.error_message(), HasSubstr("ended before the last message of its request"));
  EXPECT_EQ(cut.Cancel().error_code(), grpc::StatusCode::CANCELLED);
  while (late.Write(Beginning("half", 1000))) absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(late.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Jobs(), 0);
  const auto whole = Submit(*vision_, Job("half", 1, 1000));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_FALSE(whole->existed());
}

TEST_F(SubmitTest, AJobBeyondTheMemoryOfItsTenantIsRefused) {
  Start({"--max-request-bytes", "8M"});
  const auto reply = Submit(*vision_, Job("large", 40, 300'000));
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(reply.status().message()),
              HasSubstr("the job takes more than the 8388608 bytes that tenant vision may have (honed "
                        "--max-request-bytes); tune its kernels in parts with --tasks"));
  EXPECT_EQ(Jobs(), 0);
  EXPECT_TRUE(Submit(*vision_, Job("small", 20, 300'000)).ok());
}

// What is not whole yet counts, until its call is over.
TEST_F(SubmitTest, UnfinishedRequestsShareTheMemoryOfTheirTenant) {
  Start({"--max-request-bytes", "4M"});
  const v1::SubmitRequest two = Job("two", 2, kMiB);
  std::unique_ptr<OpenSubmit> begun;
  absl::Status refused;
  // Where the daemon reads the message of the first call later than the second call, the first is refused.
  for (const absl::Time end = absl::Now() + absl::Seconds(30); refused.ok() && absl::Now() < end;) {
    begun = std::make_unique<OpenSubmit>(*vision_, absl::Seconds(60));
    ASSERT_TRUE(begun->Write(Beginning("begun", 3 * kMiB)));
    refused = Submit(*vision_, two).status();
  }
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("jobs of tenant vision that are being submitted take 3"));
  EXPECT_TRUE(Submit(*speech_, two).ok()) << "another tenant's memory is its own";
  begun->Cancel();
  SubmitWhenThereIsRoom(Job("after the cut", 2, kMiB));

  OpenSubmit late(*vision_, absl::Seconds(1));
  ASSERT_TRUE(late.Write(Beginning("late", 3 * kMiB)));
  SubmitWhenThereIsRoom(Job("after the deadline", 2, kMiB));
  EXPECT_FALSE(late.Finish().ok());
}

TEST_F(SubmitTest, IsGivenUpWhenItsTokenLeavesTheFile) {
  Start({});
  OpenSubmit call(*vision_, absl::Seconds(60));
  ASSERT_TRUE(call.Write(Beginning("one", 10)));
  WriteTokens("client speech ears-0123456789\n");
  while (call.Write(Beginning("one", 10))) absl::SleepFor(absl::Milliseconds(50));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("the token is none of the daemon's"));
}

// A daemon that does not read: its connection is given up after ten seconds, and the caller does not wait as long.
TEST_F(SubmitTest, IsGivenUpWhenItsCallerSaysSo) {
  Start({});
  honed_->Signal(SIGSTOP);
  const absl::Time begin = absl::Now();
  int asked = 0;
  const auto reply = vision_->Submit(Job("large", 60, 300'000), absl::Seconds(60), [&asked] { return ++asked < 3; });
  const absl::Duration took = absl::Now() - begin;
  honed_->Signal(SIGCONT);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kCancelled) << reply.status();
  EXPECT_GE(asked, 3);
  EXPECT_LT(took, absl::Seconds(5));
}

}  // namespace
}  // namespace hone
