// The turn of a machine: who has it, and that whoever waits gets it.
#include "compiler/support/turn_lock.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

class TurnLockTest : public testing::Test {
 protected:
  TurnLockTest() : path_(absl::StrCat(testing::TempDir(), "turn_lock_test_", ::getpid())) {
    ::setenv("HONE_LOCK", path_.c_str(), 1);
  }
  ~TurnLockTest() override {
    ::unlink(path_.c_str());
    ::unsetenv("HONE_LOCK");
  }
  static TurnLock Open() {
    absl::StatusOr<TurnLock> lock = TurnLock::Open();
    EXPECT_TRUE(lock.ok()) << lock.status();
    return *std::move(lock);
  }
  const std::string path_;
};

TEST_F(TurnLockTest, SaysWhoHasTheTurn) {
  TurnLock ours = Open();
  const TurnLock other = Open();
  EXPECT_EQ(other.Holder(), "");
  ours.Acquire();
  EXPECT_THAT(other.Holder(), testing::HasSubstr(absl::StrCat("process ", ::getpid(), " (")));
  ours.Release();
  EXPECT_EQ(other.Holder(), "");
}

// A worker with batches in store asks for the next turn as soon as it has given the last one back.
TEST_F(TurnLockTest, WhoeverWaitsComesBeforeWhoeverHadIt) {
  std::atomic<int> turns{0};
  std::atomic<bool> stop{false};
  std::thread greedy([&] {
    TurnLock lock = Open();
    while (!stop) {
      const TurnLock::Turn turn(lock);
      ++turns;
      absl::SleepFor(absl::Milliseconds(20));
    }
  });
  while (turns == 0) absl::SleepFor(absl::Milliseconds(1));
  TurnLock lock = Open();
  for (int i = 0; i < 5; ++i) {
    const int before = turns;
    const TurnLock::Turn turn(lock);
    EXPECT_LE(turns - before, 3) << "turns of the other while we waited";
  }
  stop = true;
  greedy.join();
}

}  // namespace
}  // namespace hone
