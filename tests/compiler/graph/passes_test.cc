// Every pass on graphs it rewrites and on near misses it must leave alone. What a graph computes never changes.
#include "compiler/graph/passes.h"

#include "compiler/graph/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

Attrs Perm(Ints perm) { return {{"perm", std::move(perm)}}; }
Attrs Shape(Ints shape) { return {{"shape", std::move(shape)}}; }
Attrs Over(Ints axes) { return {{"axes", std::move(axes)}, {"keepdims", int64_t{1}}}; }

// ---- QuantisedProducts

// x [4, 8] and w [8, 16], dequantised.
struct QuantisedNet : Net {
  int Number(DType type, const Ints& shape, int64_t first) {
    NdArray data(type, shape);
    for (int64_t i = 0; i < data.NumElements(); ++i) {
      if (type.is_float()) data.Set(i, 0.5 + static_cast<double>(i % 3));
      else data.SetInt(i, first + i % 5);
    }
    return Constant(std::move(data));
  }
  int Left(DType type, int64_t zero, const Ints& scale = {}) {
    return Op("dequantize", {Input({4, 8}, type), Number(kFloat32, scale, 0), Number(type, {}, zero)});
  }
  int Right(DType type, const Ints& scale, const Ints& zero_shape, int64_t zero) {
    return Op("dequantize", {Number(type, {8, 16}, type.code == TypeCode::kUInt ? 3 : -2), Number(kFloat32, scale, 0),
                             Number(type, zero_shape, zero)});
  }
};
constexpr DType kUInt8 = DType::UInt(8), kInt8 = DType::Int(8);
std::string Dequantised(QuantisedNet& net, int x, int w) {
  net.Output(net.Op("dense", {x, w}));
  return Operators(After(net, QuantisedProducts));
}

TEST(QuantisedProducts, AreProductsOfIntegers) {
  QuantisedNet net;
  EXPECT_EQ(Dequantised(net, net.Left(kUInt8, 0), net.Right(kInt8, {16}, {}, 0)), "dense cast multiply");
}
TEST(QuantisedProducts, AZeroPointIsAConstantForEveryColumn) {
  QuantisedNet net;
  EXPECT_EQ(Dequantised(net, net.Left(kUInt8, 7), net.Right(kInt8, {}, {}, 0)), "dense subtract cast multiply");
}
TEST(QuantisedProducts, OtherSignsAreShifted) {
  QuantisedNet net;
  EXPECT_EQ(Dequantised(net, net.Left(kInt8, -7), net.Right(kUInt8, {1, 16}, {}, 128)),
            "cast add cast dense subtract cast multiply");
}
TEST(QuantisedProducts, AZeroPointOfTheWeightIsTimesTheSumOfARow) {
  QuantisedNet net;
  EXPECT_EQ(Dequantised(net, net.Left(kUInt8, 7), net.Right(kInt8, {16}, {16}, 1)),
            "dense subtract cast reduce_sum multiply subtract add cast multiply");
}
TEST(QuantisedProducts, TransposesAndReshapesAreOfIntegers) {
  QuantisedNet net;
  const int x = net.Op("reshape", {net.Op("transpose", {net.Left(kUInt8, 7)}, Perm({1, 0}))}, Shape({4, 8}));
  EXPECT_EQ(Dequantised(net, x, net.Right(kInt8, {16}, {}, 0)), "transpose reshape dense subtract cast multiply");
}
TEST(QuantisedProducts, ConvolutionsPadWithTheZeroPoint) {
  QuantisedNet net;
  const int x =
      net.Op("dequantize", {net.Input({1, 4, 5, 8}, kUInt8), net.Number(kFloat32, {}, 0), net.Number(kUInt8, {}, 9)});
  const int w = net.Op("dequantize", {net.Number(kInt8, {3, 3, 8, 4}, -2), net.Number(kFloat32, {1, 1, 1, 4}, 0)});
  net.Output(net.Op("conv", {x, w}, {{"pads", Ints{1, 1, 1, 1}}}));
  const Graph graph = After(net, QuantisedProducts);
  EXPECT_EQ(Operators(graph), "conv subtract cast multiply");
  EXPECT_EQ(IntAttr(graph.nodes[0].attrs, "pad_value"), 9);
}
TEST(QuantisedProducts, ChannelsComeInFours) {
  QuantisedNet net;
  const int x = net.Op("dequantize", {net.Input({1, 4, 5, 3}, kUInt8), net.Number(kFloat32, {}, 0)});
  const int w = net.Op("dequantize", {net.Number(kInt8, {3, 3, 3, 16}, -2), net.Number(kFloat32, {}, 0)});
  net.Output(net.Op("conv", {x, w}));
  const Graph graph = After(net, QuantisedProducts);
  EXPECT_EQ(Operators(graph), "pad conv cast multiply");
  EXPECT_EQ(graph.type(graph.nodes[1].inputs[1]).shape, (Ints{3, 3, 4, 16}));
}
// Near misses.
TEST(QuantisedProducts, ScalesByRowOfTheWeightStayFloats) {
  QuantisedNet net;
  EXPECT_THAT(Dequantised(net, net.Left(kUInt8, 0), net.Right(kInt8, {8, 1}, {}, 0)),
              testing::EndsWith("multiply dense"));
}
TEST(QuantisedProducts, ScalesByColumnOfTheImageStayFloats) {
  QuantisedNet net;
  EXPECT_THAT(Dequantised(net, net.Left(kUInt8, 0, {8}), net.Right(kInt8, {}, {}, 0)), testing::EndsWith("dense"));
}
TEST(QuantisedProducts, WeightsThatAreFloatsStay) {
  QuantisedNet net;
  EXPECT_THAT(Dequantised(net, net.Left(kUInt8, 0), net.Constant({8, 16}, 1)), testing::EndsWith("multiply dense"));
}
TEST(QuantisedProducts, WiderIntegersStayFloats) {
  QuantisedNet net;
  EXPECT_THAT(Dequantised(net, net.Left(DType::Int(16), 0), net.Right(kInt8, {}, {}, 0)), testing::EndsWith("dense"));
}
TEST(QuantisedProducts, DepthwiseConvolutions) {
  QuantisedNet net;
  const int x =
      net.Op("dequantize", {net.Input({1, 4, 5, 8}, kUInt8), net.Number(kFloat32, {}, 0), net.Number(kUInt8, {}, 9)});
  const int w = net.Op("dequantize", {net.Number(kInt8, {3, 3, 8}, -2), net.Number(kFloat32, {8}, 0)});
  net.Output(net.Op("depthwise_conv2d", {x, w}, {{"pads", Ints{1, 1, 1, 1}}}));
  const Graph graph = After(net, QuantisedProducts);
  EXPECT_EQ(Operators(graph), "depthwise_conv2d subtract cast multiply");
  EXPECT_EQ(graph.type(graph.nodes[0].outputs[0]).dtype, kInt32);
}
// As ONNX has the weight: [C, 1, KH, KW], with a scale for each channel.
TEST(QuantisedProducts, ScalesGoThroughReshapesThatDropDimensionsOfOne) {
  for (const Ints& shape : {Ints{3, 3, 8}, Ints{9, 1, 8}}) {
    QuantisedNet net;
    const int x = net.Op("dequantize", {net.Input({1, 4, 5, 8}, kUInt8), net.Number(kFloat32, {}, 0)});
    const int stored =
        net.Op("dequantize", {net.Number(kInt8, {8, 1, 3, 3}, -2), net.Number(kFloat32, {8, 1, 1, 1}, 0)});
    const int w = net.Op("reshape", {net.Op("transpose", {stored}, Perm({2, 3, 0, 1}))}, Shape(shape));
    net.Output(net.Op("depthwise_conv2d", {x, w}, {{"pads", Ints{4, 1, 4, 1}}}));
    const bool drops_ones = shape[0] == 3;
    EXPECT_EQ(Operators(After(net, QuantisedProducts)).starts_with("depthwise_conv2d cast"), drops_ones);
  }
}
TEST(QuantisedProducts, ConvolutionsWithAZeroPointOfTheWeightAreOfInt16) {
  QuantisedNet net;
  const int x = net.Op("dequantize", {net.Input({1, 4, 5, 8}, kUInt8), net.Number(kFloat32, {}, 0)});
  const int w = net.Op("dequantize",
                       {net.Number(kInt8, {1, 1, 8, 4}, -2), net.Number(kFloat32, {}, 0), net.Number(kInt8, {}, 3)});
  net.Output(net.Op("conv", {x, w}));
  const Graph graph = After(net, QuantisedProducts);
  EXPECT_EQ(Operators(graph), "cast conv cast multiply");
  EXPECT_EQ(graph.type(graph.nodes[1].inputs[0]).dtype, DType::Int(16));
}
TEST(QuantisedProducts, ConvolutionsThatPadWithAZeroPointThatVariesAreOfInt16) {
  QuantisedNet net;
  const int x =
      net.Op("dequantize", {net.Input({1, 4, 5, 8}, kUInt8), net.Number(kFloat32, {}, 0), net.Input({}, kUInt8)});
  const int w = net.Op("dequantize", {net.Number(kInt8, {3, 3, 8, 4}, -2), net.Number(kFloat32, {}, 0)});
  net.Output(net.Op("conv", {x, w}, {{"pads", Ints{1, 1, 1, 1}}}));
  EXPECT_EQ(Operators(After(net, QuantisedProducts)), "cast cast subtract conv cast multiply");
}

// ---- Int16Products

const std::set<std::string> kAvx2 = {"avx2"}, kVnni = {"avx2", "avx512bw", "avx512vnni"};
int ByteProduct(QuantisedNet& net, const Ints& weight = {8, 16}) {
  const int x = net.Op("relu", {net.Input({4, weight[0]}, kUInt8)});
  return net.Op("dense", {x, net.Number(kInt8, weight, -2)});
}
std::string AsInt16(const Net& net, const std::set<std::string>& features) {
  return Operators(After(
      net, [&](Graph& graph) { return Int16Products(graph, features); }, 0));
}

TEST(Int16Products, BytesAreWidenedWhereTheyAreMade) {
  QuantisedNet net;
  net.Output(ByteProduct(net));
  EXPECT_EQ(AsInt16(net, kAvx2), "relu cast dense");
}
// Near misses.
TEST(Int16Products, WhereBytesAreMultipliedTheyStay) {
  QuantisedNet net;
  net.Output(ByteProduct(net));
  EXPECT_EQ(AsInt16(net, kVnni), "relu dense");
}
TEST(Int16Products, SizesThatNoInstructionFitsStay) {
  QuantisedNet net;
  net.Output(ByteProduct(net, {7, 16}));
  EXPECT_EQ(AsInt16(net, kAvx2), "relu dense");
}
TEST(Int16Products, FloatsStay) {
  Net net;
  net.Output(net.Op("dense", {net.Input({4, 8}), net.Constant({8, 16}, 1)}));
  EXPECT_EQ(AsInt16(net, kAvx2), "dense");
}

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
  const int plain = net.Op("reshape", {net.Input({2, 3, 5, 4})}, Shape({6, 5, 4}));
  net.Output(net.Op("batch_matmul", {plain, net.Op("reshape", {net.Input({2, 3, 4, 6})}, Shape({6, 4, 6}))}));
  EXPECT_EQ(Operators(After(net, ExposeOperands)),
            "transpose reshape reshape batch_matmul reshape reshape batch_matmul");
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
