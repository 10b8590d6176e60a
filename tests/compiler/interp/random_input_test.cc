// Inputs whose order is part of what they are for.
#include "compiler/interp/random_input.h"

#include <gtest/gtest.h>

#include <algorithm>

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

// Of as many sets with consecutive seeds as peaks are apart, every element is beyond all the others' range in one.
TEST(RandomInput, EveryElementIsAPeakInOneSet) {
  for (const DType type : {kFloat32, kInt32, DType::Int(8), kBool}) {
    for (const char* domain : {"", "positive", "nonnegative", "int[0,5)"}) {
      SCOPED_TRACE(ToText(type) + domain);
      const Domain parsed = *ParseDomain(domain);
      if (type.is_bool() && parsed.kind != Domain::Kind::kAny) continue;
      for (const InputKind kind : {InputKind::kPeaks, InputKind::kTroughs}) {
        std::vector<int> times(100, 0);
        for (uint64_t set = 0; set < kPeakSpacing; ++set) {
          const NdArray array = RandomArray(type, {100}, parsed, 1000 + set, kind);
          std::vector<double> peaks, others;
          for (size_t i = 0; i < 100; ++i) {
            const double value = array.Get(static_cast<int64_t>(i)) * (kind == InputKind::kPeaks ? 1 : -1);
            const bool is_peak = (i + 1000 + set) % kPeakSpacing == 0;
            (is_peak ? peaks : others).push_back(value);
            times[i] += is_peak ? 1 : 0;
          }
          const double least = *std::ranges::min_element(peaks), most = *std::ranges::max_element(others);
          EXPECT_GE(least, most);
          // The ends of a short range of integers are met by others, too.
          if (type.is_float() && parsed.kind != Domain::Kind::kInt) { EXPECT_GT(least, most); }
        }
        for (const int count : times) EXPECT_EQ(count, 1);
      }
    }
  }
}

TEST(RandomInput, LargeOnesAreFarApart) {
  const NdArray large = RandomArray(kFloat32, {1000}, {}, 3, InputKind::kLarge);
  int64_t beyond = 0;  // where the exponential of a float32 is infinite or 0
  for (int64_t i = 0; i < 1000; ++i) beyond += std::abs(large.Get(i)) > 110;
  EXPECT_GT(beyond, 800);
}

}  // namespace
}  // namespace hone
