// The lanes of vectors along a variable.
#include "tuner/space/nests/lanes.h"

#include <gtest/gtest.h>

#include "compiler/te/te.h"
#include "compiler/topi/conv.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone {
namespace {

// Along the output channels of a 3x3 convolution of 96 channels, `group` of which make each group.
int LanesOfGroups(int64_t group, const std::string& target) {
  const te::Tensor x = te::Placeholder({1, 14, 14, 96}, kFloat32, "x");
  const te::Tensor w = te::Placeholder({3, 3, group, 96}, kFloat32, "w");
  const WorkloadInfo info =
      *AnalyzeWorkload(te::CreatePrimFunc({x, w}, {topi::Conv2d(x, w, {.groups = 96 / group})}, "main"));
  const BlockInfo& conv = info.blocks[static_cast<size_t>(info.Find("conv2d"))];
  return LanesFor(*ParseTarget(target), conv, conv.last_iter());
}

TEST(Lanes, AreNoMoreThanTheExtentTakes) {
  const WorkloadInfo info = *AnalyzeWorkload(testing::Matmul(8, 5, 16));
  const BlockInfo& product = info.blocks[0];
  EXPECT_EQ(LanesFor(*ParseTarget("cpu:x86-64-v4"), product, product.last_iter()), 8);
  EXPECT_EQ(LanesFor(*ParseTarget("cpu:cortex-a76"), product, product.last_iter()), 4);
  EXPECT_EQ(LanesFor(*ParseTarget("cpu:x86-64-v4"), product, -1), 1);
}

// A vector within one group reads one element; another is put together of several.
TEST(Lanes, AreOfOneGroupWhereThatIsALongVector) {
  EXPECT_EQ(LanesOfGroups(8, "cpu:x86-64-v4"), 8);
  EXPECT_EQ(LanesOfGroups(24, "cpu:x86-64-v4"), 8);
  EXPECT_EQ(LanesOfGroups(16, "cpu:x86-64-v4"), 16);
  EXPECT_EQ(LanesOfGroups(48, "cpu:x86-64-v4"), 16);
  EXPECT_EQ(LanesOfGroups(12, "cpu:x86-64-v4"), 16) << "four lanes are short";
  EXPECT_EQ(LanesOfGroups(4, "cpu:x86-64-v3"), 8) << "four lanes are short";
}

}  // namespace
}  // namespace hone
