// What callers and tenants may take of the daemon, counted without one.
#include "tuner/service/access/call_meter.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000;

TEST(CallMeter, FillsUpWithTime) {
  CallMeter meter({.calls_per_second = 10, .streams = 1});
  int admitted = 0;
  for (int i = 0; i < 100; ++i) admitted += meter.Charge("a", "t", kSecond).ok();
  EXPECT_EQ(admitted, 10);
  EXPECT_TRUE(meter.Charge("b", "t", kSecond).ok()) << "another caller's account";
  EXPECT_THAT(std::string(meter.Charge("a", "t", kSecond).message()), HasSubstr("a makes more than 10 calls a second"));
  for (int i = 0; i < 100; ++i) admitted += meter.Charge("a", "t", kSecond + kSecond / 2).ok();
  EXPECT_EQ(admitted, 15);
  for (int i = 0; i < 100; ++i) admitted += meter.Charge("a", "t", 1000 * kSecond).ok();
  EXPECT_EQ(admitted, 25) << "what is not used up is not saved for ever";
}

TEST(CallMeter, CountsStreamsThatAreOpen) {
  CallMeter meter({.calls_per_second = 10, .streams = 2});
  auto first = meter.OpenStream("a", "t", false), second = meter.OpenStream("a", "t", false);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(meter.OpenStream("a", "t", false).status()));
  EXPECT_TRUE(meter.OpenStream("b", "t", false).ok());
  auto copy = *first;
  first->reset();
  EXPECT_FALSE(meter.OpenStream("a", "t", false).ok()) << "a copy of it lives";
  copy.reset();
  EXPECT_TRUE(meter.OpenStream("a", "t", false).ok());
}

TEST(CallMeter, CountsTheThreadsThatStreamsHold) {
  CallMeter meter({.streams = 2, .streams_of_all = 4});
  auto first = meter.OpenStream("a", "t", true), second = meter.OpenStream("a", "t", true);
  auto owners = meter.OpenStream("", "t", true), others = meter.OpenStream("c", "u", true);
  ASSERT_TRUE(first.ok() && second.ok() && owners.ok() && others.ok());
  const absl::Status refused = meter.OpenStream("d", "v", true).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("all callers together have 4"));
  EXPECT_FALSE(meter.OpenStream("", "t", true).ok()) << "the owner's threads are the same";
  EXPECT_TRUE(meter.OpenStream("d", "v", false).ok()) << "it waits without a thread";
  second->reset();
  EXPECT_TRUE(meter.OpenStream("d", "v", true).ok());
}

// Each certificate more would be an allowance more.
TEST(CallMeter, CountsTheCallsOfAllCallersOfATenant) {
  CallMeter meter({.calls_per_second = 10, .tenant_multiple = 2});
  int admitted = 0;
  for (int caller = 0; caller < 10; ++caller) {
    for (int i = 0; i < 5; ++i) admitted += meter.Charge(absl::StrCat("caller ", caller), "vision", kSecond).ok();
  }
  EXPECT_EQ(admitted, 20);
  EXPECT_THAT(std::string(meter.Charge("one more", "vision", kSecond).message()),
              HasSubstr("tenant vision makes more than 20 calls a second"));
  EXPECT_TRUE(meter.Charge("ears", "speech", kSecond).ok()) << "another tenant's account";
  for (int i = 0; i < 1000; ++i) meter.Charge("loud", "speech", kSecond).IgnoreError();
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(meter.Charge("ears", "speech", kSecond).ok())
        << "what is refused the loud one costs its tenant nothing";
  }
}

TEST(CallMeter, CountsTheStreamsOfAllCallersOfATenant) {
  CallMeter meter({.streams = 1, .tenant_multiple = 3, .streams_of_all = 4});
  std::vector<std::shared_ptr<const void>> open;
  for (const char* caller : {"a", "b", "c"}) open.push_back(meter.OpenStream(caller, "vision", false).value());
  EXPECT_THAT(std::string(meter.OpenStream("d", "vision", false).status().message()),
              HasSubstr("tenant vision has 3 streams open"));
  EXPECT_TRUE(meter.OpenStream("", "vision", false).ok()) << "the owner's have no limit";
  open.pop_back();
  EXPECT_TRUE(meter.OpenStream("d", "vision", false).ok());
  open.clear();
  for (const char* caller : {"a", "b"}) open.push_back(meter.OpenStream(caller, "vision", true).value());
  EXPECT_THAT(std::string(meter.OpenStream("c", "vision", true).status().message()),
              HasSubstr("tenant vision has 2 submissions, listings, exports and imports open, half of those"));
  EXPECT_TRUE(meter.OpenStream("c", "vision", false).ok()) << "it waits without a thread";
  EXPECT_TRUE(meter.OpenStream("ears", "speech", true).ok());
}

}  // namespace
}  // namespace hone
