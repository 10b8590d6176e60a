// The turn of a machine: who has it, and that whoever waits gets it.
#include "compiler/support/turn_lock.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

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
  // Takes the turn again and again for 20 ms, and counts that.
  static std::thread Greedy(TurnLock::Use use, std::atomic<int>& turns, const std::atomic<bool>& stop) {
    return std::thread([use, &turns, &stop] {
      TurnLock lock = Open();
      while (!stop) {
        const TurnLock::Turn turn(lock, use);
        ++turns;
        absl::SleepFor(absl::Milliseconds(20));
      }
    });
  }
  const std::string path_;
};

TEST_F(TurnLockTest, SaysWhoHasTheTurn) {
  for (const TurnLock::Use use : {TurnLock::Use::kAlone, TurnLock::Use::kShared}) {
    TurnLock ours = Open();
    const TurnLock other = Open();
    EXPECT_EQ(other.Holder(), "");
    ours.Acquire(use);
    EXPECT_THAT(other.Holder(), testing::HasSubstr(absl::StrCat("process ", ::getpid(), " (")));
    ours.Release();
    EXPECT_EQ(other.Holder(), "");
  }
}

// A worker with batches in store asks for the next turn as soon as it has given the last one back.
TEST_F(TurnLockTest, WhoeverWaitsComesBeforeWhoeverHadIt) {
  std::atomic<int> turns{0};
  std::atomic<bool> stop{false};
  std::thread greedy = Greedy(TurnLock::Use::kAlone, turns, stop);
  while (turns == 0) absl::SleepFor(absl::Milliseconds(1));
  TurnLock lock = Open();
  for (int i = 0; i < 5; ++i) {
    const int before = turns;
    const TurnLock::Turn turn(lock, TurnLock::Use::kAlone);
    EXPECT_LE(turns - before, 3) << "turns of the other while we waited";
  }
  stop = true;
  greedy.join();
}

TEST_F(TurnLockTest, ManyShareATurnAndNoneWhoIsAlone) {
  std::atomic<int> sharing{0}, most{0}, alone{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, shares = t < 3] {
      TurnLock lock = Open();
      for (int i = 0; i < 20; ++i) {
        const TurnLock::Turn turn(lock, shares ? TurnLock::Use::kShared : TurnLock::Use::kAlone);
        std::atomic<int>& of_my_kind = shares ? sharing : alone;
        const int now = ++of_my_kind;
        if (shares && now > most) most = now;
        EXPECT_EQ(shares ? alone : sharing, 0);
        if (!shares) { EXPECT_EQ(now, 1); }
        absl::SleepFor(absl::Milliseconds(2));
        --of_my_kind;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(most, 1);
}

// Searches that come one upon the other never leave the machine unused: whoever measures comes between all the same.
TEST_F(TurnLockTest, ThoseWhoShareDoNotKeepOutWhoWouldBeAlone) {
  std::atomic<bool> stop{false};
  std::atomic<int> turns{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) threads.push_back(Greedy(TurnLock::Use::kShared, turns, stop));
  while (turns < 3) absl::SleepFor(absl::Milliseconds(1));
  TurnLock lock = Open();
  for (int i = 0; i < 5; ++i) {
    const int before = turns;
    const TurnLock::Turn turn(lock, TurnLock::Use::kAlone);
    EXPECT_LE(turns - before, 9) << "turns of the others while we waited";
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hone
