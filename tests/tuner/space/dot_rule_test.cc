// The rule that chooses an instruction which adds up products of narrow types, and what fusion leaves it to work on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/schedule/trace/trace.h"
#include "compiler/te/te.h"
#include "compiler/topi/conv.h"
#include "compiler/topi/dense.h"
#include "compiler/topi/elementwise.h"
#include "compiler/topi/shape_ops.h"
#include "tests/tuner/space/sketch_start.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SketchStart;

constexpr DType kUInt8 = DType::UInt(8), kInt8 = DType::Int(8), kInt16 = DType::Int(16);

// Two operands that are parts of one tensor stay two: the one whose elements are apart is worth a copy.
TEST(BlockFusion, OperandsOfOneTensorStayApart) {
  const te::Tensor both = te::Placeholder({7, 4, 37}, kFloat32, "qk");
  const te::Tensor keys = topi::StridedSlice(both, {2}, {4}, {1}, {1}, "keys"),
                   queries = topi::StridedSlice(both, {0}, {2}, {1}, {1}, "queries");
  const te::Tensor scores = topi::BatchMatmulInOrder(queries, {1, 0, 2}, keys, {1, 2, 0}, {0, 1, 2});
  const SketchStart start(te::CreatePrimFunc({both}, {scores}, "main"));
  EXPECT_TRUE(start.fusion.IsInlined(start.info.Find("queries")));
  EXPECT_FALSE(start.fusion.IsInlined(start.info.Find("keys")));
}

// An instruction takes operands of the type that they have in memory.
TEST(BlockFusion, ConversionsStayOutsideOfSums) {
  const te::Tensor bytes = te::Placeholder({9, 16}, kUInt8, "a"), b = te::Placeholder({16, 64}, kInt16, "b");
  const te::Tensor wide = topi::Cast(bytes, kInt16, "wide");
  const PrimFunc func = te::CreatePrimFunc({bytes, b}, {topi::Dense(wide, b)}, "main");
  const SketchStart start(func);
  EXPECT_FALSE(start.fusion.IsInlined(start.info.Find("wide")));
  const Trace trace = *DefaultTrace(func, {*ParseTarget("cpu:x86-64-v3"), 2});
  EXPECT_THAT(OriginOf(trace)->generator, HasSubstr("dot2_s16s16_s32(dense)"));
}

struct DotCase {
  const char* name;
  const char* target;
  DType left, right;
  int64_t n, k;
  const char* intrinsic;  // "": none
  int64_t lanes;
};
class DotRuleTest : public ::testing::TestWithParam<DotCase> {};
TEST_P(DotRuleTest, TakesTheInstructionThatAddsMost) {
  const DotCase& c = GetParam();
  const te::Tensor a = te::Placeholder({9, c.k}, c.left, "a"), b = te::Placeholder({c.k, c.n}, c.right, "b");
  SketchStart start(te::CreatePrimFunc({a, b}, {topi::Dense(a, b)}, "main"));
  start.context.target = *ParseTarget(c.target);
  const std::vector<Sketch> offers = start.Offer(MakeDotRule(), "dense");
  if (*c.intrinsic == '\0') {
    EXPECT_TRUE(offers.empty());
    return;
  }
  ASSERT_EQ(offers.size(), 1u);
  const SketchBlock& block = offers[0].blocks[0];
  ASSERT_TRUE(block.dot.has_value());
  EXPECT_EQ(block.dot->intrinsic->name, c.intrinsic);
  EXPECT_EQ(block.dot->lanes, c.lanes);
  EXPECT_THAT(block.panels, ElementsAre(block.dot_operand));
  EXPECT_EQ(start.info.blocks[0].reads[static_cast<size_t>(block.dot_operand)].buffer.name(), "b");
}
INSTANTIATE_TEST_SUITE_P(
    Cases, DotRuleTest,
    ::testing::Values(
        DotCase{"Vnni", "cpu:x86-64-v4+avx512vnni", kUInt8, kInt8, 64, 16, "dot4_u8s8_s32", 16},
        DotCase{"NarrowVectorsWhereTheyDivide", "cpu:x86-64-v4+avx512vnni", kUInt8, kInt8, 40, 16, "dot4_u8s8_s32", 8},
        DotCase{"PairsOfSigned", "cpu:x86-64-v4+avx512vnni", kInt8, kInt8, 64, 16, "dot2_s8s8_s32", 16},
        DotCase{"PairsOnAvx512", "cpu:x86-64-v4", kUInt8, kInt8, 64, 16, "dot2_u8s8_s32", 16},
        DotCase{"PairsOnAvx2", "cpu:x86-64-v3", kUInt8, kInt8, 64, 16, "dot2_u8s8_s32", 8},
        DotCase{"VnniOnAvx2", "cpu:x86-64-v3+avxvnni", kUInt8, kInt8, 64, 16, "dot4_u8s8_s32", 8},
        DotCase{"RowsThatFillNoTile", "cpu:x86-64-v4+avx512vnni+amx-tile+amx-int8", kUInt8, kInt8, 64, 16,
                "dot4_u8s8_s32", 16},
        DotCase{"Tiles", "cpu:x86-64-v4+avx512vnni+amx-tile+amx-int8", kUInt8, kInt8, 64, 64, "mma4_u8s8_s32", 16},
        DotCase{"Sdot", "cpu:cortex-a76", kInt8, kInt8, 64, 16, "dot4_s8s8_s32", 4},
        DotCase{"SdotOfNeoverseN1", "cpu:neoverse-n1", kInt8, kInt8, 64, 16, "dot4_s8s8_s32", 4},
        DotCase{"NoUsdot", "cpu:cortex-a76", kUInt8, kInt8, 64, 16, "", 0},  // graph/passes/int8_products.cc
        DotCase{"Usdot", "cpu:neoverse-n2", kUInt8, kInt8, 64, 16, "dot4_u8s8_s32", 4},
        DotCase{"NoInstruction", "cpu:cortex-a72", kInt8, kInt8, 64, 16, "", 0},
        DotCase{"RiscVLong", "cpu:generic-rv64", kInt16, kInt16, 64, 16, "dot1_s16s16_s32", 4},
        DotCase{"NeonLong", "cpu:cortex-a72", kInt16, kInt16, 64, 16, "dot1_s16s16_s32", 4},
        DotCase{"NoWholeGroups", "cpu:x86-64-v4+avx512vnni", kUInt8, kInt8, 64, 15, "", 0},
        DotCase{"NoWholeVectors", "cpu:x86-64-v4+avx512vnni", kUInt8, kInt8, 37, 16, "", 0},
        DotCase{"OtherTypes", "cpu:x86-64-v4+avx512vnni", kFloat32, kFloat32, 64, 16, "", 0}),
    [](const auto& info) { return std::string(info.param.name); });

// No candidate can be faster than the lower bound, which goes by operations in the time of float32's.
TEST(DotRule, FasterProductsAreFewerOperations) {
  const auto least = [](const char* target, DType left = kUInt8) {
    const te::Tensor a = te::Placeholder({64, 256}, left, "a"), b = te::Placeholder({256, 64}, kInt8, "b");
    return *LeastFlop(te::CreatePrimFunc({a, b}, {topi::Dense(a, b)}, "main"), {*ParseTarget(target), 1});
  };
  const double plain = least("cpu:cortex-a72");
  EXPECT_EQ(plain, 2.0 * 64 * 64 * 256);
  EXPECT_EQ(least("cpu:cortex-a76"), plain) << "no instruction for bytes of both signs";
  EXPECT_EQ(least("cpu:cortex-a76", kInt8), plain / 4);
  EXPECT_EQ(least("cpu:x86-64-v4+avx512vnni"), plain / 4);
  EXPECT_EQ(least("cpu:x86-64-v3"), plain / 2) << "pairs; their sums may run beside them";
  EXPECT_LT(least("cpu:x86-64-v4+avx512vnni+amx-tile+amx-int8"), plain / 16);
}

TEST(DotRule, TakesRowsThatBeginAnywhere) {  // pixels of an image that is read as a matrix
  const te::Tensor image = te::Placeholder({3, 5, 16}, kUInt8, "a"), b = te::Placeholder({16, 64}, kInt8, "b");
  const te::Tensor rows = topi::Reshape(image, {15, 16}, "rows");
  const PrimFunc func = te::CreatePrimFunc({image, b}, {topi::Dense(rows, b)}, "main");
  const Trace trace = *DefaultTrace(func, {*ParseTarget("cpu:x86-64-v3"), 2});
  EXPECT_THAT(OriginOf(trace)->generator, HasSubstr("dot2_u8s8_s32(dense)"));
}

TEST(DotRule, TakesInt8WhereMinimalFilteringWouldDo) {  // as graphs have it where there is no usdot
  const te::Tensor x = te::Placeholder({1, 14, 14, 32}, kInt8, "x"), w = te::Placeholder({3, 3, 32, 64}, kInt8, "w");
  const te::Tensor y = topi::Conv(x, w, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, -128}, "conv2d");
  const PrimFunc func = te::CreatePrimFunc({x, w}, {y}, "main", {{"constants", std::vector<int64_t>{1}}});
  for (const char* cpu : {"cpu:cortex-a76", "cpu:cortex-a78", "cpu:neoverse-n1"}) {
    EXPECT_THAT(OriginOf(*DefaultTrace(func, {*ParseTarget(cpu), 2}))->generator, HasSubstr("dot4_s8s8_s32(conv2d)"));
  }
}

TEST(DotRule, TakesSmallMatricesOfWholeRows) {
  const auto generator = [](int64_t rows, DType left, DType right) {
    const te::Tensor a = te::Placeholder({rows, 32}, left, "a"), b = te::Placeholder({32, 64}, right, "b");
    const PrimFunc func = te::CreatePrimFunc({a, b}, {topi::Dense(a, b)}, "main");
    return OriginOf(*DefaultTrace(func, {*ParseTarget("cpu:neoverse-n2"), 2}))->generator;
  };
  EXPECT_THAT(generator(12, kUInt8, kInt8), HasSubstr("mma8_u8s8_s32(dense)"));
  EXPECT_THAT(generator(12, kInt8, kInt8), HasSubstr("mma8_s8s8_s32(dense)"));
  EXPECT_THAT(generator(9, kUInt8, kInt8), HasSubstr("dot4_u8s8_s32(dense)"));
}

TEST(DotRule, LeavesTransposedRowsAlone) {  // elements of a group are apart
  const te::Tensor a = te::Placeholder({2, 16, 9}, kUInt8, "a"), b = te::Placeholder({2, 16, 64}, kInt8, "b");
  SketchStart start(te::CreatePrimFunc({a, b}, {topi::BatchMatmul(a, b, true)}, "main"));
  start.context.target = *ParseTarget("cpu:x86-64-v4+avx512vnni");
  EXPECT_TRUE(start.Offer(MakeDotRule(), "batch_matmul").empty());
}

}  // namespace
}  // namespace hone
