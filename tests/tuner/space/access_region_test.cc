#include "tuner/space/nests/access_region.h"

#include <gtest/gtest.h>

#include <array>
#include <span>

#include "compiler/schedule/primitives/inline.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/schedule.h"
#include "compiler/te/te.h"
#include "compiler/topi/conv.h"
#include "compiler/topi/dense.h"
#include "compiler/topi/shape_ops.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone {
namespace {

constexpr std::array<int64_t, 0> kWhole{};

// C[i, j] += A[i, k] * B[k, j].
TEST(AccessRegion, OfAProductIsItsRows) {
  const WorkloadInfo info = *AnalyzeWorkload(testing::Matmul(96, 128, 64));
  const BlockInfo& block = info.blocks[0];
  const AccessRegion a(block, block.reads[0]), b(block, block.reads[1]);
  const std::array<int64_t, 3> tile{12, 32, 64};
  EXPECT_EQ(a.Elements(tile), 12 * 64);
  EXPECT_EQ(b.Elements(tile), 64 * 32);
  EXPECT_EQ(a.RunBytes(tile), 12 * 64 * 4) << "whole rows follow each other";
  EXPECT_EQ(b.RunBytes(tile), 32 * 4);
}

// Neighbouring results of a convolution share what they read: 3 by 3 taps around a row of 4 read 3 by 6.
TEST(AccessRegion, OfAWindowHasAHalo) {
  const WorkloadInfo info = *AnalyzeWorkload(testing::ConvBiasResidualRelu({16, 16, 8, 16}));
  const BlockInfo& conv = info.blocks[static_cast<size_t>(info.Find("conv"))];
  std::vector<int64_t> tile(conv.iters.size(), 1);
  for (size_t i = 0; i < conv.iters.size(); ++i) {
    if (!conv.spatial(static_cast<int>(i))) tile[i] = conv.extents[i];
  }
  const AccessRegion input(conv, conv.reads[0]);
  const double one = input.Elements(tile);
  EXPECT_EQ(one, 3 * 3 * 8);
  for (size_t i = conv.iters.size(); i-- > 0;) {  // the last spatial variable that moves the input: the column
    if (!conv.spatial(static_cast<int>(i)) || conv.reads[0].strides[i] == 0) continue;
    tile[i] = 4;
    break;
  }
  EXPECT_EQ(input.Elements(tile), 3 * 6 * 8);
}

// What taps that are dilated, or pixels that are strided, leave out between them is not read; a copy has it all the
// same.
TEST(AccessRegion, LeavesOutWhatADilationOrAStrideSkips) {
  const te::Tensor x = te::Placeholder(te::Shape({1, 18, 18, 8}), kFloat32, "x");
  const te::Tensor w = te::Placeholder(te::Shape({5, 5, 8}), kFloat32, "w");
  const auto region = [&](const topi::ConvAttrs& attrs) {
    const WorkloadInfo info =
        *AnalyzeWorkload(te::CreatePrimFunc({x, w}, {topi::DepthwiseConv2d(x, w, attrs, "dw")}, "main"));
    return AccessRegion(info.blocks[0], info.blocks[0].reads[0]);
  };
  const AccessRegion dilated = region({{}, {2, 2}});
  EXPECT_EQ(dilated.Elements(std::array<int64_t, 6>{1, 1, 1, 8, 5, 5}), 5 * 5 * 8);
  EXPECT_EQ(dilated.BoxElements(std::array<int64_t, 6>{1, 1, 1, 8, 5, 5}), 9 * 9 * 8);
  EXPECT_EQ(dilated.Elements(std::array<int64_t, 6>{1, 1, 4, 8, 5, 5}), 5 * (4 + 8) * 8) << "four neighbours fill gaps";
  const AccessRegion strided = region({{6, 6}, {}});
  EXPECT_EQ(strided.Elements(std::array<int64_t, 6>{1, 2, 1, 8, 5, 5}), 10 * 5 * 8) << "a row between is left out";
  EXPECT_EQ(strided.BoxElements(std::array<int64_t, 6>{1, 2, 1, 8, 5, 5}), 11 * 5 * 8);
  const WorkloadInfo planes = *AnalyzeWorkload(te::CreatePrimFunc(
      {x},
      {te::Compute(
          {1, 18, 9, 3}, [&](const te::Indices& i) { return x(i[0], i[1], i[2], i[3] * IntConst(3)); }, "every_third")},
      "main"));
  const AccessRegion apart(planes.blocks[0], planes.blocks[0].reads[0]);
  EXPECT_EQ(apart.Elements(std::array<int64_t, 4>{1, 1, 1, 3}), 7) << "between them along the last dimension";
  EXPECT_EQ(apart.ElementsAlone(std::array<int64_t, 4>{1, 1, 1, 3}), 3);
}

// Rows of a product that are the pixels of an image of 4 by 5: the indices of a pixel are quotients and remainders.
TEST(JoinDimensions, PixelsAsRowsAreOneDimension) {
  const te::Tensor x = te::Placeholder(te::Shape({2, 4, 5, 8}), kFloat32, "x");
  const te::Tensor w = te::Placeholder(te::Shape({8, 16}), kFloat32, "w");
  const te::Tensor y = topi::Dense(topi::Reshape(x, {40, 8}, "rows"), w);
  Schedule schedule(te::CreatePrimFunc({x, w}, {y}, "main"));
  ASSERT_TRUE(ComputeInline(schedule, *GetBlock(schedule, "rows")).ok());
  const WorkloadInfo info = *AnalyzeWorkload(schedule.func());
  const BlockInfo& dense = info.blocks[0];
  const std::vector<JoinedDimension> joined = JoinDimensions(dense, dense.reads[0]);
  ASSERT_EQ(joined.size(), 2U);
  EXPECT_EQ(joined[0].last, 3U);
  EXPECT_EQ(joined[0].extent, 40);
  EXPECT_EQ(joined[1].extent, 8);
  const AccessRegion rows(dense, dense.reads[0]);
  EXPECT_EQ(rows.Elements(std::array<int64_t, 3>{7, 16, 8}), 7 * 8);
}

// Two groups of 24 channels each: a tile of output channels reads those of the groups it touches.
TEST(AccessRegion, OfGroupsIsTheirChannels) {
  const te::Tensor x = te::Placeholder(te::Shape({1, 6, 7, 48}), kFloat32, "x");
  const te::Tensor w = te::Placeholder(te::Shape({3, 3, 24, 48}), kFloat32, "w");
  const WorkloadInfo info = *AnalyzeWorkload(te::CreatePrimFunc({x, w}, {topi::Conv2d(x, w, {.groups = 2})}, "main"));
  const BlockInfo& conv = info.blocks[0];  // n, oh, ow, oc, kh, kw, ic
  ASSERT_EQ(conv.reads[0].steps.iter, 3);
  EXPECT_EQ(conv.reads[0].steps.period, 24);
  EXPECT_EQ(conv.reads[0].steps.stride, 24);
  EXPECT_EQ(conv.reads[1].steps.iter, -1) << "the weights have a stride";
  const AccessRegion input(conv, conv.reads[0]);
  const auto elements = [&](int64_t channels) {
    return input.Elements(std::array<int64_t, 7>{1, 1, 1, channels, 1, 1, 24});
  };
  EXPECT_EQ(elements(16), 24);
  EXPECT_EQ(elements(48), 48);
}

TEST(AccessRegion, OfRowsFarApartFallsOnFewSets) {
  const WorkloadInfo info = *AnalyzeWorkload(testing::Matmul(96, 1024, 64));
  const AccessRegion b(info.blocks[0], info.blocks[0].reads[1]);  // rows of 4096 bytes
  const std::array<int64_t, 3> tile{12, 16, 64};
  EXPECT_EQ(b.SetShare(tile, kWhole, 4096), 1.0 / 64) << "a line of each row, all on one set";
  EXPECT_EQ(b.SetShare(tile, tile, 4096), 1) << "in a buffer of its own the lines follow each other";
}

}  // namespace
}  // namespace hone
