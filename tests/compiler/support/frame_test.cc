#include "compiler/support/frame.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

class FrameTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    ASSERT_EQ(pipe2(pipe_, O_CLOEXEC), 0);
  }
  void TearDown() override {
    for (const int fd : pipe_) {
      if (fd >= 0) close(fd);
    }
  }
  void CloseReader() { close(std::exchange(pipe_[0], -1)); }
  void CloseWriter() { close(std::exchange(pipe_[1], -1)); }
  int reader() const { return pipe_[0]; }
  int writer() const { return pipe_[1]; }

 private:
  int pipe_[2] = {-1, -1};
};

TEST_F(FrameTest, MessagesStayWhole) {
  ASSERT_TRUE(WriteFrame(writer(), "one").ok());
  ASSERT_TRUE(WriteFrame(writer(), "").ok());
  CloseWriter();
  EXPECT_EQ(*ReadFrame(reader(), 100), "one");
  EXPECT_EQ(*ReadFrame(reader(), 100), "");
  EXPECT_TRUE(absl::IsOutOfRange(ReadFrame(reader(), 100).status()));
}

TEST_F(FrameTest, OneThatNobodyTakesInTimeIsGivenUp) {
  const std::string large(1 << 20, 'x');  // more than a pipe holds
  EXPECT_TRUE(absl::IsDeadlineExceeded(WriteFrame(writer(), large, absl::Milliseconds(50))));
}

TEST_F(FrameTest, OneThatIsTakenSlowlyArrivesWhole) {
  const std::string large(1 << 20, 'x');
  std::string got;
  std::thread slow([&] {
    absl::SleepFor(absl::Milliseconds(30));
    got = ReadFrame(reader(), large.size()).value_or("");
  });
  EXPECT_TRUE(WriteFrame(writer(), large, absl::Seconds(60)).ok());
  slow.join();
  EXPECT_EQ(got, large);
}

TEST_F(FrameTest, TheOtherEndsDeathIsNoticed) {
  CloseReader();
  EXPECT_TRUE(absl::IsUnavailable(WriteFrame(writer(), "x", absl::Seconds(5))));
}

TEST_F(FrameTest, BrokenOnesAreRefused) {
  ASSERT_EQ(write(writer(), "\xff\xff\xff\x7f", 4), 4);
  EXPECT_TRUE(absl::IsDataLoss(ReadFrame(reader(), 100).status()));
  ASSERT_EQ(write(writer(), "\x04\x00\x00\x00xy", 6), 6);
  CloseWriter();
  EXPECT_TRUE(absl::IsUnavailable(ReadFrame(reader(), 100).status()));
}

TEST_F(FrameTest, SilenceEndsAtItsTime) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReadFrame(reader(), 100, absl::Milliseconds(20)).status()));
}

}  // namespace
}  // namespace hone
