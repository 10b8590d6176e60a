#include "tuner/service/endpoints/build_deposits.h"

#include "absl/time/clock.h"
#include "compiler/support/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<BuildDeposits::Deposit> WholeDeposit(BuildDeposits& deposits, uint64_t tenant,
                                                     const std::string& bytes) {
  absl::StatusOr<std::unique_ptr<BuildDeposits::Deposit>> deposit = deposits.Open(tenant, bytes.size());
  EXPECT_TRUE(deposit.ok()) << deposit.status();
  EXPECT_TRUE((*deposit)->Append(bytes).ok());
  return *std::move(deposit);
}

TEST(BuildDeposits, AreTakenOnceByTheirTenant) {
  BuildDeposits deposits;
  const std::string digest = Sha256("bytes");
  ASSERT_TRUE(deposits.Put(digest, WholeDeposit(deposits, 1, "bytes")).ok());
  EXPECT_TRUE(absl::IsNotFound(deposits.Take(2, digest).status()));
  const auto taken = deposits.Take(1, digest);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ((*taken)->bytes(), "bytes");
  EXPECT_TRUE(absl::IsNotFound(deposits.Take(1, digest).status()));
}

TEST(BuildDeposits, HaveTheRoomOfTheirTenantUntilTheEnd) {
  BuildDeposits deposits;
  auto first = deposits.Open(1, kMostBuiltBytes / 2), second = deposits.Open(1, kMostBuiltBytes / 2);
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status full = deposits.Open(1, 1).status();
  EXPECT_TRUE(absl::IsUnavailable(full)) << "small ones have a chunk each";
  EXPECT_THAT(std::string(full.message()), HasSubstr("take 67108864 of its 67108864 bytes"));
  EXPECT_TRUE(deposits.Open(2, kMostBuiltBytes).ok()) << "another tenant's room is its own";
  first->reset();
  ASSERT_TRUE(deposits.Put(Sha256("bytes"), WholeDeposit(deposits, 1, "bytes")).ok());
  EXPECT_FALSE(deposits.Open(1, kMostBuiltBytes / 2).ok()) << "it waits to be taken";
  { const auto taken = deposits.Take(1, Sha256("bytes")); }
  EXPECT_TRUE(deposits.Open(1, kMostBuiltBytes / 2).ok());
}

TEST(BuildDeposits, ThatNobodyTakesGo) {
  BuildDeposits deposits(absl::ZeroDuration());
  ASSERT_TRUE(deposits.Put(Sha256("bytes"), WholeDeposit(deposits, 1, "bytes")).ok());
  absl::SleepFor(absl::Milliseconds(2));
  EXPECT_TRUE(deposits.Open(1, kMostBuiltBytes).ok());
  EXPECT_TRUE(absl::IsNotFound(deposits.Take(1, Sha256("bytes")).status()));
}

TEST(BuildDeposits, ThatAreNotWhatWasSaidAreNone) {
  BuildDeposits deposits;
  EXPECT_TRUE(absl::IsInvalidArgument(deposits.Open(1, kMostBuiltBytes + 1).status()));
  auto deposit = deposits.Open(1, 10);
  ASSERT_TRUE(deposit.ok());
  EXPECT_TRUE((*deposit)->Append("123456789").ok());
  EXPECT_TRUE(absl::IsInvalidArgument((*deposit)->Append("01")));
  EXPECT_TRUE(absl::IsInvalidArgument(deposits.Put(Sha256("123456789"), *std::move(deposit)))) << "one byte is missing";
  EXPECT_TRUE(absl::IsInvalidArgument(deposits.Put("no digest", WholeDeposit(deposits, 1, "bytes"))));
  EXPECT_TRUE(deposits.Open(1, kMostBuiltBytes).ok()) << "nothing of them is left";
}

}  // namespace
}  // namespace hone
