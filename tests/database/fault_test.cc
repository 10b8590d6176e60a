// Disks that fail and machines that lose power, at every operation in turn: what was acknowledged is there, once, and
// what was not is there whole or not at all.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "database/sqlite/sqlite_store.h"
#include "gtest/gtest.h"
#include "tests/database/fault_vfs.h"
#include "tests/database/rows_for_tests.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr int kCommits = 8;

class PowerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hone_fault_XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/t.db";
    const auto store = OpenSqliteStore(path_, StoreMode::kWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Commit(*(*store)->BeginEpoch(), TestGround()).ok());
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A trial that ended, its measurement and its record: all of them or none.
  static std::vector<Write> Completion(int number) {
    const TuningKey key = TestKey("conv2d_1");
    const std::string trace = absl::StrCat("trace ", number);
    const auto id = static_cast<uint64_t>(number + 1);
    MeasurementRow measurement{.trial = id, .attempt = 1, .epoch = 1, .worker = "w", .outcome = {}};
    return {PutTrial{TestTrial(id, key, 1, trace, TrialState::kDone, v1::OUTCOME_OK, 1 + number)},
            AddMeasurement{measurement},
            PutRecord{TestRecord(key, trace, 1 + number, std::string(3000, static_cast<char>('a' + number)))}};
  }
  // `acknowledged` completions are there, perhaps one more, each once and whole.
  static void ExpectKept(const std::string& path, int acknowledged) {
    const auto store = OpenSqliteStore(path, StoreMode::kWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto page = (*store)->Records(kLocalTenant, {.with_objects = true});
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_EQ(page->corrupt, 0);
    const int stored = static_cast<int>(page->rows.size());
    ASSERT_GE(stored, acknowledged) << "lost";
    EXPECT_LE(stored, acknowledged + 1);
    for (int i = 0; i < stored; ++i) {
      EXPECT_EQ(page->rows[i].record.trace(), absl::StrCat("trace ", i));
      EXPECT_EQ(page->rows[i].record.object().size(), 3000u);
    }
    const auto history = (*store)->LoadHistory(TestKey("conv2d_1"));
    ASSERT_TRUE(history.ok()) << history.status();
    EXPECT_EQ(history->trials.size(), static_cast<size_t>(stored));
  }

  std::string folder_, path_;
};

class FaultTest : public PowerTest, public testing::WithParamInterface<Fault> {};

std::string NameOf(const testing::TestParamInfo<Fault>& info) {
  switch (info.param) {
    case Fault::kNoSpace: return "NoSpace";
    case Fault::kNoIndex: return "NoIndex";
    case Fault::kIoError: return "IoError";
    case Fault::kShortWrite: return "ShortWrite";
  }
  return "";
}

TEST_P(FaultTest, WhatWasAcknowledgedIsThereOnce) {
  const std::string pristine = folder_ + "/pristine.db";
  fs::copy_file(path_, pristine);
  int64_t n = 1;
  for (bool failed = true; failed; ++n) {
    SCOPED_TRACE(absl::StrCat("the disk fails from operation ", n));
    ASSERT_LT(n, 10'000);
    fs::remove(path_ + "-wal");
    fs::remove(path_ + "-shm");
    fs::copy_file(pristine, path_, fs::copy_options::overwrite_existing);
    int acknowledged = 0;
    {
      FaultVfs vfs;
      {
        auto store = OpenSqliteStore(path_, StoreMode::kWrite);
        ASSERT_TRUE(store.ok()) << store.status();
        const uint64_t epoch = *(*store)->BeginEpoch();
        vfs.FailFrom(n, GetParam());
        for (int number = 0; number < kCommits; ++number) {
          absl::Status status = (*store)->Commit(epoch, Completion(number));
          // The daemon tries again where a disk is full, and ends at all else.
          EXPECT_TRUE(status.ok() || vfs.failed()) << status;
          EXPECT_TRUE(status.ok() || GetParam() != Fault::kNoSpace || absl::IsResourceExhausted(status)) << status;
          if (absl::IsResourceExhausted(status)) {
            EXPECT_FALSE((*store)->Commit(epoch, Completion(number)).ok()) << "it is still full";
            vfs.Heal();
            status = (*store)->Commit(epoch, Completion(number));
            EXPECT_TRUE(status.ok()) << "there is room again: " << status;
          }
          if (!status.ok()) break;
          ++acknowledged;
        }
      }  // closing moves what is in the log into the file, or fails to
      failed = vfs.failed();
    }
    EXPECT_TRUE(failed || acknowledged == kCommits) << acknowledged;
    ExpectKept(path_, acknowledged);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(n, 3 * kCommits) << "the faults were there";
}
INSTANTIATE_TEST_SUITE_P(Disk, FaultTest, testing::Values(Fault::kNoSpace, Fault::kIoError, Fault::kShortWrite),
                         NameOf);

// SQLite has no name for it but an error of input or output.
TEST_F(PowerTest, ADiskThatIsFullWhereTheLogsIndexGrowsIsFull) {
  FaultVfs vfs;
  auto store = OpenSqliteStore(path_, StoreMode::kWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  const uint64_t epoch = *(*store)->BeginEpoch();
  std::vector<Write> writes;  // more than the 4,062 pages that the index has room for at first
  for (int i = 0; i < 10; ++i)
    writes.push_back(
        PutRecord{TestRecord(TestKey("conv2d_1"), absl::StrCat("trace ", i), 1 + i, std::string(2 << 20, 'x'))});
  vfs.FailFrom(1, Fault::kNoIndex);
  const absl::Status status = (*store)->Commit(epoch, writes);
  EXPECT_TRUE(vfs.failed());
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find("No space left on device"), std::string::npos) << status;
  vfs.Heal();
  const absl::Status again = (*store)->Commit(epoch, writes);
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_EQ((*store)->Records(kLocalTenant, {})->rows.size(), writes.size());
}

// Two lives of the daemon, so that there is a log that goes on, and one that was moved into the file.
TEST_F(PowerTest, WhatWasAcknowledgedSurvivesItsLossAtAnyOperation) {
  struct Image {
    std::string folder;
    int acknowledged = 0;
  };
  std::vector<Image> images;
  {
    FaultVfs vfs;
    int acknowledged = 0;
    vfs.BeforeEach([&] {
      images.push_back({absl::StrCat(folder_, "/image", images.size()), acknowledged});
      vfs.LosePower(images.back().folder, images.size());
    });
    for (int life = 0; life < 2; ++life) {
      auto store = OpenSqliteStore(path_, StoreMode::kWrite);
      ASSERT_TRUE(store.ok()) << store.status();
      const uint64_t epoch = *(*store)->BeginEpoch();
      for (int i = 0; i < kCommits; ++i, ++acknowledged) {
        const absl::Status status = (*store)->Commit(epoch, Completion(acknowledged));
        ASSERT_TRUE(status.ok()) << status;
      }
    }
  }
  EXPECT_GT(images.size(), 100u);
  for (const Image& image : images) {
    SCOPED_TRACE(image.folder);
    ExpectKept(image.folder + "/t.db", image.acknowledged);
    if (HasFatalFailure()) return;
  }
  std::printf("%zu images of a disk\n", images.size());
}

}  // namespace
}  // namespace hone
