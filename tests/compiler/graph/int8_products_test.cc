// Where products of uint8 by int8 become products of int8, what is added to them, and that the results are the same to
// the last bit.
#include "compiler/graph/passes.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "compiler/graph/plan/planner.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using Ints = Net::Ints;

constexpr DType kUInt8 = DType::UInt(8), kInt8 = DType::Int(8);

const std::set<std::string>& FeaturesOf(const std::string& cpu) {
  static auto* of = new std::map<std::string, std::set<std::string>>;
  const auto [found, fresh] = of->try_emplace(cpu);
  if (fresh) found->second = ParseTarget("cpu:" + cpu)->features;
  return found->second;
}

struct ByteNet : Net {
  // 0, 127 and 254 on seeded inputs.
  int Bytes(const Ints& shape) { return Narrow(Op("multiply", {Wide(Input(shape, kUInt8)), Number(127)}), kUInt8); }
  // As an int8 is made uint8 (integer_product.h): -128, -1 and 126.
  int ShiftedBytes(const Ints& shape) {
    const int wide = Op("multiply", {Wide(Input(shape, kInt8)), Number(127)});
    const int bytes = Narrow(Op("add", {wide, Number(-128)}), kInt8);
    return Narrow(Op("add", {Wide(bytes), Number(128)}), kUInt8);
  }
  int Weight(const Ints& shape) {
    NdArray data(kInt8, shape);
    for (int64_t i = 0; i < data.NumElements(); ++i) data.SetInt(i, i * 37 % 256 - 128);
    return Constant(std::move(data));
  }
  int Wide(int value) { return Op("cast", {value}, {{"to", ToText(kInt32)}}); }
  int Narrow(int value, DType to) { return Op("cast", {value}, {{"to", ToText(to)}}); }
  int Number(int64_t number, const Ints& shape = {}) {
    NdArray data(kInt32, shape);
    for (int64_t i = 0; i < data.NumElements(); ++i) data.SetInt(i, number + i % 5);
    return Constant(std::move(data));
  }
};

Graph Rewritten(const Net& net, const std::string& cpu = "cortex-a76") {
  return After(
      net, [&](Graph& graph) { return Int8Products(graph, FeaturesOf(cpu)); }, 0);
}
const Node& ProductOf(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op == "dense" || node.op == "batch_matmul" || node.op == "conv") return node;
  }
  ADD_FAILURE() << "no product in " << Operators(graph);
  return graph.nodes.at(0);
}
void ExpectOfInt8(const Graph& graph) {
  const Node& product = ProductOf(graph);
  EXPECT_EQ(graph.type(product.inputs[0]).dtype, kInt8);
  EXPECT_EQ(graph.type(product.inputs[1]).dtype, kInt8);
  EXPECT_EQ(graph.type(product.outputs[0]).dtype, kInt32);
}
constexpr char kBytes[] = "cast multiply cast ", kShifted[] = "cast multiply cast cast add cast ";

TEST(Int8Products, TakeWhatVariesLess128) {
  ByteNet net;
  net.Output(net.Op("dense", {net.Bytes({5, 16}), net.Weight({16, 8})}));
  const Graph graph = Rewritten(net);
  EXPECT_EQ(Operators(graph), std::string(kShifted) + "dense add");
  ExpectOfInt8(graph);
  const GraphValue& sums = graph.values[graph.nodes.back().inputs[1]];
  ASSERT_TRUE(sums.is_constant());
  EXPECT_EQ(sums.type, (TensorType{kInt32, {8}}));
}

TEST(Int8Products, ConvolutionsPadWithTheirValueLess128) {
  ByteNet net;
  net.Output(net.Op("conv", {net.Bytes({1, 4, 5, 8}), net.Weight({3, 3, 8, 4})},
                    {{"pads", Ints{1, 1, 1, 1}}, {"pad_value", int64_t{9}}}));
  const Graph graph = Rewritten(net);
  EXPECT_EQ(Operators(graph), std::string(kShifted) + "conv add");
  ExpectOfInt8(graph);
  EXPECT_EQ(IntAttr(ProductOf(graph).attrs, "pad_value"), 9 - 128);
}

TEST(Int8Products, ConvolutionsPadWithZeroLess128WhereTheySayNothing) {
  ByteNet net;
  net.Output(net.Op("conv", {net.Bytes({1, 4, 5, 8}), net.Weight({3, 3, 8, 4})},
                    {{"pads", Ints{0, 1, 1, 0}}, {"strides", Ints{2, 1}}}));
  EXPECT_EQ(IntAttr(ProductOf(Rewritten(net)).attrs, "pad_value"), -128);
}

TEST(Int8Products, WhatIsAddedLaterIsAddedToTheSumsNow) {
  ByteNet net;
  const int product = net.Op("dense", {net.Bytes({5, 16}), net.Weight({16, 8})});
  net.Output(net.Op("subtract", {product, net.Number(-7, {8})}));
  EXPECT_EQ(Operators(Rewritten(net)), std::string(kShifted) + "dense add");
}

// An int8 whose zero point is 0, as the import makes a product of it: there is nothing to do but to multiply it.
TEST(Int8Products, WhatWasInt8IsMultipliedAsItWas) {
  ByteNet net;
  const Ints shape{16, 8};
  const int weight = net.Weight(shape), x = net.ShiftedBytes({5, 16});
  NdArray sums(kInt32, {8});
  const NdArray& data = *net.graph().values[weight].data;
  for (int64_t i = 0; i < data.NumElements(); ++i) sums.SetInt(i % 8, sums.GetInt(i % 8) + 128 * data.GetInt(i));
  net.Output(net.Op("subtract", {net.Op("dense", {x, weight}), net.Constant(std::move(sums))}));
  EXPECT_EQ(Operators(Rewritten(net)), "cast multiply add cast dense");
}

TEST(Int8Products, TheDifferenceStandsInFrontOfWhatMoves) {
  ByteNet net;
  const int moved = net.Op("transpose", {net.Bytes({16, 2, 3})}, Perm({1, 2, 0}));
  net.Output(net.Op("dense", {net.Op("reshape", {moved}, Shape({6, 16})), net.Weight({16, 8})}));
  EXPECT_EQ(Operators(Rewritten(net)), std::string(kShifted) + "transpose reshape dense add");
}

// A residual network: the sum reads the int8 that the product reads, and the uint8 is nowhere.
TEST(Int8Products, ASumReadsWhatIsStoredForTheProduct) {
  ByteNet net;
  const int x = net.Bytes({5, 8});
  const int product = net.Op("dense", {x, net.Weight({8, 8})});
  net.Output(net.Op("add", {net.Op("subtract", {net.Wide(x), net.Number(9)}), product}));
  const Graph graph = Rewritten(net);
  EXPECT_EQ(Operators(graph), std::string(kShifted) + "dense add cast add add");
  EXPECT_EQ(graph.nodes[8].inputs[0], ProductOf(graph).inputs[0]);
}

TEST(Int8Products, ReadersShareTheDifference) {
  ByteNet net;
  const int x = net.Bytes({5, 8});
  for (const int64_t columns : {8, 4}) net.Output(net.Op("dense", {x, net.Weight({8, columns})}));
  EXPECT_EQ(Operators(Rewritten(net)), std::string(kShifted) + "dense add dense add");
}

TEST(Int8Products, WhatOthersReadIsStoredAnyway) {
  ByteNet net;
  const int x = net.Bytes({5, 8});
  net.Output(net.Op("dense", {x, net.Weight({8, 8})}));
  net.Output(net.Op("subtract", {net.Wide(x), net.Number(9)}));
  net.Output(net.Op("relu", {x}));
  EXPECT_EQ(Operators(Rewritten(net)), std::string(kBytes) + "cast subtract relu cast add cast dense add");
}

TEST(Int8Products, TheDifferenceStandsBehindWhatOthersRead) {
  ByteNet net;
  const int moved = net.Op("transpose", {net.Bytes({16, 6})}, Perm({1, 0}));
  net.Output(net.Op("dense", {moved, net.Weight({16, 8})}));
  net.Output(moved);
  EXPECT_EQ(Operators(Rewritten(net)), std::string(kBytes) + "transpose cast add cast dense add");
}

// Not by the number that makes int8 uint8, and not of int8.
TEST(Int8Products, OtherSumsThatAreMadeUint8AreShifted) {
  for (const auto& [type, number] : {std::pair(kInt8, 64), {DType::Int(16), 128}}) {
    ByteNet net;
    const int x = net.Narrow(net.Op("multiply", {net.Wide(net.Input({5, 16}, type)), net.Number(127)}), type);
    const int bytes = net.Narrow(net.Op("add", {net.Wide(x), net.Number(number)}), kUInt8);
    net.Output(net.Op("dense", {bytes, net.Weight({16, 8})}));
    EXPECT_EQ(Operators(Rewritten(net)), "cast multiply cast cast add cast cast add cast dense add") << ToText(type);
  }
}

// ---- A weight that varies

int Varying(ByteNet& net, const Ints& shape) { return net.Narrow(net.Wide(net.Input(shape, kInt8)), kInt8); }

TEST(Int8Products, SumsOfAWeightThatVariesAreComputed) {
  ByteNet net;
  net.Output(net.Op("batch_matmul", {net.Bytes({3, 4, 16}), Varying(net, {3, 16, 8})}));
  const Graph graph = Rewritten(net);
  ExpectOfInt8(graph);
  EXPECT_THAT(Operators(graph), testing::HasSubstr("reduce_sum"));
}

TEST(Int8Products, NotForFewRows) {
  ByteNet net;
  net.Output(net.Op("batch_matmul", {net.Bytes({3, 3, 16}), Varying(net, {3, 16, 8})}));
  EXPECT_EQ(Operators(Rewritten(net)), Operators(net.graph()));
}

TEST(Int8Products, SumsLieAsTheResultDoes) {
  ByteNet net;
  const int b = Varying(net, {16, 2, 8});  // k, batch, n
  net.Output(net.Op("batch_matmul", {net.Bytes({5, 3, 2, 4, 16}), b},
                    {{"b_order", Ints{1, 0, 2}}, {"result_order", Ints{1, 3, 0, 2, 4}}}));
  ExpectOfInt8(Rewritten(net));
}

TEST(Int8Products, SumsOfAConstantInBatchesAreConstants) {
  ByteNet net;
  net.Output(net.Op("batch_matmul", {net.Bytes({2, 3, 16}), net.Weight({2, 16, 8})}));
  EXPECT_EQ(Operators(Rewritten(net)), std::string(kShifted) + "batch_matmul add");
}

// ---- Near misses

TEST(Int8Products, OtherTargetsMultiplyWhatTheyDid) {
  ByteNet net;
  net.Output(net.Op("dense", {net.Bytes({16, 64}), net.Weight({64, 16})}));
  for (const char* cpu : {"haswell", "znver4", "sapphirerapids", "neoverse-n2", "cortex-a72", "generic-rv64"}) {
    EXPECT_EQ(Operators(Rewritten(net, cpu)), std::string(kBytes) + "dense") << cpu;
  }
  for (const char* cpu : {"cortex-a76", "cortex-a78", "neoverse-n1"}) ExpectOfInt8(Rewritten(net, cpu));
}

struct NearMiss {
  const char* name;
  void (*build)(ByteNet&);
};
void PrintTo(const NearMiss& c, std::ostream* out) { *out << c.name; }

class Int8NearMiss : public testing::TestWithParam<NearMiss> {};
TEST_P(Int8NearMiss, Stays) {
  ByteNet net;
  GetParam().build(net);
  EXPECT_EQ(Operators(Rewritten(net)), Operators(net.graph()));
}
const NearMiss kNearMisses[] = {
    {"NoWholeGroups",
     [](ByteNet& net) {
       net.Output(net.Op("dense", {net.Bytes({5, 15}), net.Weight({15, 8})}));
     }},
    {"NoWholeVectors",
     [](ByteNet& net) {
       net.Output(net.Op("dense", {net.Bytes({5, 16}), net.Weight({16, 7})}));
     }},
    {"Groups",
     [](ByteNet& net) {
       net.Output(net.Op("conv", {net.Bytes({1, 4, 5, 8}), net.Weight({1, 1, 4, 8})}, {{"groups", int64_t{2}}}));
     }},
    {"Depthwise",
     [](ByteNet& net) {
       net.Output(net.Op("depthwise_conv2d", {net.Bytes({1, 4, 5, 8}), net.Weight({3, 3, 8})}));
     }},
    {"TermsApart",
     [](ByteNet& net) {
       net.Output(
           net.Op("batch_matmul", {net.Bytes({2, 16, 4}), net.Weight({2, 16, 8})}, {{"a_order", Ints{0, 2, 1}}}));
     }},
    {"Floats",
     [](ByteNet& net) {
       net.Output(net.Op("dense", {net.Input({4, 16}), net.Net::Constant({16, 8}, 1)}));
     }},
};
INSTANTIATE_TEST_SUITE_P(Cases, Int8NearMiss, testing::ValuesIn(kNearMisses),
                         [](const testing::TestParamInfo<NearMiss>& info) { return std::string(info.param.name); });

// ---- In a plan

// A quantised product in front of another: the kernel of the first writes the int8 that the second reads.
TEST(Int8Products, TheKernelInFrontWritesInt8) {
  ByteNet net;
  const int first = net.Op("dense", {net.Input({4, 32}, kUInt8), net.Weight({32, 32})});
  const int real = net.Op("multiply", {net.Narrow(first, kFloat32), net.Filled({}, 0.001)});
  const int bytes = net.Narrow(net.Op("clip", {real}, {{"min", 0.0}, {"max", 255.0}}), kUInt8);
  net.Output(net.Op("dense", {bytes, net.Weight({32, 16})}));
  const auto written = [&](const char* cpu) {
    const absl::StatusOr<Plan> plan = MakePlan(net.graph(), {.features = FeaturesOf(cpu)});
    EXPECT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->steps.size(), 2u) << cpu;
    return plan->tasks[plan->steps.at(0).task].func.params.back().type();
  };
  EXPECT_EQ(written("cortex-a76"), kInt8);
  EXPECT_EQ(written("neoverse-n2"), kUInt8);
}

}  // namespace
}  // namespace hone
