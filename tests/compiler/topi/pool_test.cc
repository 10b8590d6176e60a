#include "compiler/topi/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/topi/expect_computes.h"

namespace hone::topi {
namespace {

using te::Placeholder;
using te::Tensor;

struct PoolCase {
  const char* name;
  std::vector<int64_t> x;
  PoolAttrs attrs;
};

int64_t At(const std::vector<int64_t>& values, size_t d, int64_t fallback) {
  return values.empty() ? fallback : values[d];
}

// The last dimension behind the first, and back.
std::vector<int64_t> ChannelsFirst(std::vector<int64_t> v) {
  std::rotate(v.begin() + 1, v.end() - 1, v.end());
  return v;
}
std::vector<int64_t> ChannelsLast(std::vector<int64_t> v) {
  std::rotate(v.begin() + 1, v.begin() + 2, v.end());
  return v;
}

class PoolTest : public testing::TestWithParam<PoolCase> {};

TEST_P(PoolTest, MaxMatchesLoops) {
  const PoolAttrs& a = GetParam().attrs;
  const Tensor x = Placeholder(GetParam().x, kFloat32, "x");
  ExpectComputes({x}, MaxPool(x, a), [&](const auto& in, const Index& at) {
    double best = -std::numeric_limits<double>::infinity();
    for (const Index& k : AllIndices(a.kernel)) {
      Index from = at;
      for (size_t d = 0; d < k.size(); ++d) {
        from[d + 1] = at[d + 1] * At(a.strides, d, 1) + k[d] * At(a.dilations, d, 1) - At(a.pads_before, d, 0);
      }
      if (in[0].Has(from)) best = std::max(best, in[0](from));
    }
    return best;
  });
}

TEST_P(PoolTest, AverageMatchesLoops) {
  for (const bool include : {false, true}) {
    PoolAttrs a = GetParam().attrs;
    a.count_include_pad = include;
    const Tensor x = Placeholder(GetParam().x, kFloat32, "x");
    ExpectComputes({x}, AveragePool(x, a), [&](const auto& in, const Index& at) {
      double sum = 0, count = 0;
      for (const Index& k : AllIndices(a.kernel)) {
        Index from = at;
        bool counts = true;
        for (size_t d = 0; d < k.size(); ++d) {
          from[d + 1] = at[d + 1] * At(a.strides, d, 1) + k[d] * At(a.dilations, d, 1) - At(a.pads_before, d, 0);
          const int64_t low = include ? -At(a.pads_before, d, 0) : 0;
          const int64_t high = in[0].dim(static_cast<int>(d) + 1) + (include ? At(a.pads_after, d, 0) : 0);
          counts &= from[d + 1] >= low && from[d + 1] < high;
        }
        sum += in[0](from);
        count += counts;
      }
      return sum / count;
    });
  }
}

// Planes give what rows of channels give.
TEST_P(PoolTest, ChannelsFirstMatchesChannelsLast) {
  PoolAttrs a = GetParam().attrs;
  a.channels_first = true;
  const Tensor x = Placeholder(ChannelsFirst(GetParam().x), kFloat32, "x");
  const auto windows = [&](const auto& in, Index at, const auto& add) {
    at = ChannelsLast(std::move(at));
    for (const Index& k : AllIndices(a.kernel)) {
      Index from = at;
      for (size_t d = 0; d < k.size(); ++d) {
        from[d + 1] = at[d + 1] * At(a.strides, d, 1) + k[d] * At(a.dilations, d, 1) - At(a.pads_before, d, 0);
      }
      from = ChannelsFirst(std::move(from));
      if (in.Has(from)) add(in(from));
    }
  };
  ExpectComputes({x}, MaxPool(x, a), [&](const auto& in, const Index& at) {
    double best = -std::numeric_limits<double>::infinity();
    windows(in[0], at, [&](double value) { best = std::max(best, value); });
    return best;
  });
  ExpectComputes({x}, AveragePool(x, a), [&](const auto& in, const Index& at) {
    double sum = 0, count = 0;
    windows(in[0], at, [&](double value) { sum += value, ++count; });
    return sum / count;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PoolTest,
    testing::Values(PoolCase{"Plain", {1, 6, 8, 3}, {{2, 2}, {2, 2}}},
                    PoolCase{"ResNet", {1, 9, 9, 5}, {{3, 3}, {2, 2}, {}, {1, 1}, {1, 1}}},
                    PoolCase{"Asymmetric", {2, 7, 5, 2}, {{3, 2}, {1, 2}, {}, {2, 0}, {0, 1}}},
                    PoolCase{"Ceil", {1, 7, 8, 2}, {{3, 3}, {2, 2}, {}, {}, {}, true}},
                    PoolCase{"CeilPadded", {1, 6, 7, 2}, {{3, 3}, {2, 2}, {}, {1, 1}, {1, 1}, true}},
                    PoolCase{"Dilated", {1, 9, 10, 2}, {{3, 2}, {1, 2}, {2, 3}, {1, 2}, {1, 1}}},
                    PoolCase{"One", {1, 12, 3}, {{4}, {3}, {}, {1}, {2}}},
                    PoolCase{"Three", {1, 4, 5, 4, 2}, {{2, 3, 2}, {2, 1, 2}, {}, {0, 1, 0}, {0, 1, 0}}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Pool, OutputSize) {
  EXPECT_EQ(PoolOutputSize(112, 3, 2, 1, 1, 1, false), 56);
  EXPECT_EQ(PoolOutputSize(7, 3, 2, 1, 0, 0, true), 3);
  EXPECT_EQ(PoolOutputSize(8, 3, 2, 1, 0, 0, true), 4);
  EXPECT_EQ(PoolOutputSize(4, 1, 3, 1, 0, 1, true), 2);
  EXPECT_EQ(PoolOutputSize(4, 2, 4, 1, 0, 2, true), 1);  // the second window would start in the padding
}

TEST(Pool, Global) {
  const Tensor x = Placeholder({2, 3, 5, 4}, kFloat32, "x");
  ExpectComputes({x}, GlobalAveragePool(x), [](const auto& in, const Index& at) {
    double sum = 0;
    for (const Index& k : AllIndices({3, 5})) sum += in[0]({at[0], k[0], k[1], at[3]});
    return sum / 15;
  });
  ExpectComputes({x}, GlobalMaxPool(x), [](const auto& in, const Index& at) {
    double best = -9;
    for (const Index& k : AllIndices({3, 5})) best = std::max(best, in[0]({at[0], k[0], k[1], at[3]}));
    return best;
  });
  EXPECT_THAT(GlobalAveragePool(x).StaticShape(), testing::ElementsAre(2, 1, 1, 4));
}

}  // namespace
}  // namespace hone::topi
