#include "compiler/log/log.h"

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

}  // namespace
}  // namespace hone
