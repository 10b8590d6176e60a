// The draft of a nest: what it takes for legal, and what makes one plan dearer than another.
#include "tuner/space/nests/nest_model.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "compiler/ir/annotations.h"
#include "compiler/support/check.h"
#include "compiler/te/te.h"
#include "compiler/topi/conv.h"
#include "tests/compiler/schedule/workloads.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {
namespace {

// C[i, j] += A[i, k] * B[k, j], the variables of the block being i, j, k; one thread unless told otherwise.
struct Product {
  Product(int64_t m, int64_t n, int64_t k, int threads = 1)
      : info(*AnalyzeWorkload(testing::Matmul(m, n, k))), target(*ParseTarget("cpu:x86-64-v4,l1d=48K,l2=1M,l3=32M")) {
    context = {&info, target, UsualMachine(target), threads};
  }
  // A tile of so many rows and vectors, and pieces of rows and columns.
  NestPlan Plan(int64_t rows, int64_t vectors, int64_t row_pieces = 1, int64_t column_pieces = 1) const {
    NestPlan plan;
    plan.lanes = 16;
    plan.inner[0] = rows;
    plan.inner[1] = vectors * plan.lanes;
    plan.pieces[0] = row_pieces;
    plan.pieces[1] = column_pieces;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t tiles = (info.blocks[0].extents[i] + plan.inner[i] - 1) / plan.inner[i];
      plan.steps[i] = (tiles + plan.pieces[i] - 1) / plan.pieces[i];
    }
    return plan;
  }
  std::optional<double> Cost(const NestPlan& plan, const NestShape& shape = {}) const {
    return NestModel(context, 0, shape).Cost(plan);
  }
  WorkloadInfo info;
  Target target;
  NestContext context;
};

// Operands that come from memory cost what memory takes, less where the next panel is asked for ahead; and all the
// less in short panels.
TEST(NestModel, ColdConstantsAreReadFromMemory) {
  PrimFunc func = testing::DenseRelu(96, 2048, 512);
  const WorkloadInfo warm_info = *AnalyzeWorkload(func);
  func.attrs[kColdConstants] = int64_t{1};
  Product product(96, 2048, 512);
  NestPlan plan = product.Plan(12, 2);
  plan.panels_outside = true;
  const NestShape shape = {.cut = ReductionCut::kBlocks, .along = 2, .panels = {1}};
  product.info = warm_info;
  const double warm = *product.Cost(plan, shape);
  product.info = *AnalyzeWorkload(func);
  ASSERT_TRUE(product.info.blocks[0].reads[1].cold);
  const double cold = *product.Cost(plan, shape);
  const double bytes = 2048 * 512 * 4;
  const Machine& machine = product.context.machine;
  EXPECT_GT(cold, warm + 0.5 * bytes / machine.memory / machine.cycles_per_us());
  plan.prefetch = true;
  const double ahead = *product.Cost(plan, shape);
  EXPECT_LT(ahead, cold);
  EXPECT_GT(ahead, warm);
}

// Two tiles pass over a panel too fast for a long one to be asked for beside them; blocks of k make it short.
TEST(NestModel, LongPanelsAreNotThereInTimeForFewTiles) {
  const auto gain_of_blocks = [](int64_t rows) {
    PrimFunc func = testing::DenseRelu(rows, 2048, 1024);
    func.attrs[kColdConstants] = int64_t{1};
    Product product(rows, 2048, 1024);
    product.info = *AnalyzeWorkload(func);
    NestPlan plan = product.Plan(8, 3);
    plan.panels_outside = true;
    plan.prefetch = true;
    const NestShape shape = {.cut = ReductionCut::kBlocks, .along = 2, .panels = {1}};
    const double whole = *product.Cost(plan, shape);
    plan.k_parts = 8;
    return whole / *product.Cost(plan, shape);
  };
  EXPECT_GT(gain_of_blocks(16), 1.1);
  EXPECT_GT(gain_of_blocks(16), gain_of_blocks(64));
}

// A row that meets every element of a panel once leaves a core time to begin the loads of many lines, so that nothing
// is gained by asking for them; two panels at a time come faster than one; and blocks of k leave one for the next.
TEST(NestModel, OneRowReadsColdConstantsInStreams) {
  PrimFunc func = testing::DenseRelu(1, 3072, 768);
  func.attrs[kColdConstants] = int64_t{1};
  Product product(1, 3072, 768);
  product.info = *AnalyzeWorkload(func);
  const NestShape shape = {.cut = ReductionCut::kBlocks, .along = 2, .panels = {1}};
  NestPlan plan = product.Plan(1, 4, 1, 4);
  const double one = *product.Cost(plan, shape);
  plan.prefetch = true;
  EXPECT_GE(*product.Cost(plan, shape), one);
  plan.prefetch = false;
  plan.streams = 2;
  const double two = *product.Cost(plan, shape);
  EXPECT_LT(two, 0.95 * one);
  plan.k_parts = 12;
  EXPECT_GT(*product.Cost(plan, shape), 1.05 * two);
}

// Pieces of rows read what their own core wrote and leave it to their own core; pieces of columns get half of it, and
// leave half of it, by way of the last cache.
TEST(NestModel, PiecesOfColumnsAreHandedOverBetweenCores) {
  const auto extra_us_of_slow_l3 = [](int64_t row_pieces, int64_t column_pieces, int threads) {
    Product fast(96, 128, 128, threads);
    fast.info.blocks[0].reads[1].constant = true;
    Product slow(96, 128, 128, threads);
    slow.info = fast.info;
    slow.context.machine.l3 /= 4;
    const NestPlan plan = fast.Plan(12, 2, row_pieces, column_pieces);
    return *slow.Cost(plan) - *fast.Cost(plan);
  };
  const double rows = extra_us_of_slow_l3(2, 1, 2), columns = extra_us_of_slow_l3(1, 2, 2);
  const Machine machine = UsualMachine(Product(96, 128, 128).target);
  // Half of A and of what a thread writes of C.
  const double bytes = 0.5 * 96 * (128 + 0.5 * 128) * 4;
  EXPECT_GT(columns, rows + 0.9 * bytes * (4 - 1) / machine.l3 / machine.cycles_per_us());
  EXPECT_EQ(extra_us_of_slow_l3(1, 1, 1), 0) << "one core has it all";
}

// Pieces of rows stand around those of columns: with as many of them as threads, each thread reads every constant.
TEST(NestModel, PiecesInsidePiecesOfRowsDoNotDivideConstants) {
  const auto us_of_memory = [](int64_t row_pieces, int64_t column_pieces) {
    PrimFunc func = testing::DenseRelu(96, 2048, 512);
    Product product(96, 2048, 512, 2);
    const NestPlan plan = product.Plan(12, 2, row_pieces, column_pieces);
    const NestShape shape = {.panels = {1}};
    product.info = *AnalyzeWorkload(func);
    const double warm = *product.Cost(plan, shape);
    func.attrs[kColdConstants] = int64_t{1};
    product.info = *AnalyzeWorkload(func);
    return *product.Cost(plan, shape) - warm;
  };
  EXPECT_NEAR(us_of_memory(2, 2), us_of_memory(2, 1), 0.05 * us_of_memory(2, 1));
  EXPECT_NEAR(us_of_memory(1, 2), us_of_memory(2, 2) / 2, 0.05 * us_of_memory(2, 2));
}

TEST(NestModel, RefusesWhatDoesNotFitTheRegisters) {
  const Product product(96, 128, 64);
  EXPECT_TRUE(product.Cost(product.Plan(14, 2)).has_value());
  EXPECT_FALSE(product.Cost(product.Plan(16, 2)).has_value()) << "32 accumulators, and nothing for the operands";
}

// An instruction that multiplies and does not add leaves its products in a register.
TEST(NestModel, ProductsThatAreAddedAfterwardsTakeARegister) {
  const Product product(96, 128, 64);
  NestShape shape{.panels = {1}};
  shape.dot_operand = 1;
  const auto fits = [&](const char* feature, int64_t rows, int64_t vectors) {
    shape.dot = FindDotProduct({kInt32, DType::UInt(8), DType::Int(8), 96, 128, 64}, {feature});
    HONE_CHECK(shape.dot.has_value());
    return product.Cost(product.Plan(rows, vectors), shape).has_value();
  };
  EXPECT_TRUE(fits("avx512vnni", 30, 1)) << "30 sums, a vector of columns and one of a row";
  EXPECT_FALSE(fits("avx512bw", 30, 1));
  EXPECT_TRUE(fits("avx512bw", 14, 2)) << "28 sums, 2 vectors of columns, one of a row and one of products";
}

// Sums in tile registers: as many tiles as there are registers beside one for either factor, all of them whole; four of
// them take the time of a product's latency at most.
TEST(NestModel, CountsTileRegisters) {
  const Product product(96, 128, 64);
  NestShape shape{.panels = {1}};
  shape.dot = FindDotProduct({kInt32, DType::UInt(8), DType::Int(8), 96, 128, 64}, {"amx-int8"});
  ASSERT_TRUE(shape.dot.has_value());
  ASSERT_TRUE(shape.dot->in_tiles());
  shape.dot_operand = 1;
  shape.tile_rows = 0;
  EXPECT_TRUE(product.Cost(product.Plan(48, 2), shape).has_value());
  EXPECT_FALSE(product.Cost(product.Plan(48, 4), shape).has_value()) << "12 tiles of sums";
  EXPECT_FALSE(product.Cost(product.Plan(64, 1), shape).has_value()) << "96 rows are one and a half";
  EXPECT_LT(*product.Cost(product.Plan(32, 2), shape), *product.Cost(product.Plan(16, 1), shape));
  EXPECT_LT(*product.Cost(product.Plan(32, 2), shape), *product.Cost(product.Plan(12, 2)) / 4);
}

// Matrices of 2 x 2 sums in vector registers: as many as there are registers beside those of the right factor, all of
// them whole; tiles of several share what they load.
TEST(NestModel, CountsMatricesInVectorRegisters) {
  const Product product(96, 128, 64);
  NestShape shape{.panels = {1}};
  shape.dot = FindDotProduct({kInt32, DType::UInt(8), DType::Int(8), 96, 128, 64}, {"i8mm"});
  ASSERT_TRUE(shape.dot.has_value());
  ASSERT_FALSE(shape.dot->in_tiles());
  shape.dot_operand = 1;
  shape.tile_rows = 0;
  const auto plan = [&](int64_t rows, int64_t columns) {
    NestPlan found = product.Plan(rows, 1);
    const size_t n = 1;
    found.lanes = 2;
    found.inner[n] = columns;
    found.steps[n] = 128 / columns;
    return found;
  };
  EXPECT_TRUE(product.Cost(plan(8, 8), shape).has_value());
  EXPECT_FALSE(product.Cost(plan(16, 16), shape).has_value()) << "64 registers of sums";
  EXPECT_FALSE(product.Cost(plan(10, 8), shape).has_value()) << "96 rows are none of whole tiles of ten";
  EXPECT_LT(*product.Cost(plan(8, 8), shape), *product.Cost(plan(2, 2), shape));
}

TEST(NestModel, RefusesPiecesWithNothingToDo) {
  const Product product(96, 128, 64, 2);
  EXPECT_TRUE(product.Cost(product.Plan(12, 2, 4)).has_value());
  EXPECT_FALSE(product.Cost(product.Plan(12, 2, 7)).has_value()) << "8 tiles in sevens are four pieces";
}

TEST(NestModel, RefusesAnUnrolledLoopThatDoesNotDivide) {
  const Product product(96, 128, 60);
  NestPlan plan = product.Plan(12, 2);
  plan.unroll = 4;
  EXPECT_TRUE(product.Cost(plan).has_value());
  plan.unroll = 8;
  EXPECT_FALSE(product.Cost(plan).has_value());
}

// The last tile is cut off: it costs what its rows cost, not a share of the whole nest.
TEST(NestModel, ATailCostsItsRowsAlone) {
  const Product whole(996, 128, 256), odd(1001, 128, 256);
  const double without = *whole.Cost(whole.Plan(12, 2)), with = *odd.Cost(odd.Plan(12, 2));
  EXPECT_GT(with, without);
  EXPECT_LT(with, 1.02 * without);
}

TEST(NestModel, LowTilesWaitForTheirSums) {
  const Product product(96, 128, 256);
  EXPECT_GT(*product.Cost(product.Plan(2, 1)), 2 * *product.Cost(product.Plan(12, 2)));
}

// Rows a multiple of 4096 bytes apart fall on one set of the first cache, which has 12 ways here.
TEST(NestModel, RowsOnOneSetOfTheCachePushEachOtherOut) {
  const Product aligned(140, 128, 1024), apart(140, 128, 1040);
  const double ratio = *aligned.Cost(aligned.Plan(14, 2)) / *apart.Cost(apart.Plan(14, 2));
  EXPECT_GT(ratio, 1.2);
  const double few = *aligned.Cost(aligned.Plan(8, 3)) / *apart.Cost(apart.Plan(8, 3));
  EXPECT_LT(few, 1.1) << "eight rows fit the ways";
}

// Pieces of rows read all of B each; of a piece of columns, a panel at a time is near.
TEST(NestModel, WhatEveryPieceReadsAgainCostsMore) {
  const Product product(48, 1536, 1536, 2);
  const NestShape shape{.panels = {1}};
  NestPlan rows = product.Plan(6, 4, 8, 1), columns = product.Plan(6, 4, 1, 8);
  rows.panels_outside = columns.panels_outside = true;
  rows.packing[1] = columns.packing[1] = Packing::kBefore;
  EXPECT_GT(*product.Cost(rows, shape), *product.Cost(columns, shape)) << "with the same copy into panels in front";
  NestPlan panels_inside = columns;
  panels_inside.panels_outside = false;
  EXPECT_GT(*product.Cost(panels_inside, shape), *product.Cost(columns, shape));
}

// Rows of B a multiple of 4096 bytes apart share a few sets of every cache, so that a panel of them is read from the
// last one for every row of tiles; copied, it is in the first.
TEST(NestModel, RowsFarApartAreWorthACopyInEveryBlock) {
  const NestShape shape{.panels = {1}};
  const auto gain = [&](Product product, int64_t column_pieces) {
    product.context.info = &product.info;
    product.context.machine.l3 = 10;
    NestPlan plan = product.Plan(6, 4, 1, column_pieces);
    const double as_it_is = *product.Cost(plan, shape);
    plan.packing[1] = Packing::kBlock;
    return as_it_is / *product.Cost(plan, shape);
  };
  EXPECT_GT(gain(Product(1024, 1024, 1024, 2), 16), 1.5);
  EXPECT_LT(gain(Product(1024, 1040, 1024, 2), 17), 1.2) << "the rows walk through the sets";
  EXPECT_LT(gain(Product(6, 1024, 1024, 2), 16), 1) << "the copy is read once";
}

// Pieces of rows copy all of B each.
TEST(NestModel, ACopyInEveryBlockIsPaidByEveryPiece) {
  const Product product(1024, 1024, 256, 2);
  const NestShape shape{.panels = {1}};
  const auto copy = [&](int64_t row_pieces, int64_t column_pieces) {
    NestPlan plan = product.Plan(8, 2, row_pieces, column_pieces);
    plan.packing[1] = Packing::kBlock;
    return *product.Cost(plan, shape);
  };
  EXPECT_GT(copy(32, 1), 1.2 * copy(1, 32));
}

TEST(NestModel, AnOperandMadeInThePieceIsNear) {
  const Product product(512, 64, 2048, 2);
  NestPlan plan = product.Plan(8, 3, 64);
  const double far = *product.Cost(plan);
  plan.near = 1;  // A
  EXPECT_LT(*product.Cost(plan), far);
}

// A depthwise convolution, 3 by 3, of an image that needs no padding; its variables are n, oh, ow, c, kh, kw.
struct Depthwise {
  explicit Depthwise(const std::string& l2 = "2M")
      : target(*ParseTarget("cpu:x86-64-v4,l1d=48K,l2=" + l2 + ",l3=32M")) {
    const te::Tensor x = te::Placeholder(te::Shape({1, 58, 58, 64}), kFloat32, "x");
    const te::Tensor w = te::Placeholder(te::Shape({3, 3, 64}), kFloat32, "w");
    info = *AnalyzeWorkload(te::CreatePrimFunc({x, w}, {topi::DepthwiseConv2d(x, w, {})}, "main"));
    context = {&info, target, UsualMachine(target), 1};
  }
  // In tiles of that many rows and columns of pixels, of one vector; with all taps in straight code or in loops.
  double Cost(int64_t rows, int64_t columns, bool straight, int lanes = 16, bool panels_outside = false) const {
    NestPlan plan;
    plan.lanes = lanes;
    plan.panels_outside = panels_outside;
    plan.inner[1] = rows;
    plan.inner[2] = columns;
    plan.inner[3] = lanes;
    plan.steps[1] = 56 / rows;
    plan.steps[2] = 56 / columns;
    plan.steps[3] = 64 / lanes;
    plan.window = straight;
    plan.unroll = straight ? 3 : 1;
    return NestModel(context, 0, {}).Cost(plan).value_or(-1);
  }
  WorkloadInfo info;
  Target target;
  NestContext context;
};

// In straight code the taps share what they read: of 28 results 54 vectors, more than there are registers.
TEST(NestModel, TapsInStraightCodeShareWhatTheRegistersHold) {
  const Depthwise depthwise;
  ASSERT_GT(depthwise.Cost(4, 7, true), 0);
  EXPECT_LT(depthwise.Cost(2, 4, true), depthwise.Cost(4, 7, true));
  EXPECT_GT(depthwise.Cost(2, 4, false), depthwise.Cost(4, 7, false)) << "in loops the larger tile is better";
}

// The sums of the next tiles do not wait for those of this one.
TEST(NestModel, SmallTilesOfStraightCodeOverlap) {
  const Depthwise depthwise;
  EXPECT_LT(depthwise.Cost(1, 2, true), 1.7 * depthwise.Cost(2, 4, true)) << "two sums at once, and eight";
}

// Neighbouring tiles read some of the same pixels, the second time from a near cache.
TEST(NestModel, WindowsReadWhatOverlapsFromNear) {
  const Depthwise depthwise;
  EXPECT_LT(depthwise.Cost(2, 2, true), 1.4 * depthwise.Cost(4, 2, true)) << "16 pixels for 4, and 24 for 8";
}

// Eight channels are half a line: the other half is read at once, or when all pixels have passed.
TEST(NestModel, HalvesOfALineAreFetchedTwice) {
  const Depthwise depthwise;
  EXPECT_GT(depthwise.Cost(2, 2, true, 8, true), 1.2 * depthwise.Cost(2, 2, true, 8, false));
  EXPECT_LT(depthwise.Cost(2, 2, true, 16, true), 1.1 * depthwise.Cost(2, 2, true, 16, false)) << "whole lines";
}

// A line of each pixel at a time, of an image beyond the second cache: those beside it come ahead of their use where
// they are next, and for nothing where all pixels pass before.
TEST(NestModel, LinesBesideEachOtherAreBestReadInOneGo) {
  const Depthwise far("128K");
  EXPECT_GT(far.Cost(2, 2, true, 16, true), 1.05 * far.Cost(2, 2, true, 16, false));
}

// A convolution of 3 channels, 3 by 3, stride 2; its variables are n, oh, ow, oc, kh, kw, ic. Cycles of straight code
// of all taps over those of a loop over the channels, of tiles of 2 by 3 pixels and two vectors.
double StraightOverLoop(const char* target_text) {
  const te::Tensor x = te::Placeholder(te::Shape({1, 49, 49, 3}), kFloat32, "x");
  const te::Tensor w = te::Placeholder(te::Shape({3, 3, 3, 32}), kFloat32, "w");
  const WorkloadInfo info =
      *AnalyzeWorkload(te::CreatePrimFunc({x, w}, {topi::Conv2d(x, w, {.strides = {2, 2}})}, "main"));
  const Target target = *ParseTarget(target_text);
  const auto cost = [&](bool straight) {
    NestPlan plan;
    plan.lanes = 8;
    plan.inner = {1, 2, 3, 16};
    plan.steps = {1, 12, 8, 2};
    for (size_t i = 4; i < kMostIters; ++i) plan.inner[i] = plan.steps[i] = 1;
    plan.window = true;
    plan.unroll = straight ? 3 : 1;
    return NestModel({&info, target, UsualMachine(target), 1}, 0, {}).Cost(plan).value_or(-1);
  };
  return cost(true) / cost(false);
}

// Pixels that several taps read stay in registers as far as there are some left beside twelve sums; the others are
// stored and loaded again, which a loop over the channels does not do.
TEST(NestModel, ElementsThatTapsShareTakeRegisters) {
  const double few = StraightOverLoop("cpu:x86-64-v3,l1d=32K,l2=512K,l3=32M");
  const double many = StraightOverLoop("cpu:x86-64-v4,l1d=32K,l2=512K,l3=32M");
  EXPECT_GT(few, 1) << many;
  EXPECT_GT(few, 1.1 * many);
}

// A convolution of 96 channels in groups, 1 by 1; its variables are n, oh, ow, oc, kh, kw, ic.
double GroupedCost(int64_t groups, int64_t vectors, int64_t unroll) {
  const te::Tensor x = te::Placeholder(te::Shape({1, 8, 8, 96}), kFloat32, "x");
  const te::Tensor w = te::Placeholder(te::Shape({1, 1, 96 / groups, 96}), kFloat32, "w");
  const WorkloadInfo info =
      *AnalyzeWorkload(te::CreatePrimFunc({x, w}, {topi::Conv2d(x, w, {.groups = groups})}, "main"));
  const Target target = *ParseTarget("cpu:x86-64-v4,l1d=48K,l2=2M,l3=32M");
  NestPlan plan;
  plan.lanes = 16;
  plan.inner[2] = 4;
  plan.inner[3] = vectors * 16;
  plan.steps = {1, 8, 2, (6 + vectors - 1) / vectors, 1, 1, 1};
  plan.unroll = unroll;
  return NestModel({&info, target, UsualMachine(target), 1}, 0, {}).Cost(plan).value_or(-1);
}

TEST(NestModel, VectorsOfOneGroupReadOneElement) {
  ASSERT_GT(GroupedCost(6, 3, 1), 0);
  EXPECT_LT(GroupedCost(6, 3, 1), 1.5 * GroupedCost(1, 3, 1) / 6) << "a sixth of the work";
}

// Of 12 channels, the vectors of three begin with a group, those of two begin anywhere.
TEST(NestModel, TilesThatBeginWithAGroupAreCheaper) {
  ASSERT_GT(GroupedCost(8, 3, 1), 0);
  EXPECT_GT(GroupedCost(8, 2, 1), 2 * GroupedCost(8, 3, 1));
}

// A core whose multiply-adds are known of its whole vectors alone has a draft of what fills half of one.
TEST(NestModel, HalfAVectorHasADraft) {
  const WorkloadInfo info = *AnalyzeWorkload(testing::Matmul(16, 4, 64));
  const Target target = *ParseTarget("cpu:spacemit-x60");
  NestPlan plan;
  plan.lanes = 4;
  plan.inner[0] = plan.inner[1] = plan.steps[0] = 4;
  const std::optional<double> us = NestModel({&info, target, UsualMachine(target), 1}, 0, {}).Cost(plan);
  ASSERT_TRUE(us.has_value());
  EXPECT_LT(*us, 1e3);
}

// Of 4 channels, a vector has those of four groups.
TEST(NestModel, ChannelsOfAGroupInStraightCodeShareVectors) {
  ASSERT_GT(GroupedCost(24, 1, 4), 0);
  EXPECT_GT(GroupedCost(24, 1, 2), 1.2 * GroupedCost(24, 1, 4));
}

// The same convolution, of planes: channels first, so that its output channels are rows of the tile. Its variables are
// n, oc, oh, ow, kh, kw, ic.
TEST(NestModel, RowsOfOneGroupShareWhatTheyRead) {
  const te::Tensor x = te::Placeholder(te::Shape({1, 96, 1, 480}), kFloat32, "x");
  const te::Tensor w = te::Placeholder(te::Shape({1, 1, 8, 96}), kFloat32, "w");
  const WorkloadInfo info = *AnalyzeWorkload(
      te::CreatePrimFunc({x, w}, {topi::Conv2d(x, w, {.groups = 12, .channels_first = true})}, "main"));
  const Target target = *ParseTarget("cpu:sapphirerapids,l1d=48K,l2=2M,l3=32M");
  const auto cost = [&](int64_t rows) {
    NestPlan plan;
    plan.lanes = 16;
    plan.inner[1] = rows;
    plan.inner[3] = 48;
    plan.steps = {1, 96 / rows, 1, 10, 1, 1, 1};
    return NestModel({&info, target, UsualMachine(target), 1}, 0, {}).Cost(plan).value_or(-1);
  };
  ASSERT_GT(cost(8), 0);
  EXPECT_GT(cost(6), 1.2 * cost(8)) << "tiles of six begin anywhere in a group";
}

// By every second element a vector takes two loads and a shuffle, not a gather.
TEST(NestModel, VectorsOfEverySecondElementAreShuffled) {
  const auto cost = [](int64_t stride) {
    const te::Tensor x = te::Placeholder(te::Shape({1, 8, 64, 64 * stride + 2}), kFloat32, "x");
    const te::Tensor w = te::Placeholder(te::Shape({3, 3, 8}), kFloat32, "w");
    const WorkloadInfo info = *AnalyzeWorkload(te::CreatePrimFunc(
        {x, w}, {topi::DepthwiseConv2d(x, w, {.strides = {1, stride}, .channels_first = true})}, "main"));
    const Target target = *ParseTarget("cpu:x86-64-v4,l1d=48K,l2=2M,l3=32M");
    NestPlan plan;
    plan.lanes = 16;
    plan.inner[2] = 2;
    plan.inner[3] = 16;
    plan.steps = {1, 8, 31, 4, 1, 1};
    plan.window = true;
    plan.unroll = 3;
    return NestModel({&info, target, UsualMachine(target), 1}, 0, {}).Cost(plan).value_or(-1);
  };
  ASSERT_GT(cost(1), 0);
  EXPECT_GT(cost(2), 1.05 * cost(1));
  EXPECT_LT(cost(2), 3 * cost(1));
  EXPECT_GT(cost(3), 2 * cost(2));
}

// What is made and taken in a piece is in the same place for the next one.
TEST(NestModel, WhatStaysInAPieceIsNear) {
  const Product product(8192, 64, 64, 2);
  NestPlan plan = product.Plan(8, 3, 64);
  plan.near = 1;  // A
  EXPECT_LT(*product.Cost(plan, {.pieces_of = 1}), *product.Cost(plan));
}

}  // namespace
}  // namespace hone
