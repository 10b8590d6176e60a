// Which products round what they multiply to bfloat16, and how far that is from the product of float32.
#include <cmath>

#include "compiler/graph/passes.h"
#include "compiler/graph/plan/planner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;
using Features = std::set<std::string>;

const Features kVectors = {"avx512f", "avx512bf16"}, kSlowVectors = {"avx512f", "avx512bf16", "avx512fp16"},
               kTiles = {"avx512f", "avx512bf16", "avx512fp16", "amx-tile", "amx-bf16"};
constexpr double kRoundoff = 0x1p-8;  // of bfloat16

Graph Rounded(const Net& net, const Features& features = kVectors) {
  return After(
      net, [&](Graph& graph) { return Bfloat16Products(graph, features); }, 4 * kRoundoff);
}

TEST(Bfloat16Products, RoundBothOperands) {
  Net net;
  net.Output(net.Op("dense", {net.Op("relu", {net.Input({4, 32})}), net.Constant({32, 16}, 1)}));
  const Graph graph = Rounded(net);
  EXPECT_EQ(Operators(graph), "relu cast dense");
  const Node& dense = graph.nodes[2];
  EXPECT_EQ(graph.type(dense.inputs[0]).dtype, DType::BFloat16());
  EXPECT_EQ(graph.type(dense.inputs[1]).dtype, DType::BFloat16());
  EXPECT_TRUE(graph.values[dense.inputs[1]].is_constant()) << "rounded now, not in every run";
  EXPECT_EQ(graph.type(dense.outputs[0]).dtype, kFloat32);
}

TEST(Bfloat16Products, Convolutions) {
  Net net;
  net.Output(net.Op("conv", {net.Input({1, 5, 8, 32}), net.Constant({3, 3, 32, 16}, 1)}, {{"pads", Ints{1, 1, 1, 1}}}));
  EXPECT_EQ(Operators(Rounded(net, kTiles)), "cast conv");
}

TEST(Bfloat16Products, RoundBeforeWhatMoves) {
  Net net;
  const int moved = net.Op("transpose", {net.Op("relu", {net.Input({2, 4, 32})})}, {{"perm", Ints{1, 0, 2}}});
  const int x = net.Op("reshape", {moved}, {{"shape", Ints{8, 32}}});
  net.Output(net.Op("dense", {x, net.Constant({32, 16}, 1)}));
  EXPECT_EQ(Operators(Rounded(net)), "relu cast transpose reshape dense");
}

TEST(Bfloat16Products, ReadersShareTheCast) {
  Net net;
  const int x = net.Op("relu", {net.Input({4, 32})});
  for (uint64_t seed = 1; seed < 3; ++seed) net.Output(net.Op("dense", {x, net.Constant({32, 16}, seed)}));
  EXPECT_EQ(Operators(Rounded(net)), "relu cast dense dense");
}

// The cast is the end of the kernel that makes the operand, where nothing else reads it.
TEST(Bfloat16Products, TheKernelInFrontWritesWhatIsRounded) {
  Net net;
  const int hidden = net.Op("relu", {net.Op("dense", {net.Input({4, 32}), net.Constant({32, 32}, 1)})});
  net.Output(net.Op("dense", {hidden, net.Constant({32, 16}, 2)}));
  const absl::StatusOr<Plan> plan = MakePlan(net.graph(), {.features = kVectors, .numeric = NumericLevel::kBf16});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->steps.size(), 2);  // the model's input is rounded where it is read
  EXPECT_EQ(plan->tasks[plan->steps[0].task].func.params.back().type(), DType::BFloat16());
}

// ---- Near misses

struct NearMiss {
  const char* name;
  void (*build)(Net&);
  Features features = kVectors;
};
void PrintTo(const NearMiss& c, std::ostream* out) { *out << c.name; }

void Dense(Net& net) { net.Output(net.Op("dense", {net.Input({4, 32}), net.Constant({32, 16}, 1)})); }

class Bfloat16NearMiss : public testing::TestWithParam<NearMiss> {};
TEST_P(Bfloat16NearMiss, StaysFloat32) {
  Net net;
  GetParam().build(net);
  EXPECT_EQ(Operators(Rounded(net, GetParam().features)), Operators(net.graph()));
}
const NearMiss kNearMisses[] = {
    {"NoInstruction", Dense, {"avx512f", "avx512vnni", "amx-tile", "amx-int8"}},
    {"VectorsThatAreSlower", Dense, kSlowVectors},
    {"TilesTooFewRows",
     [](Net& net) {
       net.Output(net.Op("dense", {net.Input({1, 32}), net.Constant({32, 16}, 1)}));
     },
     kTiles},
    {"WeightThatVaries",
     [](Net& net) {
       net.Output(net.Op("dense", {net.Input({4, 32}), net.Input({32, 16})}));
     }},
    {"ScoresOfAttention",
     [](Net& net) {
       net.Output(net.Op("batch_matmul", {net.Input({2, 16, 32}), net.Input({2, 32, 16})}));
     }},
    {"OddDepth",
     [](Net& net) {
       net.Output(net.Op("dense", {net.Input({4, 31}), net.Constant({31, 16}, 1)}));
     }},
    {"ColumnsOfNoVector",
     [](Net& net) {
       net.Output(net.Op("dense", {net.Input({4, 32}), net.Constant({32, 18}, 1)}));
     }},
    {"RowsApartWhereThereAreTiles",
     [](Net& net) {
       net.Output(
           net.Op("conv", {net.Input({1, 9, 17, 32}), net.Constant({3, 3, 32, 16}, 1)}, {{"strides", Ints{2, 2}}}));
     },
     kTiles},
    {"ThreeChannels",
     [](Net& net) {
       net.Output(net.Op("conv", {net.Input({1, 5, 8, 3}), net.Constant({3, 3, 3, 16}, 1)}));
     }},
    {"Groups",
     [](Net& net) {
       net.Output(
           net.Op("conv", {net.Input({1, 5, 8, 32}), net.Constant({3, 3, 16, 32}, 1)}, {{"groups", int64_t{2}}}));
     }},
    {"Depthwise",
     [](Net& net) {
       net.Output(net.Op("depthwise_conv2d", {net.Input({1, 5, 8, 32}), net.Constant({3, 3, 32}, 1)}));
     }},
    {"Sensitive",
     [](Net& net) {
       const int sum = net.Op("add", {net.Input({4, 32}), net.Constant({32}, 1)});
       const int norm = net.Op("softmax", {sum}, {{"axis", int64_t{1}}});
       net.Output(net.Op("reduce_sum", {norm}, {{"axes", Ints{1}}, {"keepdims", int64_t{1}}}));
     }},
};
INSTANTIATE_TEST_SUITE_P(Cases, Bfloat16NearMiss, testing::ValuesIn(kNearMisses),
                         [](const testing::TestParamInfo<NearMiss>& info) { return std::string(info.param.name); });

// ---- The bound of the level: (2 u + u^2) sum|a||b|, and what float32's sum adds. That it is rounded at all is seen
// from errors that float32 alone would not make.

struct BoundCase {
  const char* name;
  int (*build)(Net&, bool magnitudes);
};
void PrintTo(const BoundCase& c, std::ostream* out) { *out << c.name; }

int Signed(Net& net, const Ints& shape, uint64_t seed, bool magnitudes) {
  NdArray data(kFloat32, shape);
  for (int64_t i = 0; i < data.NumElements(); ++i) {
    const double value = std::sin(static_cast<double>(seed * 1000 + static_cast<uint64_t>(i)));
    data.Set(i, magnitudes ? std::abs(static_cast<float>(value)) : value);
  }
  return net.Constant(std::move(data));
}

const BoundCase kBounds[] = {
    {"Dense",
     [](Net& net, bool magnitudes) {
       const int x = net.Input({8, 96});
       return net.Op("dense", {magnitudes ? net.Op("abs", {x}) : x, Signed(net, {96, 16}, 1, magnitudes)});
     }},
    {"Convolution",
     [](Net& net, bool magnitudes) {
       const int x = net.Input({1, 6, 6, 32});
       return net.Op("conv", {magnitudes ? net.Op("abs", {x}) : x, Signed(net, {3, 3, 32, 16}, 2, magnitudes)},
                     {{"pads", Ints{1, 1, 1, 1}}});
     }},
};
class Bfloat16Bound : public testing::TestWithParam<BoundCase> {};
TEST_P(Bfloat16Bound, HoldsOfEveryElement) {
  Net net, magnitudes;
  net.Output(GetParam().build(net, false));
  magnitudes.Output(GetParam().build(magnitudes, true));
  Graph rounded = net.graph();
  ASSERT_TRUE(Bfloat16Products(rounded, kVectors).ok());
  const NdArray got = Computed(rounded)[0], want = Computed(net.graph())[0], sum = Computed(magnitudes.graph())[0];
  const double of_level = 2 * kRoundoff + kRoundoff * kRoundoff, of_sum = 300 * 0x1p-24;
  double worst = 0;
  for (int64_t i = 0; i < want.NumElements(); ++i) {
    const double error = std::abs(got.Get(i) - want.Get(i));
    EXPECT_LE(error, (of_level + of_sum) * sum.Get(i)) << "element " << i;
    worst = std::max(worst, error / sum.Get(i));
  }
  EXPECT_GT(worst, kRoundoff / 64);
}
INSTANTIATE_TEST_SUITE_P(Cases, Bfloat16Bound, testing::ValuesIn(kBounds),
                         [](const testing::TestParamInfo<BoundCase>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone
