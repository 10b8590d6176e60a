// The passes that make products of dequantised values products of integers, and what they must leave alone.
#include "compiler/graph/passes.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using Ints = Net::Ints;

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
TEST(Int16Products, WindowsOfThreeByThreeStay) {
  const auto conv = [](int64_t stride) {
    QuantisedNet net;
    const int x = net.Op("relu", {net.Input({1, 6, 6, 8}, kUInt8)});
    net.Output(net.Op("conv", {x, net.Number(kInt8, {3, 3, 8, 16}, -2)}, {{"strides", Ints{stride, stride}}}));
    return AsInt16(net, kAvx2);
  };
  EXPECT_EQ(conv(1), "relu conv");
  EXPECT_EQ(conv(2), "relu cast conv");
}
TEST(Int16Products, FloatsStay) {
  Net net;
  net.Output(net.Op("dense", {net.Input({4, 8}), net.Constant({8, 16}, 1)}));
  EXPECT_EQ(AsInt16(net, kAvx2), "dense");
}

}  // namespace
}  // namespace hone
