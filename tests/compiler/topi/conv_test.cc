#include "compiler/topi/conv.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/topi/expect_computes.h"

namespace hone::topi {
namespace {

using te::Placeholder;
using te::Tensor;

struct ConvCase {
  const char* name;
  std::vector<int64_t> x, w;  // channels last; K..., IC / groups, OC
  ConvAttrs attrs;
};
std::string CaseName(const testing::TestParamInfo<ConvCase>& info) { return info.param.name; }

int64_t At(const std::vector<int64_t>& values, size_t d, int64_t fallback) {
  return values.empty() ? fallback : values[d];
}

// The same place with channels second, and with channels last.
Index ChannelsFirst(Index at) {
  std::rotate(at.begin() + 1, at.end() - 1, at.end());
  return at;
}
Index ChannelsLast(Index at) {
  std::rotate(at.begin() + 1, at.begin() + 2, at.end());
  return at;
}

double NaiveConv(const std::vector<Values>& in, Index at, const ConvAttrs& a) {
  if (a.channels_first) at = ChannelsLast(std::move(at));
  const Values &x = in[0], &w = in[1];
  const size_t spatial = at.size() - 2;
  const int64_t group_in = w.dim(static_cast<int>(spatial)),
                group_out = w.dim(static_cast<int>(spatial) + 1) / a.groups;
  std::vector<int64_t> kernel;
  for (size_t d = 0; d < spatial; ++d) kernel.push_back(w.dim(static_cast<int>(d)));
  double sum = 0;
  for (const Index& k : AllIndices(kernel)) {
    for (int64_t c = 0; c < group_in; ++c) {
      Index from = {at[0]}, weight = k;
      for (size_t d = 0; d < spatial; ++d) {
        from.push_back(at[d + 1] * At(a.strides, d, 1) + k[d] * At(a.dilations, d, 1) - At(a.pads_before, d, 0));
      }
      from.push_back(at.back() / group_out * group_in + c);
      weight.push_back(c);
      weight.push_back(at.back());
      sum += x(a.channels_first ? ChannelsFirst(from) : from) * w(weight);
    }
  }
  return sum;
}

class ConvTest : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvTest, MatchesLoops) {
  const ConvCase& c = GetParam();
  const Tensor x = Placeholder(c.x, kFloat32, "x"), w = Placeholder(c.w, kFloat32, "w");
  const Tensor y = Conv(x, w, c.attrs);
  ExpectComputes({x, w}, y, [&](const auto& in, const Index& at) { return NaiveConv(in, at, c.attrs); });
}

TEST_P(ConvTest, MatchesLoopsWithChannelsFirst) {
  const ConvCase& c = GetParam();
  ConvAttrs attrs = c.attrs;
  attrs.channels_first = true;
  const Tensor x = Placeholder(ChannelsFirst(c.x), kFloat32, "x"), w = Placeholder(c.w, kFloat32, "w");
  ExpectComputes({x, w}, Conv(x, w, attrs), [&](const auto& in, const Index& at) { return NaiveConv(in, at, attrs); });
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ConvTest,
    testing::Values(ConvCase{"Plain", {1, 7, 9, 3}, {3, 3, 3, 5}, {}},
                    ConvCase{"Same", {2, 5, 6, 4}, {3, 3, 4, 8}, {{}, {}, {1, 1}, {1, 1}}},
                    ConvCase{"StrideAsymmetric", {1, 9, 8, 3}, {3, 2, 3, 7}, {{2, 3}, {}, {1, 0}, {2, 1}}},
                    ConvCase{"Pointwise", {1, 5, 5, 6}, {1, 1, 6, 4}, {}},
                    ConvCase{"PointwiseStride", {1, 7, 7, 3}, {1, 1, 3, 4}, {{2, 2}}},
                    ConvCase{"Dilated", {1, 11, 13, 2}, {3, 3, 2, 3}, {{1, 2}, {2, 3}, {2, 1}, {2, 1}}},
                    ConvCase{"Groups", {1, 6, 5, 6}, {3, 3, 2, 9}, {{}, {}, {1, 1}, {1, 1}, 3}},
                    ConvCase{"DepthwiseMultiplier", {1, 5, 5, 3}, {3, 3, 1, 6}, {{}, {}, {}, {}, 3}},
                    ConvCase{"WholeImage", {1, 4, 4, 2}, {4, 4, 2, 5}, {}},
                    ConvCase{"One", {2, 17, 3}, {5, 3, 4}, {{2}, {}, {2}, {2}}},
                    ConvCase{"OneDilatedGroups", {1, 20, 4}, {3, 2, 4}, {{1}, {4}, {4}, {3}, 2}},
                    ConvCase{"Three", {1, 4, 5, 6, 2}, {2, 3, 3, 2, 3}, {{1, 2, 1}, {}, {0, 1, 1}, {1, 1, 0}}}),
    CaseName);

TEST(Conv, PadsInABlockOfItsOwnOnlyWhenNeeded) {
  const Tensor x = Placeholder({1, 8, 8, 4}, kFloat32, "x"), w = Placeholder({3, 3, 4, 8}, kFloat32, "w");
  EXPECT_THAT(BlockNames(te::CreatePrimFunc({x, w}, {Conv2d(x, w, {})}, "f")), testing::ElementsAre("conv2d"));
  EXPECT_THAT(BlockNames(te::CreatePrimFunc({x, w}, {Conv2d(x, w, {{}, {}, {0, 1}, {0, 0}})}, "f")),
              testing::ElementsAre("pad", "conv2d"));
}

TEST(Conv, OfBytesPadsWithItsValue) {
  const Tensor x = Placeholder({1, 4, 5, 2}, DType::UInt(8), "x"), w = Placeholder({3, 3, 2, 3}, DType::Int(8), "w");
  const ConvAttrs attrs{.pads_before = {1, 1}, .pads_after = {1, 1}, .pad_value = 9};
  const Tensor y = Conv2d(x, w, attrs);
  EXPECT_EQ(y.dtype(), kInt32);
  ExpectComputes({x, w}, y, [](const std::vector<Values>& in, const Index& at) {
    double sum = 0;
    for (int64_t kh = 0; kh < 3; ++kh) {
      for (int64_t kw = 0; kw < 3; ++kw) {
        for (int64_t c = 0; c < 2; ++c) {
          const Index from = {at[0], at[1] + kh - 1, at[2] + kw - 1, c};
          sum += (in[0].Has(from) ? in[0](from) : 9) * in[1]({kh, kw, c, at[3]});
        }
      }
    }
    return sum;
  });
}

TEST(Conv, OutputSize) {
  EXPECT_EQ(ConvOutputSize(224, 7, 2, 1, 3, 3), 112);
  EXPECT_EQ(ConvOutputSize(11, 3, 2, 2, 0, 1), 4);
}

class DepthwiseTest : public testing::TestWithParam<ConvCase> {};

double NaiveDepthwise(const std::vector<Values>& in, Index at, const ConvAttrs& a) {
  if (a.channels_first) at = ChannelsLast(std::move(at));
  double sum = 0;
  for (int64_t kh = 0; kh < in[1].dim(0); ++kh) {
    for (int64_t kw = 0; kw < in[1].dim(1); ++kw) {
      const Index from = {at[0], at[1] * At(a.strides, 0, 1) + kh * At(a.dilations, 0, 1) - At(a.pads_before, 0, 0),
                          at[2] * At(a.strides, 1, 1) + kw * At(a.dilations, 1, 1) - At(a.pads_before, 1, 0), at[3]};
      sum += in[0](a.channels_first ? ChannelsFirst(from) : from) * in[1]({kh, kw, at[3]});
    }
  }
  return sum;
}

TEST_P(DepthwiseTest, MatchesLoops) {
  const ConvCase& c = GetParam();
  const Tensor w = Placeholder(c.w, kFloat32, "w");
  for (const bool channels_first : {false, true}) {
    SCOPED_TRACE(channels_first);
    ConvAttrs attrs = c.attrs;
    attrs.channels_first = channels_first;
    const Tensor x = Placeholder(channels_first ? ChannelsFirst(c.x) : c.x, kFloat32, "x");
    ExpectComputes({x, w}, DepthwiseConv2d(x, w, attrs),
                   [&](const auto& in, const Index& at) { return NaiveDepthwise(in, at, attrs); });
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DepthwiseTest,
                         testing::Values(ConvCase{"Same", {1, 6, 7, 5}, {3, 3, 5}, {{}, {}, {1, 1}, {1, 1}}},
                                         ConvCase{"Stride", {2, 9, 9, 3}, {3, 3, 3}, {{2, 2}, {}, {0, 1}, {1, 1}}},
                                         ConvCase{"Dilated", {1, 9, 8, 4}, {3, 2, 4}, {{1, 1}, {2, 3}}}),
                         CaseName);

struct TransposeCase {
  const char* name;
  std::vector<int64_t> x, w;  // K..., IC, OC / groups
  ConvAttrs attrs;
  std::vector<int64_t> output_padding;
};

class ConvTransposeTest : public testing::TestWithParam<TransposeCase> {};

// Every input element is spread over the output, as the definition says.
TEST_P(ConvTransposeTest, MatchesScatter) {
  const TransposeCase& c = GetParam();
  const Tensor x = Placeholder(c.x, kFloat32, "x"), w = Placeholder(c.w, kFloat32, "w");
  const Tensor y = ConvTranspose(x, w, c.attrs, c.output_padding);
  const int64_t group_in = c.x.back() / c.attrs.groups, group_out = c.w.back();
  ExpectComputes({x, w}, y, [&](const std::vector<Values>& in, const Index& at) {
    const size_t spatial = at.size() - 2;
    const std::vector<int64_t> kernel(c.w.begin(), c.w.begin() + static_cast<int64_t>(spatial));
    const std::vector<int64_t> pixels(c.x.begin() + 1, c.x.end() - 1);
    const int64_t group = at.back() / group_out;
    double sum = 0;
    for (const Index& from : AllIndices(pixels)) {
      for (const Index& k : AllIndices(kernel)) {
        bool here = true;
        for (size_t d = 0; d < spatial; ++d) {
          here &= from[d] * At(c.attrs.strides, d, 1) + k[d] * At(c.attrs.dilations, d, 1) -
                      At(c.attrs.pads_before, d, 0) ==
                  at[d + 1];
        }
        if (!here) continue;
        for (int64_t ic = group * group_in; ic < (group + 1) * group_in; ++ic) {
          Index source = {at[0]}, weight = k;
          source.insert(source.end(), from.begin(), from.end());
          source.push_back(ic);
          weight.push_back(ic);
          weight.push_back(at.back() % group_out);
          sum += in[0](source) * in[1](weight);
        }
      }
    }
    return sum;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ConvTransposeTest,
    testing::Values(TransposeCase{"Plain", {1, 4, 5, 3}, {3, 3, 3, 2}, {}, {}},
                    TransposeCase{"Double", {1, 4, 3, 2}, {2, 2, 2, 3}, {{2, 2}}, {}},
                    TransposeCase{"Stride2Kernel3", {1, 4, 5, 2}, {3, 3, 2, 3}, {{2, 2}, {}, {1, 1}, {1, 1}}, {1, 1}},
                    TransposeCase{"Stride2Kernel4", {2, 3, 3, 2}, {4, 4, 2, 2}, {{2, 2}, {}, {1, 1}, {1, 1}}, {}},
                    TransposeCase{"StrideBeyondKernel", {1, 3, 4, 2}, {2, 2, 2, 2}, {{3, 3}}, {1, 0}},
                    TransposeCase{"Asymmetric", {1, 5, 4, 2}, {3, 5, 2, 2}, {{2, 3}, {}, {2, 0}, {0, 3}}, {}},
                    TransposeCase{"Groups", {1, 4, 4, 6}, {3, 3, 6, 2}, {{2, 2}, {}, {}, {}, 3}, {}},
                    TransposeCase{"Dilated", {1, 4, 3, 2}, {3, 2, 2, 3}, {{2, 1}, {2, 3}, {1, 0}, {0, 1}}, {}},
                    TransposeCase{"DilatedGroups", {1, 3, 3, 4}, {2, 2, 4, 1}, {{1, 2}, {2, 2}, {}, {}, 2}, {}},
                    TransposeCase{"One", {1, 6, 3}, {4, 3, 2}, {{3}, {}, {1}, {0}}, {1}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone::topi
