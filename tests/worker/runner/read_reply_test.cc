#include "worker/runner/read_reply.h"

#include <cstring>

#include "gtest/gtest.h"

namespace hone {
namespace {

// A candidate that forges its runner's reply chooses every byte of the text, which goes on to the daemon in a message.
TEST(ReadReply, TextBecomesPrintable) {
  RunnerReply reply;
  reply.outcome = RunnerOutcome::kKernelFailed;
  std::memset(reply.message, 0xff, sizeof(reply.message));
  const RunnerVerdict verdict = ReadReply(reply, static_cast<ssize_t>(ReplyBytes(reply)));
  EXPECT_EQ(verdict.kind, RunnerVerdict::kKernelFailed);
  EXPECT_EQ(verdict.message, std::string(kRunnerMessageBytes - 1, '?'));
}

TEST(ReadReply, OfAnotherSizeIsNone) {
  RunnerReply reply;
  reply.num_samples = 3;
  const ssize_t whole = static_cast<ssize_t>(ReplyBytes(reply));
  EXPECT_TRUE(ReadReply(reply, whole).ok());
  for (const ssize_t got : {ssize_t{-1}, ssize_t{0}, ssize_t{4}, whole - 1, whole + 1}) {
    EXPECT_EQ(ReadReply(reply, got).kind, RunnerVerdict::kCrashed) << got;
  }
  for (const int samples : {-1, kRunnerMaxSamples + 1, 1 << 30}) {
    reply.num_samples = samples;
    EXPECT_EQ(ReadReply(reply, static_cast<ssize_t>(ReplyBytes(reply))).kind, RunnerVerdict::kCrashed) << samples;
  }
}

}  // namespace
}  // namespace hone
