#include "worker/agent/session/spool.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/agent/session/work_queue.h"

namespace hone {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

v1::TrialResult ResultOf(uint64_t trial, size_t object_bytes = 100) {
  v1::TrialResult result;
  result.mutable_id()->set_trial(trial);
  result.mutable_id()->set_attempt(2);
  result.mutable_id()->set_epoch(7);
  result.mutable_id()->set_secret("secret");
  result.mutable_outcome()->set_kind(v1::OUTCOME_OK);
  result.mutable_outcome()->set_object(std::string(object_bytes, 'o'));
  return result;
}

class SpoolTest : public ::testing::Test {
 protected:
  SpoolTest() {
    char name[] = "/tmp/hone_spool_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~SpoolTest() override { fs::remove_all(folder_); }
  std::unique_ptr<Spool> Open(int64_t most_bytes = 64 * kMiB) {
    absl::StatusOr<std::unique_ptr<Spool>> spool = Spool::Open(folder_ + "/spool", most_bytes);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return *std::move(spool);
  }
  std::string folder_;
};

TEST_F(SpoolTest, KeepsWhatWasNotRemoved) {
  std::string identity;
  {
    const std::unique_ptr<Spool> spool = Open();
    identity = spool->identity();
    EXPECT_EQ(identity.size(), 16u);
    for (const uint64_t trial : {1, 2, 3}) ASSERT_TRUE(spool->Add(ResultOf(trial)).ok());
    spool->Remove(ResultOf(2).id());
  }
  const std::unique_ptr<Spool> spool = Open();
  EXPECT_EQ(spool->identity(), identity) << "the daemon knows the worker by it";
  const std::vector<v1::TrialResult> found = spool->TakeFound();
  ASSERT_EQ(found.size(), 2u);
  for (const v1::TrialResult& result : found) {
    EXPECT_NE(result.id().trial(), 2u);
    EXPECT_EQ(result.SerializeAsString(), ResultOf(result.id().trial()).SerializeAsString());
  }
}

TEST_F(SpoolTest, LeavesDamagedAndHalfWrittenFilesOut) {
  { ASSERT_TRUE(Open()->Add(ResultOf(1)).ok()); }
  const std::string file = folder_ + "/spool/1-2-7.result";
  ASSERT_TRUE(fs::exists(file));
  fs::copy_file(file, folder_ + "/spool/9-2-7.result.tmp.44");  // the name a writer has before the rename
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_TRUE(Open()->TakeFound().empty());
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(fs::exists(folder_ + "/spool/9-2-7.result.tmp.44"));
}

TEST_F(SpoolTest, IsOneWorkersAlone) {
  const std::unique_ptr<Spool> first = Open();
  const auto second = Spool::Open(folder_ + "/spool", kMiB);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another worker"));
}

TEST_F(SpoolTest, IsBounded) {
  const std::unique_ptr<Spool> spool = Open(kMiB);
  for (uint64_t trial = 1; trial <= 20; ++trial) ASSERT_TRUE(spool->Add(ResultOf(trial, 100'000)).ok());
  EXPECT_TRUE(spool->full());
  EXPECT_EQ(spool->size(), 20u) << "no result is lost: those beyond the limit do without their objects";
  uintmax_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder_ + "/spool")) bytes += file.file_size();
  EXPECT_LT(bytes, static_cast<uintmax_t>(kMiB));
  for (uint64_t trial = 1; trial <= 20; ++trial) spool->Remove(ResultOf(trial).id());
  EXPECT_FALSE(spool->full());
}

TEST_F(SpoolTest, AFullOneAsksForNoWork) {
  const std::unique_ptr<Spool> spool = Open(kMiB);
  WorkQueue queue(spool.get());
  for (uint64_t trial = 1; trial <= 9; ++trial) ASSERT_TRUE(spool->Add(ResultOf(trial, 100'000)).ok());
  v1::SyncRequest request;
  queue.Describe(32, &request);
  EXPECT_EQ(request.credits(), 0u);
  EXPECT_THAT(request.waiting_for(), HasSubstr("9 results to be taken"));
}

// While it stands no file of this process grows beyond so many bytes, as on a disk that is full.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_;
};

TEST_F(SpoolTest, AFullDiskLosesNoResultAndKeepsNoHalfOne) {
  const std::unique_ptr<Spool> spool = Open();
  WorkQueue queue(spool.get());
  const auto finish = [&](uint64_t trial) {
    const v1::TrialResult result = ResultOf(trial, 100'000);
    v1::SyncReply reply;
    *reply.add_want()->mutable_id() = result.id();
    queue.Apply({}, reply);
    EXPECT_EQ(queue.Take(1).size(), 1u);
    queue.Finish(result.id(), result.outcome());
  };
  const auto files = [&] {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(folder_ + "/spool")) names.push_back(file.path().filename());
    std::ranges::sort(names);
    return names;
  };
  {
    const FileLimit full(4096);
    finish(1);
    EXPECT_THAT(files(), ElementsAre("identity"));
  }
  finish(2);
  EXPECT_THAT(files(), ElementsAre("2-2-7.result", "identity")) << "there is room again";
  v1::SyncRequest request;
  queue.Describe(32, &request);
  EXPECT_EQ(request.results_size(), 2) << "the daemon is told both";
  v1::SyncReply reply;
  for (const v1::TrialResult& result : request.results()) *reply.add_acked() = result.id();
  queue.Apply(request, reply);
  EXPECT_FALSE(queue.HasWork());
  EXPECT_THAT(files(), ElementsAre("identity"));
}

TEST_F(SpoolTest, AQueueOffersWhatItFindsUntilItIsAcknowledged) {
  { ASSERT_TRUE(Open()->Add(ResultOf(1)).ok()); }
  {
    const std::unique_ptr<Spool> spool = Open();
    WorkQueue queue(spool.get());
    v1::SyncRequest request;
    queue.Describe(32, &request);
    ASSERT_EQ(request.results_size(), 1);
    EXPECT_EQ(request.results(0).id().secret(), "secret") << "by which the daemon believes it";
    v1::SyncReply forged;
    *forged.add_acked() = request.results(0).id();
    forged.mutable_acked(0)->set_secret("guessed");
    queue.Apply(request, forged);
    EXPECT_EQ(spool->size(), 1u) << "another's report was acknowledged";
    v1::SyncReply reply;
    *reply.add_acked() = request.results(0).id();
    queue.Apply(request, reply);
    EXPECT_FALSE(queue.HasWork());
  }
  EXPECT_TRUE(Open()->TakeFound().empty());
}

}  // namespace
}  // namespace hone
