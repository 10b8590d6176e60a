// The passes that move transposes and reshapes, on graphs they rewrite and on near misses they must leave alone.
#include "compiler/graph/passes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using Ints = Net::Ints;

// ---- SinkLayout

TEST(SinkLayout, TransposesMeetTheirInverse) {
  Net net;
  const int x = net.Input({1, 4, 5, 6});
  const int first = net.Op("transpose", {x}, Perm({0, 2, 3, 1}));
  const int shifted = net.Op("add", {net.Op("relu", {first}), net.Constant({4}, 1)});
  const int cut = net.Op("slice", {shifted},
                         {{"starts", Ints{0, 1, 0, 0}}, {"sizes", Ints{1, 3, 6, 4}}, {"steps", Ints{1, 1, 1, 1}}});
  net.Output(net.Op("transpose", {cut}, Perm({0, 3, 1, 2})));
  EXPECT_THAT(Operators(After(net, SinkLayout)), testing::Not(testing::HasSubstr("transpose")));
}

TEST(SinkLayout, ReductionsTakeOtherAxes) {
  Net net;
  const int moved = net.Op("transpose", {net.Input({2, 3, 4, 5})}, Perm({0, 2, 3, 1}));
  net.Output(net.Op("reduce_sum", {moved}, {{"axes", Ints{1, 2}}, {"keepdims", int64_t{0}}}));
  EXPECT_EQ(Operators(After(net, SinkLayout)), "reduce_sum");
}

TEST(SinkLayout, ATransposeAtTheEndStays) {
  Net net;
  net.Output(net.Op("relu", {net.Op("transpose", {net.Input({2, 3, 4})}, Perm({2, 0, 1}))}));
  EXPECT_EQ(Operators(After(net, SinkLayout)), "relu transpose");
}

TEST(SinkLayout, OperandsOfDifferentLayoutKeepTheirTransposes) {
  Net net;
  const int a = net.Op("transpose", {net.Input({3, 3, 3})}, Perm({2, 0, 1}));
  const int b = net.Op("transpose", {net.Input({3, 3, 3})}, Perm({1, 2, 0}));
  net.Output(net.Op("add", {a, b}));
  EXPECT_EQ(Operators(After(net, SinkLayout)), "transpose transpose add");
}

// The second operand is broadcast: its transpose has fewer dimensions than the one that could sink.
TEST(SinkLayout, ATransposeOfAnOperandOfLowerRankStays) {
  Net net;
  const int a = net.Op("transpose", {net.Input({5, 4, 3, 2})}, Perm({3, 2, 1, 0}));
  const int b = net.Op("transpose", {net.Input({5, 4})}, Perm({1, 0}));
  net.Output(net.Op("add", {a, b}));
  EXPECT_EQ(Operators(After(net, SinkLayout)), "transpose transpose add");
}

TEST(SinkLayout, RowsOfTheWeightMoveInPlaceOfTheImage) {
  Net net;
  const int moved = net.Op("transpose", {net.Input({2, 4, 3, 5})}, Perm({0, 3, 1, 2}));
  const int flat = net.Op("reshape", {moved}, Shape({2, 60}));
  net.Output(net.Op("dense", {flat, net.Constant({60, 7}, 1)}));
  const Graph graph = After(net, [](Graph& g) {
    const absl::Status sunk = SinkLayout(g);
    return sunk.ok() ? FoldConstants(g) : sunk;
  });
  EXPECT_EQ(Operators(graph), "reshape dense");
}

TEST(SinkLayout, SoftmaxKeepsItsRowsTogether) {
  Net net;
  const int moved = net.Op("transpose", {net.Input({2, 4, 3})}, Perm({0, 2, 1}));
  net.Output(net.Op("softmax", {moved}, {{"axis", int64_t{2}}}));
  EXPECT_EQ(Operators(After(net, SinkLayout)), "transpose softmax") << "its axis would no longer be the last";
}

// Channels of two groups change places between two changes of layout: they do so where they lie side by side, and
// nothing else moves.
TEST(SinkLayout, ShufflesOfChannelsStayAmongThem) {
  Net net;
  const int planes = net.Op("transpose", {net.Input({1, 4, 5, 6})}, Perm({0, 3, 1, 2}));
  const int groups = net.Op("reshape", {planes}, Shape({1, 2, 3, 4, 5}));
  const int shuffled = net.Op("transpose", {groups}, Perm({0, 2, 1, 3, 4}));
  const int joined = net.Op("relu", {net.Op("reshape", {shuffled}, Shape({1, 6, 4, 5}))});
  net.Output(net.Op("transpose", {joined}, Perm({0, 2, 3, 1})));
  const Graph graph = After(net, SinkLayout);
  EXPECT_EQ(Operators(graph), "relu reshape transpose reshape");
  EXPECT_EQ(IntsAttr(graph.nodes[2].attrs, "perm"), (Ints{0, 1, 2, 4, 3}));
}

TEST(SinkLayout, AShuffleAloneStaysAsItIs) {
  Net net;
  const int shuffled = net.Op("transpose", {net.Input({4, 5, 2, 3})}, Perm({0, 1, 3, 2}));
  net.Output(net.Op("reshape", {shuffled}, Shape({4, 5, 6})));
  EXPECT_EQ(Operators(After(net, SinkLayout)), "transpose reshape");
}

// Dimensions of size 1 are nowhere in particular.
TEST(SinkLayout, OperandsWhoseTransposesDoTheSameAgree) {
  Net net;
  const int a = net.Op("transpose", {net.Input({4, 5, 6, 1})}, Perm({2, 3, 0, 1}));
  const int b = net.Op("transpose", {net.Input({1, 4, 5, 6})}, Perm({3, 0, 1, 2}));
  net.Output(net.Op("concat", {a, b}, {{"axis", int64_t{1}}}));
  EXPECT_EQ(Operators(After(net, SinkLayout)), "reshape concat transpose");
}

// ---- FoldTransposes

TEST(FoldTransposes, ProductsOfBatchesReadInTheOrderThatIsThere) {
  Net net;
  const int q = net.Op("transpose", {net.Input({5, 3, 4})}, Perm({1, 0, 2}));
  const int k = net.Op("transpose", {net.Input({6, 3, 4})}, Perm({1, 2, 0}));
  net.Output(net.Op("batch_matmul", {q, k}));
  const Graph graph = After(net, FoldTransposes);
  EXPECT_EQ(Operators(graph), "batch_matmul");
  EXPECT_EQ(graph.type(graph.outputs[0]).shape, (Ints{3, 5, 6}));
}

TEST(FoldTransposes, BroadcastBatches) {
  Net net;
  const int a = net.Op("transpose", {net.Input({5, 1, 3, 4})}, Perm({2, 1, 0, 3}));
  const int b = net.Op("transpose", {net.Input({7, 4, 2})}, Perm({2, 1, 0}));
  net.Output(net.Op("batch_matmul", {a, b}));
  EXPECT_EQ(Operators(After(net, FoldTransposes)), "batch_matmul");
}

TEST(FoldTransposes, WhatAnotherReadsStays) {
  Net net;
  const int q = net.Op("transpose", {net.Input({5, 3, 4})}, Perm({1, 0, 2}));
  net.Output(net.Op("batch_matmul", {q, net.Input({3, 4, 6})}));
  net.Output(net.Op("relu", {q}));
  EXPECT_EQ(Operators(After(net, FoldTransposes)), "transpose batch_matmul relu");
}

TEST(FoldTransposes, RowsOfADenseProductStay) {
  Net net;
  const int x = net.Op("transpose", {net.Input({6, 5})}, Perm({1, 0}));
  net.Output(net.Op("dense", {x, net.Constant({6, 4}, 1)}));
  EXPECT_EQ(Operators(After(net, FoldTransposes)), "transpose dense");
}

// ---- KeepChannelsFirst

const Ints kToLast = {0, 2, 3, 1}, kToFirst = {0, 3, 1, 2};

// An image with channels first, [1, channels, size, size], through `op` with channels last, a bias and relu, and back.
Net BetweenTransposes(const char* op, int64_t channels, int64_t size, const Ints& weight, const Attrs& attrs = {}) {
  Net net;
  const int image = net.Op("transpose", {net.Input({1, channels, size, size})}, Perm(kToLast));
  const int y = net.Op(op, {image, net.Constant(weight, 1)}, attrs);
  const int biased = net.Op("add", {y, net.Constant({weight.back()}, 2)});
  net.Output(net.Op("transpose", {net.Op("relu", {biased})}, Perm(kToFirst)));
  return net;
}

TEST(KeepChannelsFirst, ConvolutionsOfChannelsForThemselves) {
  const Attrs attrs = {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 1}}};
  const Graph graph = After(BetweenTransposes("depthwise_conv2d", 3, 9, {3, 3, 3}, attrs), KeepChannelsFirst);
  EXPECT_EQ(Operators(graph), "depthwise_conv2d add relu");
  EXPECT_EQ(graph.type(graph.outputs[0]).shape, Ints({1, 3, 5, 9}));
}

TEST(KeepChannelsFirst, ConvolutionsOfFewChannelsAGroup) {
  const Attrs attrs = {{"groups", int64_t{2}}, {"pads", Ints{0, 0, 0, 0}}, {"strides", Ints{1, 1}}};
  EXPECT_EQ(Operators(After(BetweenTransposes("conv", 8, 7, {1, 1, 4, 6}, attrs), KeepChannelsFirst)), "conv add relu");
  const Attrs many = {{"groups", int64_t{2}}, {"pads", Ints{0, 0, 0, 0}}, {"strides", Ints{1, 1}}};
  EXPECT_EQ(Operators(After(BetweenTransposes("conv", 34, 7, {1, 1, 17, 6}, many), KeepChannelsFirst)),
            "transpose conv add relu transpose");
}

TEST(KeepChannelsFirst, Pools) {
  for (const char* op : {"max_pool", "avg_pool"}) {
    for (const int64_t size : {11, 23}) {
      Net net;
      const Attrs attrs = {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
      const int image = net.Op("transpose", {net.Input({1, 5, size, 11})}, Perm(kToLast));
      net.Output(net.Op("transpose", {net.Op(op, {image}, attrs)}, Perm(kToFirst)));
      const Graph graph = After(net, KeepChannelsFirst);
      EXPECT_EQ(Operators(graph), op);
      EXPECT_EQ(graph.type(graph.outputs[0]).shape, Ints({1, 5, (size + 1) / 2, 6}));
    }
  }
}

TEST(KeepChannelsFirst, WhatWantsItsChannelsSideBySideStays) {
  const Attrs pads = {{"pads", Ints{1, 1, 1, 1}}};
  EXPECT_EQ(Operators(After(BetweenTransposes("conv", 4, 9, {3, 3, 4, 5}, pads), KeepChannelsFirst)),
            "transpose conv add relu transpose");
  EXPECT_EQ(Operators(After(BetweenTransposes("depthwise_conv2d", 4, 3, {3, 3, 4}, pads), KeepChannelsFirst)),
            "transpose depthwise_conv2d add relu transpose")
      << "rows of three pixels";
}

TEST(KeepChannelsFirst, WhatAnotherReadsIsMovedAnyway) {
  Net net;
  const int image = net.Op("transpose", {net.Input({1, 3, 9, 9})}, Perm(kToLast));
  const int y = net.Op("depthwise_conv2d", {image, net.Constant({3, 3, 3}, 1)});
  net.Output(net.Op("transpose", {y}, Perm(kToFirst)));
  net.Output(net.Op("relu", {image}));
  EXPECT_EQ(Operators(After(net, KeepChannelsFirst)), "transpose depthwise_conv2d transpose relu");
}

// A product of rows of pixels, as a convolution 1 by 1 is: its weight is on the left then.
TEST(KeepChannelsFirst, ProductsOfPixels) {
  const auto between = [](int64_t pixels, int64_t in, int64_t out) {
    Net net;
    const int rows = net.Op("transpose", {net.Input({in, 2 * pixels})}, Perm({1, 0}));
    const int y = net.Op("add", {net.Op("dense", {rows, net.Constant({in, out}, 1)}), net.Constant({out}, 2)});
    const int image = net.Op("reshape", {y}, {{"shape", Ints{1, 2, pixels, out}}});
    net.Output(net.Op("transpose", {image}, Perm(kToFirst)));
    return Operators(After(net, KeepChannelsFirst, 1e-4));
  };
  EXPECT_EQ(between(64, 5, 3), "dense add reshape");
  EXPECT_EQ(between(8, 5, 3), "transpose dense add reshape transpose") << "few pixels";
  EXPECT_EQ(between(64, 208, 208), "transpose dense add reshape transpose") << "many operations for each pixel";
  EXPECT_EQ(between(64, 208, 207), "dense add reshape") << "rows of channels that begin anywhere in a line";
}

TEST(FoldTransposes, ProductsOfBatchesWriteInTheOrderThatIsWanted) {
  Net net;
  const int product = net.Op("batch_matmul", {net.Input({2, 3, 5, 4}), net.Input({2, 1, 4, 6})});
  net.Output(net.Op("relu", {net.Op("transpose", {product}, Perm({1, 2, 0, 3}))}));
  const Graph graph = After(net, FoldTransposes);
  EXPECT_EQ(Operators(graph), "batch_matmul relu");
  EXPECT_EQ(graph.type(graph.outputs[0]).shape, (Ints{3, 5, 2, 6}));
}

TEST(FoldTransposes, DimensionsOfOneElementAreInNoOnesWay) {
  Net net;
  const int product = net.Op("batch_matmul", {net.Input({3, 5, 4}), net.Input({3, 4, 6})});
  const int heads = net.Op("reshape", {product}, Shape({1, 3, 5, 6}));
  net.Output(net.Op("transpose", {heads}, Perm({0, 2, 1, 3})));
  const int other = net.Op("batch_matmul", {net.Input({4, 5, 4}), net.Input({4, 4, 6})});
  net.Output(net.Op("transpose", {net.Op("reshape", {other}, Shape({2, 2, 5, 6}))}, Perm({0, 2, 1, 3})));
  const Graph graph = After(net, FoldTransposes);
  EXPECT_EQ(Operators(graph), "batch_matmul reshape batch_matmul reshape transpose") << "the second splits batches";
  EXPECT_EQ(graph.type(graph.outputs[0]).shape, (Ints{1, 5, 3, 6}));
}

TEST(FoldTransposes, ColumnsOfResultsAndWhatAnotherReadsStay) {
  Net net;
  const int product = net.Op("batch_matmul", {net.Input({3, 5, 4}), net.Input({3, 4, 6})});
  net.Output(net.Op("transpose", {product}, Perm({0, 2, 1})));
  const int read_twice = net.Op("batch_matmul", {net.Input({3, 5, 4}), net.Input({3, 4, 6})});
  net.Output(net.Op("transpose", {read_twice}, Perm({1, 0, 2})));
  net.Output(net.Op("relu", {read_twice}));
  EXPECT_EQ(Operators(After(net, FoldTransposes)), "batch_matmul transpose batch_matmul transpose relu");
}

// ---- ExposeOperands

Attrs Slice(const Ints& starts, const Ints& sizes) {
  return {{"starts", starts}, {"sizes", sizes}, {"steps", Ints(starts.size(), 1)}};
}

TEST(ExposeOperands, SlicesAreOfTheReshapedWhole) {
  Net net;
  const int x = net.Input({5, 24});
  net.Output(net.Op("reshape", {net.Op("slice", {x}, Slice({0, 8}, {5, 8}))}, Shape({5, 2, 4})));
  const int apart = net.Input({5, 3, 2, 4});  // one of three, without the dimension that says which
  net.Output(net.Op("reshape", {net.Op("slice", {apart}, Slice({0, 2, 0, 0}, {5, 1, 2, 4}))}, Shape({5, 2, 4})));
  const Graph graph = After(net, ExposeOperands);
  EXPECT_EQ(Operators(graph), "reshape slice reshape slice");
  for (const int n : {1, 3}) EXPECT_EQ(graph.type(graph.nodes[n].inputs[0]).shape, (Ints{5, 6, 4}));
}

TEST(ExposeOperands, SlicesThatDoNotFitTheReshapeStay) {
  Net net;
  const int x = net.Input({5, 24});
  const auto cut = [&](const Attrs& slice, const Ints& shape) {
    net.Output(net.Op("reshape", {net.Op("slice", {x}, slice)}, Shape(shape)));
  };
  cut(Slice({0, 6}, {5, 8}), {5, 2, 4});                                                   // begins inside a piece
  cut(Slice({0, 8}, {5, 10}), {5, 2, 5});                                                  // 24 is no number of pieces
  cut(Slice({0, 8}, {5, 8}), {40});                                                        // joins rows
  cut(Slice({1, 8}, {4, 8}), {4, 2, 4});                                                   // along two axes
  cut({{"starts", Ints{0, 0}}, {"sizes", Ints{5, 8}}, {"steps", Ints{1, 2}}}, {5, 2, 4});  // every second
  const Graph graph = After(net, ExposeOperands);
  EXPECT_EQ(Operators(graph), "slice reshape slice reshape slice reshape slice reshape slice reshape");
}

TEST(ExposeOperands, BatchesStayApartWhereTheirTransposesCanBeFolded) {
  Net net;
  const int q = net.Op("transpose", {net.Input({2, 5, 3, 4})}, Perm({0, 2, 1, 3}));
  const int k = net.Op("transpose", {net.Input({2, 6, 3, 4})}, Perm({0, 2, 3, 1}));
  net.Output(
      net.Op("batch_matmul", {net.Op("reshape", {q}, Shape({6, 5, 4})), net.Op("reshape", {k}, Shape({6, 4, 6}))}));
  EXPECT_EQ(Operators(After(net, ExposeOperands)), "transpose transpose batch_matmul reshape");
  EXPECT_EQ(Operators(After(net,
                            [](Graph& g) {
                              const absl::Status exposed = ExposeOperands(g);
                              return exposed.ok() ? FoldTransposes(g) : exposed;
                            })),
            "batch_matmul reshape");
}

TEST(ExposeOperands, BatchesThatAreJoinedOtherwiseStayJoined) {
  Net net;
  const int q = net.Op("transpose", {net.Input({2, 5, 3, 4})}, Perm({0, 2, 1, 3}));
  const int other = net.Op("reshape", {net.Input({3, 2, 4, 6})}, Shape({6, 4, 6}));
  net.Output(net.Op("batch_matmul", {net.Op("reshape", {q}, Shape({6, 5, 4})), other}));
  const int plain = net.Op("reshape", {net.Input({1, 6, 5, 4})}, Shape({6, 5, 4}));
  net.Output(net.Op("batch_matmul", {plain, net.Op("reshape", {net.Input({1, 6, 4, 6})}, Shape({6, 4, 6}))}));
  EXPECT_EQ(Operators(After(net, ExposeOperands)),
            "transpose reshape reshape batch_matmul reshape reshape batch_matmul");
}

// Windows of an image and the heads of each, with a mask that all windows share.
TEST(ExposeOperands, SeveralBatchesStayApartAtOneSize) {
  Net net;
  const int q = net.Op("reshape", {net.Input({2, 3, 5, 4})}, Shape({6, 5, 4}));
  const int scores = net.Op("batch_matmul", {q, net.Op("reshape", {net.Input({2, 3, 4, 6})}, Shape({6, 4, 6}))});
  net.Output(net.Op("add", {net.Op("reshape", {scores}, Shape({2, 3, 5, 6})), net.Constant({3, 5, 6}, 1)}));
  const auto at_open_sizes = [](Graph& graph) {
    graph.sizes_are_open = true;
    return ExposeOperands(graph);
  };
  EXPECT_EQ(Operators(After(net, ExposeOperands)), "batch_matmul add");
  EXPECT_EQ(Operators(After(net, at_open_sizes)), "reshape reshape batch_matmul reshape add");
}

// As windows of attention are exported: matrices transposed after they were joined, a dimension of one element left
// over from a slice, a factor behind another slice.
TEST(ExposeOperands, SeveralBatchesStayApartHoweverTheyWereJoined) {
  Net net;
  const Ints cut{2, 5, 1, 3, 4}, from{0, 0, 1, 0, 0}, ones(5, 1);
  const int qk = net.Input({2, 5, 2, 3, 4});
  const Attrs first{{"starts", Ints(5, 0)}, {"sizes", cut}, {"steps", ones}};
  const Attrs second{{"starts", from}, {"sizes", cut}, {"steps", ones}};
  const int scaled = net.Op("multiply", {net.Op("slice", {qk}, first), net.Filled({}, 0.5)});
  const int q = net.Op("transpose", {net.Op("reshape", {scaled}, Shape({2, 5, 3, 4}))}, Perm({0, 2, 1, 3}));
  const int k = net.Op("transpose", {net.Op("slice", {qk}, second)}, Perm({2, 0, 3, 1, 4}));
  const int joined = net.Op("transpose", {net.Op("reshape", {k}, Shape({6, 5, 4}))}, Perm({0, 2, 1}));
  const int scores = net.Op("batch_matmul", {net.Op("reshape", {q}, Shape({6, 5, 4})), joined});
  net.Output(net.Op("add", {net.Op("reshape", {scores}, Shape({2, 3, 5, 5})), net.Constant({3, 5, 5}, 1)}));
  const Graph graph = After(net, ExposeOperands);
  EXPECT_THAT(Operators(graph), testing::EndsWith("batch_matmul multiply add"));
  EXPECT_EQ(graph.type(graph.nodes.back().outputs[0]).shape, (Ints{2, 3, 5, 5}));
}

TEST(ExposeOperands, AFactorBehindASliceComesAfterTheProduct) {
  Net net;
  const int q = net.Op("slice", {net.Input({3, 5, 8})}, Slice({0, 0, 4}, {3, 5, 4}));
  const int scaled = net.Op("multiply", {q, net.Filled({}, 0.5)});
  net.Output(net.Op("batch_matmul", {scaled, net.Input({3, 4, 6})}));
  EXPECT_EQ(Operators(After(net, ExposeOperands)), "slice batch_matmul multiply");
}

TEST(ExposeOperands, OtherFactorsStay) {
  Net net;
  const int q = net.Op("slice", {net.Input({3, 5, 8})}, Slice({0, 0, 4}, {3, 5, 4}));
  net.Output(net.Op("batch_matmul", {net.Op("multiply", {q, net.Constant({4}, 1)}), net.Input({3, 4, 6})}));
  const int relu = net.Op("relu", {net.Input({3, 5, 4})});  // takes the factor itself
  net.Output(net.Op("batch_matmul", {net.Op("multiply", {relu, net.Filled({}, 0.5)}), net.Input({3, 4, 6})}));
  EXPECT_EQ(Operators(After(net, ExposeOperands)), "slice multiply batch_matmul relu multiply batch_matmul");
}

// ---- RaiseReshapes

// A convolution 1 by 1 over an image of 3 by 4 pixels, of what `f` makes of it.
std::string PointwiseOf(Net& net, int image) {
  const int rows = net.Op("reshape", {image}, Shape({12, net.graph().type(image).shape.back()}));
  net.Output(net.Op("dense", {rows, net.Constant({net.graph().type(rows).shape[1], 5}, 1)}));
  return Operators(After(net, RaiseReshapes));
}

TEST(RaiseReshapes, ProductsStandNextToWhatComputesTheirOperand) {
  Net net;
  const int both = net.Op("concat", {net.Input({1, 3, 4, 2}), net.Input({1, 3, 4, 6})}, {{"axis", int64_t{3}}});
  const int scaled = net.Op("multiply", {both, net.Constant({8}, 1)});
  EXPECT_EQ(PointwiseOf(net, net.Op("relu", {scaled})), "reshape reshape concat multiply relu dense");
  Net gated;
  const int gate = gated.Op("sigmoid", {gated.Input({1, 1, 1, 8})});
  EXPECT_EQ(PointwiseOf(gated, gated.Op("multiply", {gated.Input({1, 3, 4, 8}), gate})),
            "sigmoid reshape reshape multiply dense");
}

TEST(RaiseReshapes, WhatFollowsAnotherProductStaysWithIt) {
  Net net;
  const int conv = net.Op("conv", {net.Input({1, 5, 6, 2}), net.Constant({3, 3, 2, 8}, 1)});
  EXPECT_EQ(PointwiseOf(net, net.Op("relu", {net.Op("add", {conv, net.Constant({8}, 2)})})),
            "conv add relu reshape dense");
}

TEST(RaiseReshapes, WhatAnotherReadsStays) {
  Net net;
  const int relu = net.Op("relu", {net.Input({1, 3, 4, 8})});
  net.Output(net.Op("exp", {relu}));
  EXPECT_EQ(PointwiseOf(net, relu), "relu exp reshape dense");
}

TEST(RaiseReshapes, FactorsOfOneImageOfSeveralStay) {
  Net net;
  const int scaled = net.Op("multiply", {net.Input({2, 2, 3, 8}), net.Input({2, 1, 1, 8})});
  EXPECT_EQ(PointwiseOf(net, scaled), "multiply reshape dense");
}

TEST(RaiseReshapes, ConcatenationsThatTheReshapeJoinsStay) {
  Net net;
  const int rows = net.Op("concat", {net.Input({1, 3, 1, 8}), net.Input({1, 3, 3, 8})}, {{"axis", int64_t{2}}});
  EXPECT_EQ(PointwiseOf(net, rows), "concat reshape dense");
}

}  // namespace
}  // namespace hone
