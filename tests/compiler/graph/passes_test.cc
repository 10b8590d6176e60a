// The passes that simplify, on graphs they rewrite and on near misses they must leave alone. What a graph computes
// never changes.
#include "compiler/graph/passes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using Ints = Net::Ints;

// ---- FoldConstants

TEST(FoldConstants, WhatDependsOnConstantsAloneIsOne) {
  Net net;
  const int x = net.Input({2, 3});
  const int sum = net.Op("add", {net.Constant({2, 3}, 1), net.Constant({3}, 2)});
  net.Output(net.Op("multiply", {x, net.Op("sqrt", {sum})}));
  const Graph graph = After(net, FoldConstants);
  EXPECT_EQ(Operators(graph), "multiply");
  EXPECT_TRUE(graph.values[graph.nodes[0].inputs[1]].is_constant());
}

TEST(FoldConstants, WhatDependsOnAnInputStays) {
  Net net;
  const int x = net.Input({2, 3});
  net.Output(net.Op("sqrt", {net.Op("add", {net.Op("abs", {x}), net.Constant({3}, 2)})}));
  EXPECT_EQ(Operators(After(net, FoldConstants)), "abs add sqrt");
}

TEST(FoldConstants, StopsAtItsBudget) {
  Net net;
  const int sum = net.Op("add", {net.Constant({8, 8}, 1), net.Constant({8, 8}, 2)});
  net.Output(net.Op("multiply", {net.Input({8, 8}), sum}));
  const Graph graph = After(net, [](Graph& g) {
    g.fold_budget = 10;
    return FoldConstants(g);
  });
  EXPECT_EQ(Operators(graph), "add multiply");
}

// ---- CropWindows

// A convolution of 1x1xK over L elements, in stride 1 of one dimension: what its weight and its padding have become.
struct CropCase {
  const char* name;
  int64_t image, kernel, stride, dilation, before, after;
  int64_t taps, now_before, now_after;
};
void PrintTo(const CropCase& c, std::ostream* out) { *out << c.name; }

class CropWindowsTest : public testing::TestWithParam<CropCase> {};
TEST_P(CropWindowsTest, CutsOffWhatReadsPaddingAlone) {
  const CropCase& c = GetParam();
  for (const char* op : {"conv", "depthwise_conv2d"}) {
    Net net;
    const bool depthwise = std::string_view(op) == "depthwise_conv2d";
    const int weight = net.Constant(depthwise ? Ints{1, c.kernel, 4} : Ints{1, c.kernel, 4, 2}, 1);
    net.Output(net.Op(
        op, {net.Input({1, 2, c.image, 4}), weight},
        {{"strides", Ints{1, c.stride}}, {"dilations", Ints{1, c.dilation}}, {"pads", Ints{0, c.before, 0, c.after}}}));
    const Graph graph = After(net, CropWindows);
    ASSERT_EQ(Operators(graph), op);
    EXPECT_EQ(graph.type(graph.nodes[0].inputs[1]).shape[1], c.taps);
    EXPECT_EQ(IntsAttr(graph.nodes[0].attrs, "pads"), (Ints{0, c.now_before, 0, c.now_after}));
  }
}
INSTANTIATE_TEST_SUITE_P(, CropWindowsTest,
                         testing::Values(CropCase{"the_middle_is_left", 16, 3, 1, 24, 24, 24, 1, 0, 0},
                                         CropCase{"as_far_as_the_image", 16, 3, 1, 16, 16, 16, 1, 0, 0},
                                         CropCase{"one_element_meets_it", 16, 3, 1, 15, 15, 15, 3, 15, 15},
                                         CropCase{"in_front_alone", 4, 5, 1, 2, 8, 2, 3, 4, 2},
                                         CropCase{"behind_alone", 4, 5, 1, 2, 2, 8, 3, 2, 4},
                                         CropCase{"padding_is_never_negative", 16, 3, 1, 24, 20, 28, 2, 20, 4},
                                         CropCase{"one_tap_stays", 2, 1, 1, 1, 3, 3, 1, 3, 3},
                                         CropCase{"a_stride_steps_over_the_image", 1, 2, 4, 3, 3, 4, 1, 0, 4}),
                         [](const auto& c) { return c.param.name; });

TEST(CropWindows, PaddingOfAnotherValueAndOpenSizesStay) {
  const auto taps_after = [](int64_t pad_value, bool open) {
    Net net;
    const int x = net.Input({1, 4, 4, 4}, DType::Int(8)), w = net.Constant(NdArray(DType::Int(8), {3, 3, 4, 2}));
    net.Output(
        net.Op("conv", {x, w}, {{"dilations", Ints{8, 8}}, {"pads", Ints{8, 8, 8, 8}}, {"pad_value", pad_value}}));
    Graph graph = net.graph();
    graph.sizes_are_open = open;
    EXPECT_TRUE(CropWindows(graph).ok());
    return graph.type(graph.nodes.back().inputs[1]).shape[0];
  };
  EXPECT_EQ(taps_after(0, false), 1);
  EXPECT_EQ(taps_after(3, false), 3);
  EXPECT_EQ(taps_after(0, true), 3);
}

// ---- RemoveNoOps

struct NoOpCase {
  const char* name;
  std::function<int(Net&, int x)> build;  // x is [2, 3, 4]
  const char* left;                       // operators
};
void PrintTo(const NoOpCase& c, std::ostream* out) { *out << c.name; }

class RemoveNoOpsTest : public testing::TestWithParam<NoOpCase> {};
TEST_P(RemoveNoOpsTest, LeavesWhatCounts) {
  Net net;
  const int x = net.Input({2, 3, 4});
  net.Output(net.Op("relu", {GetParam().build(net, x)}));
  EXPECT_EQ(Operators(After(net, RemoveNoOps)), GetParam().left);
}

const NoOpCase kNoOps[] = {
    {"Identity", [](Net& n, int x) { return n.Op("identity", {x}); }, "relu"},
    {"SameReshape",
     [](Net& n, int x) {
       return n.Op("reshape", {x}, Shape({2, 3, 4}));
     },
     "relu"},
    {"OtherReshape",
     [](Net& n, int x) {
       return n.Op("reshape", {x}, Shape({6, 4}));
     },
     "reshape relu"},
    {"ReshapesInARow",
     [](Net& n, int x) {
       return n.Op("reshape", {n.Op("reshape", {x}, Shape({6, 4}))}, Shape({24}));
     },
     "reshape relu"},
    {"IdentityPermutation",
     [](Net& n, int x) {
       return n.Op("transpose", {x}, Perm({0, 1, 2}));
     },
     "relu"},
    {"InversePermutations",
     [](Net& n, int x) {
       return n.Op("transpose", {n.Op("transpose", {x}, Perm({2, 0, 1}))}, Perm({1, 2, 0}));
     },
     "relu"},
    {"PermutationsThatDoNotCancel",
     [](Net& n, int x) {
       return n.Op("transpose", {n.Op("transpose", {x}, Perm({2, 0, 1}))}, Perm({2, 0, 1}));
     },
     "transpose relu"},
    {"PlusZero",
     [](Net& n, int x) {
       return n.Op("add", {x, n.Filled({4}, 0)});
     },
     "relu"},
    {"PlusOne",
     [](Net& n, int x) {
       return n.Op("add", {x, n.Filled({4}, 1)});
     },
     "add relu"},
    {"TimesOne",
     [](Net& n, int x) {
       return n.Op("multiply", {n.Filled({}, 1), x});
     },
     "relu"},
    {"DividedByOne",
     [](Net& n, int x) {
       return n.Op("divide", {x, n.Filled({3, 1}, 1)});
     },
     "relu"},
    {"OneDividedBy",
     [](Net& n, int x) {
       return n.Op("divide", {n.Filled({}, 1), n.Op("exp", {x})});
     },
     "exp divide relu"},
    {"ZeroMinus",
     [](Net& n, int x) {
       return n.Op("subtract", {n.Filled({}, 0), x});
     },
     "subtract relu"},
    {"PlusZeroThatBroadcasts",
     [](Net& n, int x) {
       return n.Op("add", {x, n.Filled({5, 2, 3, 4}, 0)});
     },
     "add relu"},
    {"WholeSlice",
     [](Net& n, int x) {
       return n.Op("slice", {x}, {{"starts", Ints{0, 0, 0}}, {"sizes", Ints{2, 3, 4}}, {"steps", Ints{1, 1, 1}}});
     },
     "relu"},
    {"ReversedSlice",
     [](Net& n, int x) {
       return n.Op("slice", {x}, {{"starts", Ints{1, 0, 0}}, {"sizes", Ints{2, 3, 4}}, {"steps", Ints{-1, 1, 1}}});
     },
     "slice relu"},
    {"ExpandBeforeElementwise",
     [](Net& n, int x) {
       const int row = n.Op("expand", {n.Input({4})}, Shape({2, 3, 4}));
       return n.Op("maximum", {x, row});
     },
     "maximum relu"},
    {"ExpandThatMakesTheShape",
     [](Net& n, int) {
       const int row = n.Op("expand", {n.Input({4})}, Shape({3, 4}));
       return n.Op("abs", {row});
     },
     "expand abs relu"},
    {"EqualNodes",
     [](Net& n, int x) {
       return n.Op("multiply", {n.Op("exp", {x}), n.Op("exp", {x})});
     },
     "exp multiply relu"},
    {"NodesOfOtherAttributes",
     [](Net& n, int x) {
       return n.Op("multiply",
                   {n.Op("softmax", {x}, {{"axis", int64_t{1}}}), n.Op("softmax", {x}, {{"axis", int64_t{2}}})});
     },
     "softmax softmax multiply relu"},
};
INSTANTIATE_TEST_SUITE_P(Cases, RemoveNoOpsTest, testing::ValuesIn(kNoOps),
                         [](const testing::TestParamInfo<NoOpCase>& info) { return std::string(info.param.name); });

// ---- FoldScales

TEST(FoldScales, BatchNormGoesIntoTheConvolution) {
  Net net;
  const int x = net.Input({1, 6, 6, 3});
  const int conv = net.Op("conv", {x, net.Constant({3, 3, 3, 5}, 1)});
  const int scaled = net.Op("multiply", {conv, net.Constant({5}, 2)});
  net.Output(net.Op("add", {scaled, net.Constant({5}, 3)}));
  EXPECT_EQ(Operators(After(net, FoldScales)), "conv add");
}

TEST(FoldScales, BiasIsScaledToo) {
  Net net;
  const int x = net.Input({4, 6});
  const int biased = net.Op("add", {net.Op("dense", {x, net.Constant({6, 5}, 1)}), net.Constant({5}, 2)});
  net.Output(net.Op("subtract", {net.Op("divide", {biased, net.Constant({5}, 3)}), net.Constant({5}, 4)}));
  EXPECT_EQ(Operators(After(net, FoldScales)), "dense add");
}

TEST(FoldScales, ScalesByRowStay) {
  Net net;
  const int dense = net.Op("dense", {net.Input({4, 6}), net.Constant({6, 5}, 1)});
  net.Output(net.Op("multiply", {dense, net.Constant({4, 1}, 2)}));
  EXPECT_EQ(Operators(After(net, FoldScales)), "dense multiply");
}

TEST(FoldScales, ProductsOfOtherUseStay) {
  Net net;
  const int dense = net.Op("dense", {net.Input({4, 6}), net.Constant({6, 5}, 1)});
  net.Output(net.Op("multiply", {dense, net.Constant({5}, 2)}));
  net.Output(net.Op("relu", {dense}));
  EXPECT_EQ(Operators(After(net, FoldScales)), "dense multiply relu");
}

TEST(FoldScales, WeightsThatAreComputedStay) {
  Net net;
  const int dense = net.Op("dense", {net.Input({4, 6}), net.Input({6, 5})});
  net.Output(net.Op("multiply", {dense, net.Constant({5}, 2)}));
  EXPECT_EQ(Operators(After(net, FoldScales)), "dense multiply");
}

// ---- RecognisePatterns

int Gelu(Net& net, int x, double root, double one) {
  const int erf = net.Op("erf", {net.Op("divide", {x, net.Filled({}, root)})});
  const int product = net.Op("multiply", {x, net.Op("add", {erf, net.Filled({}, one)})});
  return net.Op("multiply", {product, net.Filled({}, 0.5)});
}

TEST(RecognisePatterns, Gelu) {
  Net net;
  net.Output(Gelu(net, net.Input({3, 4}), 1.41421356, 1));
  EXPECT_EQ(Operators(After(net, RecognisePatterns)), "gelu");
}

TEST(RecognisePatterns, AlmostGelu) {
  for (const auto& [root, one] : {std::pair(1.5, 1.0), std::pair(1.41421356, 2.0)}) {
    Net net;
    net.Output(Gelu(net, net.Input({3, 4}), root, one));
    EXPECT_EQ(Operators(After(net, RecognisePatterns)), "divide erf add multiply multiply");
  }
}

TEST(RecognisePatterns, Gates) {
  Net net;
  const int x = net.Input({3, 4}), y = net.Input({3, 4});
  net.Output(net.Op("multiply", {x, net.Op("sigmoid", {x})}));
  net.Output(net.Op("multiply", {net.Op("hard_sigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}), x}));
  net.Output(net.Op("multiply", {net.Op("hard_sigmoid", {x}, {{"alpha", 0.2}, {"beta", 0.5}}), x}));
  net.Output(net.Op("multiply", {y, net.Op("sigmoid", {x})}));
  const std::string left = Operators(After(net, RecognisePatterns));
  EXPECT_THAT(left, testing::HasSubstr("silu"));
  EXPECT_THAT(left, testing::HasSubstr("hard_swish"));
  EXPECT_THAT(left, testing::HasSubstr("hard_sigmoid multiply"));
  EXPECT_THAT(left, testing::HasSubstr("sigmoid"));
}

// `axis` of the variance: 1 is the mean's.
int LayerNorm(Net& net, int x, int64_t axis) {
  const int centred = net.Op("subtract", {x, net.Op("reduce_mean", {x}, Over({1}))});
  const int variance = net.Op("reduce_mean", {net.Op("multiply", {centred, centred})}, Over({axis}));
  const int deviation = net.Op("sqrt", {net.Op("add", {variance, net.Filled({}, 1e-5)})});
  const int normal = net.Op("divide", {centred, deviation});
  return net.Op("add", {net.Op("multiply", {normal, net.Constant({6}, 1)}), net.Constant({6}, 2)});
}

TEST(RecognisePatterns, LayerNorm) {
  Net net;
  net.Output(LayerNorm(net, net.Input({4, 6}), 1));
  // The scale is found first, then the shift that follows it.
  const Graph graph = After(net, [](Graph& g) { return RecognisePatterns(g); });
  EXPECT_EQ(Operators(graph), "layer_norm");
  EXPECT_EQ(graph.nodes[0].inputs.size(), 3u);
}

TEST(RecognisePatterns, MeanAndVarianceOverDifferentAxes) {
  Net net;
  net.Output(LayerNorm(net, net.Input({4, 6}), 0));
  EXPECT_THAT(Operators(After(net, RecognisePatterns)), testing::Not(testing::HasSubstr("layer_norm")));
}

// Channels of images of 3 by 4 pixels, joined, split into [outer, rest], transposed and joined again.
std::string ShuffleOf(const Ints& channels, int64_t outer, Ints perm) {
  Net net;
  std::vector<int> parts;
  int64_t all = 0;
  for (const int64_t count : channels) {
    parts.push_back(net.Input({1, count, 3, 4}));
    all += count;
  }
  const int joined = net.Op("concat", parts, {{"axis", int64_t{1}}});
  const int groups = net.Op("reshape", {joined}, Shape({1, outer, all / outer, 3, 4}));
  net.Output(net.Op("reshape", {net.Op("transpose", {groups}, Perm(std::move(perm)))}, Shape({1, all, 3, 4})));
  return Operators(After(net, RecognisePatterns));
}

TEST(RecognisePatterns, ShufflesOfChannels) {
  EXPECT_EQ(ShuffleOf({5, 5}, 2, {0, 2, 1, 3, 4}), "interleave");
  EXPECT_EQ(ShuffleOf({5, 5, 5}, 3, {0, 2, 1, 3, 4}), "interleave");
}

TEST(RecognisePatterns, AlmostShuffles) {
  const std::string left = "concat reshape transpose reshape";
  EXPECT_EQ(ShuffleOf({6, 4}, 2, {0, 2, 1, 3, 4}), left) << "the parts are not the groups";
  EXPECT_EQ(ShuffleOf({10, 10}, 4, {0, 2, 1, 3, 4}), left) << "a part is two groups";
  EXPECT_EQ(ShuffleOf({4, 4}, 4, {0, 2, 1, 3, 4}), left) << "the other way round";
  EXPECT_EQ(ShuffleOf({5, 5}, 2, {0, 2, 1, 4, 3}), left) << "pixels move too";
}

TEST(RecognisePatterns, PointwiseConvolutionIsAProduct) {
  const Attrs plain{{"strides", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}},
      strided{{"strides", Ints{2, 2}}, {"pads", Ints{0, 0, 0, 0}}};
  Net net;
  net.Output(net.Op("conv", {net.Input({1, 5, 4, 6}), net.Constant({1, 1, 6, 3}, 1)}, plain));
  EXPECT_THAT(Operators(After(net, RecognisePatterns)), testing::HasSubstr("dense"));
  Net other;
  other.Output(other.Op("conv", {other.Input({1, 5, 4, 6}), other.Constant({1, 1, 6, 3}, 1)}, strided));
  EXPECT_EQ(Operators(After(other, RecognisePatterns)), "conv");
}

// ---- Optimize

TEST(Optimize, IsDoneAfterOneCall) {
  Net net;
  const int x = net.Input({1, 4, 6, 6});
  const int image = net.Op("transpose", {x}, Perm({0, 2, 3, 1}));
  const int conv = net.Op("conv", {image, net.Constant({3, 3, 4, 5}, 1)});
  const int scaled = net.Op("multiply", {conv, net.Constant({5}, 2)});
  net.Output(net.Op("transpose", {net.Op("relu", {scaled})}, Perm({0, 3, 1, 2})));
  Graph once = After(net, Optimize, 1e-4);
  EXPECT_EQ(Operators(once), "transpose conv relu transpose");
  const std::string text = ToText(once);
  ASSERT_TRUE(Optimize(once).ok());
  EXPECT_EQ(ToText(once), text);
}

}  // namespace
}  // namespace hone
