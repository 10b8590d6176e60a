// Inputs whose order is part of what they are for.
#include "compiler/interp/random_input.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(RandomInput, RisesAndFallsInEveryDomain) {
  for (const char* domain : {"", "positive", "nonnegative"}) {
    SCOPED_TRACE(domain);
    const Domain parsed = *ParseDomain(domain);
    const NdArray up = RandomArray(kFloat32, {5, 7}, parsed, 3, InputKind::kRising);
    const NdArray down = RandomArray(kFloat32, {5, 7}, parsed, 3, InputKind::kFalling);
    for (int64_t i = 1; i < up.NumElements(); ++i) {
      EXPECT_GT(up.Get(i), up.Get(i - 1)) << i;
      EXPECT_LT(down.Get(i), down.Get(i - 1)) << i;
    }
    EXPECT_EQ(up.Get(0) < 0, parsed.kind == Domain::Kind::kAny);
  }
}

TEST(RandomInput, IntegersRiseToTheEndsOfTheirRange) {
  const NdArray up = RandomArray(DType::Int(8), {1000}, {}, 3, InputKind::kRising);
  for (int64_t i = 1; i < up.NumElements(); ++i) EXPECT_GE(up.GetInt(i), up.GetInt(i - 1)) << i;
  EXPECT_EQ(up.GetInt(0), -127);
  EXPECT_EQ(up.GetInt(999), 127);
}

TEST(RandomInput, IndicesStayInTheirDomain) {
  const Domain domain = *ParseDomain("int[2,9)");
  for (const DType type : {kInt32, kFloat32}) {
    const NdArray indices = RandomArray(type, {100}, domain, 3, InputKind::kFalling);
    for (int64_t i = 0; i < 100; ++i) {
      EXPECT_GE(indices.Get(i), 2);
      EXPECT_LT(indices.Get(i), 9);
    }
  }
}

// "any" of a few conditions is false somewhere, "all" of them true.
TEST(RandomInput, ConditionsAreMostlyFalseOrMostlyTrue) {
  int64_t trues = 0;
  const NdArray rare = RandomArray(kBool, {4000}, {}, 3, InputKind::kUniform);
  for (int64_t i = 0; i < 4000; ++i) trues += rare.GetInt(i);
  EXPECT_GT(trues, 400);
  EXPECT_LT(trues, 1800);
  trues = 0;
  const NdArray often = RandomArray(kBool, {4000}, {}, 3, InputKind::kInteger);
  for (int64_t i = 0; i < 4000; ++i) trues += often.GetInt(i);
  EXPECT_GT(trues, 2200);
  EXPECT_LT(trues, 3600);
}

}  // namespace
}  // namespace hone
