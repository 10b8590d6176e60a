#include "compiler/log/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

std::string Said(LogFormat format, const std::function<void()>& say) {
  spdlog::drop_all();
  testing::internal::CaptureStderr();
  StartLog("honed", format, /*verbose=*/false);
  say();
  spdlog::default_logger()->flush();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, IsALineForPeople) {
  const std::string line = Said(LogFormat::kText, [] {
    LogFact(spdlog::level::info, "job is running", {{"job", uint64_t{3}}, {"reason", std::string("a worker came")}});
  });
  EXPECT_THAT(line, EndsWith(" honed info: job is running (job 3, reason a worker came)\n"));
}

TEST(Log, IsAnObjectALineForPrograms) {
  const std::string text = Said(LogFormat::kJson, [] {
    LogFact(spdlog::level::warn, "he said \"no\"", {{"job", uint64_t{3}}, {"us", 1.5}});
    spdlog::info("a line\nand another");
    spdlog::error("no UTF-8: \xff");
  });
  EXPECT_THAT(text,
              HasSubstr("\"level\":\"warning\",\"program\":\"honed\",\"message\":\"he said \\\"no\\\"\",\"job\":3,"
                        "\"us\":1.5}\n"));
  EXPECT_THAT(text, HasSubstr("\"message\":\"a line\\nand another\"}\n"));
  EXPECT_THAT(text, StartsWith("{\"time\":\"20"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(Log, LeavesOutWhatNobodyWants) {
  EXPECT_EQ(Said(LogFormat::kText, [] { LogFact(spdlog::level::debug, "a lease", {{"trial", uint64_t{1}}}); }), "");
}

// Standard error is a pipe whose reader sleeps, wakes up, and sleeps again.
TEST(Log, GoesOnWhereNobodyReads) {
  constexpr int kLines = 20'000;  // far more than a pipe holds
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  spdlog::drop_all();
  StartLog("honed", LogFormat::kText, /*verbose=*/false);
  for (int i = 0; i < kLines; ++i) spdlog::info("line {}", i);
  std::string read(1 << 20, '\0');
  read.resize(static_cast<size_t>(::read(ends[0], read.data(), read.size())));
  const auto first = std::count(read.begin(), read.end(), '\n');
  spdlog::info("the reader is awake");
  dup2(before, STDERR_FILENO);
  close(before);
  std::string rest(1 << 16, '\0');
  rest.resize(static_cast<size_t>(::read(ends[0], rest.data(), rest.size())));
  close(ends[0]);
  EXPECT_THAT(read, HasSubstr("line 0\n"));
  EXPECT_THAT(read, EndsWith("\n")) << "whole lines";
  EXPECT_THAT(rest, HasSubstr(absl::StrCat("nobody read ", kLines - first, " lines that came here\n")));
  EXPECT_THAT(rest, EndsWith("the reader is awake\n"));
}

}  // namespace
}  // namespace hone
