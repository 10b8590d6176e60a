// How graphs are cut into kernels, and what the kernels say of themselves.
#include "compiler/graph/plan/planner.h"

#include <functional>

#include "compiler/support/check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using testing::ElementsAre;
using Ints = std::vector<int64_t>;

// The plan of the graph as it is, fused.
Plan Fused(const Net& net) {
  absl::StatusOr<Plan> plan = MakePlan(net.graph(), {.optimize = false});
  HONE_CHECK(plan.ok()) << plan.status().ToString();
  return *std::move(plan);
}

std::vector<std::string> Steps(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanStep& step : plan.steps) names.push_back(plan.tasks[step.task].name);
  return names;
}

std::vector<std::string> Domains(const PlanTask& task) {
  const auto found = task.func.attrs.find("domains");
  return found == task.func.attrs.end() ? std::vector<std::string>()
                                        : std::get<std::vector<std::string>>(found->second);
}

TEST(Planner, ElementwiseOperatorsFollowTheirAnchor) {
  Net net;
  const int dense = net.Op("dense", {net.Input({4, 6}), net.Constant({6, 5}, 1)});
  net.Output(net.Op("relu", {net.Op("add", {dense, net.Constant({5}, 2)})}));
  const Plan plan = Fused(net);
  EXPECT_THAT(Steps(plan), ElementsAre("dense_4x5x6_add_relu"));
  EXPECT_EQ(std::get<Ints>(plan.tasks[0].func.attrs.at("constants")), (Ints{1, 2}));
  EXPECT_EQ(plan.tasks[0].flop, 2.0 * 4 * 5 * 6 + 2 * 20);
}

TEST(Planner, AValueReadLaterEndsItsGroup) {
  Net net;
  const int dense = net.Op("dense", {net.Input({4, 6}), net.Constant({6, 4}, 1)});
  const int second = net.Op("dense", {net.Op("relu", {dense}), net.Constant({4, 4}, 2)});
  net.Output(net.Op("add", {second, dense}));
  EXPECT_THAT(Steps(Fused(net)), ElementsAre("dense_4x4x6", "relu_dense_4x4x4_add"));
}

TEST(Planner, AnOutputEndsItsGroup) {
  Net net;
  const int dense = net.Op("dense", {net.Input({4, 6}), net.Constant({6, 5}, 1)});
  net.Output(dense);
  net.Output(net.Op("relu", {dense}));
  EXPECT_THAT(Steps(Fused(net)), ElementsAre("dense_4x5x6", "relu_4x5"));
}

TEST(Planner, ReductionsTakeWhatComesBefore) {
  Net net;
  const int x = net.Input({4, 6}), y = net.Input({4, 6});
  const int sum = net.Op("reduce_sum", {net.Op("multiply", {x, y})}, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}});
  net.Output(net.Op("sqrt", {sum}));
  EXPECT_THAT(Steps(Fused(net)), ElementsAre("multiply_sum_4x6_to_4_sqrt"));
}

TEST(Planner, ConcatenationsTakeTheirSlices) {
  Net net;
  const int x = net.Input({4, 6});
  const Attrs front = {{"starts", Ints{0, 0}}, {"sizes", Ints{4, 2}}, {"steps", Ints{1, 1}}};
  const Attrs back = {{"starts", Ints{0, 3}}, {"sizes", Ints{4, 3}}, {"steps", Ints{1, 1}}};
  const int kept = net.Op("slice", {x}, front), read_twice = net.Op("slice", {x}, back);
  const int joined = net.Op("concat", {kept, read_twice, net.Input({4, 1})}, {{"axis", int64_t{1}}});
  net.Output(net.Op("relu", {joined}));
  net.Output(net.Op("exp", {read_twice}));
  const Plan plan = Fused(net);
  EXPECT_THAT(Steps(plan), ElementsAre("slice_4x3", "slice_concat_relu_4x6", "exp_4x3"));
  ExpectNear(Interpreted(plan), Computed(net.graph()), 1e-6);
}

TEST(Planner, ProductsTakeWhatComesBefore) {
  Net net;
  const int both = net.Op("concat", {net.Input({4, 2}), net.Input({4, 4})}, {{"axis", int64_t{1}}});
  const int scaled = net.Op("multiply", {both, net.Constant({6}, 1)});
  net.Output(net.Op("relu", {net.Op("dense", {net.Op("exp", {scaled}), net.Constant({6, 5}, 1)})}));
  const Plan plan = Fused(net);
  EXPECT_THAT(Steps(plan), ElementsAre("concat_multiply_exp_dense_4x5x6_relu"));
  EXPECT_EQ(plan.tasks[0].bytes, 4.0 * (4 * 6 + 6 + 6 * 5 + 4 * 5)) << "what is concatenated is written nowhere";
  ExpectNear(Interpreted(plan), Computed(net.graph()), 1e-5);
  Net part;
  const Attrs half = {{"starts", Ints{0, 3}}, {"sizes", Ints{4, 3}}, {"steps", Ints{1, 1}}};
  part.Output(part.Op("dense", {part.Op("slice", {part.Input({4, 6})}, half), part.Constant({3, 5}, 1)}));
  EXPECT_THAT(Steps(Fused(part)), ElementsAre("slice_dense_4x5x3"));
}

TEST(Planner, ProductsReadWhatIsThereAnyway) {
  Net twice;
  const int x = twice.Op("exp", {twice.Input({4, 6})});
  twice.Output(twice.Op("dense", {x, twice.Constant({6, 5}, 1)}));
  twice.Output(twice.Op("dense", {x, twice.Constant({6, 7}, 2)}));
  EXPECT_THAT(Steps(Fused(twice)), ElementsAre("exp_4x6", "dense_4x5x6", "dense_4x7x6"));
  Net moved;
  const int rows = moved.Op("transpose", {moved.Input({6, 4})}, {{"perm", Ints{1, 0}}});
  moved.Output(moved.Op("dense", {rows, moved.Constant({6, 5}, 1)}));
  EXPECT_THAT(Steps(Fused(moved)), ElementsAre("transpose_4x6", "dense_4x5x6"));
}

// The padded copy is made from the image as it comes.
TEST(Planner, PaddedConvolutionsTakeTheChangeOfLayoutBeforeThem) {
  Net net;
  const int image = net.Op("transpose", {net.Input({1, 3, 6, 6})}, {{"perm", Ints{0, 2, 3, 1}}});
  net.Output(net.Op("conv", {image, net.Constant({3, 3, 3, 4}, 1)}, {{"pads", Ints{1, 1, 1, 1}}}));
  const Plan plan = Fused(net);
  EXPECT_THAT(Steps(plan), ElementsAre("transpose_conv2d_3x3_s1_6x6x4"));
  EXPECT_EQ(plan.tensors[plan.steps[0].tensors[0]].shape, (Ints{1, 3, 6, 6}));
  ExpectNear(Interpreted(plan), Computed(net.graph()), 1e-5);
}

TEST(Planner, OtherConvolutionsReadTheImageAsItIsLaidOutForThem) {
  Net net;
  const int image = net.Op("transpose", {net.Input({1, 3, 6, 6})}, {{"perm", Ints{0, 2, 3, 1}}});
  net.Output(net.Op("conv", {image, net.Constant({3, 3, 3, 4}, 1)}));  // without padding there is no copy
  EXPECT_THAT(Steps(Fused(net)), ElementsAre("transpose_6x6x3", "conv2d_3x3_s1_4x4x4"));
  Net deep;  // many channels
  const int wide = deep.Op("transpose", {deep.Input({1, 32, 4, 4})}, {{"perm", Ints{0, 2, 3, 1}}});
  deep.Output(deep.Op("conv", {wide, deep.Constant({3, 3, 32, 4}, 1)}, {{"pads", Ints{1, 1, 1, 1}}}));
  EXPECT_THAT(Steps(Fused(deep)), ElementsAre("transpose_4x4x32", "conv2d_3x3_s1_4x4x4"));
  Net shared;
  const int twice = shared.Op("transpose", {shared.Input({1, 3, 6, 6})}, {{"perm", Ints{0, 2, 3, 1}}});
  shared.Output(shared.Op("conv", {twice, shared.Constant({3, 3, 3, 3}, 1)}, {{"pads", Ints{1, 1, 1, 1}}}));
  shared.Output(shared.Op("relu", {twice}));
  EXPECT_THAT(Steps(Fused(shared)), ElementsAre("transpose_6x6x3", "conv2d_3x3_s1_6x6x3", "relu_6x6x3"));
}

// The sum goes to the product with more work; the other must run first.
TEST(Planner, ProductsOfBatchesReadSlicesInPlace) {
  const Attrs first = {{"starts", Ints{0, 0, 0}}, {"sizes", Ints{3, 5, 4}}, {"steps", Ints{1, 1, 1}}};
  Net net;
  const int slice = net.Op("slice", {net.Input({3, 5, 8})}, first);
  net.Output(net.Op("batch_matmul", {slice, net.Input({3, 4, 6})}));
  const Plan plan = Fused(net);
  EXPECT_THAT(Steps(plan), ElementsAre("slice_batch_matmul_3x5x6x4"));
  EXPECT_EQ(plan.tasks[0].bytes, 4.0 * (3 * 5 * 4 + 3 * 4 * 6 + 3 * 5 * 6)) << "the rest of the whole is not touched";

  Net read_twice;
  const int shared = read_twice.Op("slice", {read_twice.Input({3, 5, 8})}, first);
  read_twice.Output(read_twice.Op("batch_matmul", {shared, read_twice.Input({3, 4, 6})}));
  read_twice.Output(read_twice.Op("relu", {shared}));
  EXPECT_THAT(Steps(Fused(read_twice)), ElementsAre("slice_3x5x4", "batch_matmul_3x5x6x4", "relu_3x5x4"));
}

// A depthwise convolution and the product of its pixels; `between` is done to the image on the way.
std::vector<std::string> SeparableKernels(const std::function<int(Net&, int)>& between) {
  Net net;
  const int image = net.Op("depthwise_conv2d", {net.Input({1, 6, 6, 8}), net.Constant({3, 3, 8}, 1)});
  const int rows = net.Op("reshape", {between(net, image)}, Shape({16, 8}));
  net.Output(net.Op("relu", {net.Op("dense", {rows, net.Constant({8, 4}, 2)})}));
  return Steps(Fused(net));
}

TEST(Planner, ProductsTakeTheDepthwiseConvolutionThatTheyAloneRead) {
  EXPECT_THAT(SeparableKernels([](Net& net, int image) { return net.Op("relu", {image}); }),
              ElementsAre("depthwise_conv2d_3x3_s1_4x4x8_relu_dense_16x4x8_relu"));
  const auto read_twice = [](Net& net, int image) {
    net.Output(net.Op("reduce_sum", {image}, Over({1, 2})));
    return image;
  };
  EXPECT_EQ(SeparableKernels(read_twice).size(), 3U);
  const auto is_output = [](Net& net, int image) {
    net.Output(image);
    return image;
  };
  EXPECT_EQ(SeparableKernels(is_output).size(), 2U);
  const auto moved = [](Net& net, int image) { return net.Op("transpose", {image}, Perm({0, 2, 1, 3})); };
  EXPECT_EQ(SeparableKernels(moved).size(), 3U);
}

// Scores of six heads, a softmax of them in a shape of its own, and their mix; `between` is done to what it gives.
std::vector<std::string> AttentionKernels(const Ints& shape, int64_t axis, const PlanOptions& options,
                                          const std::function<void(Net&, int)>& between = nullptr) {
  Net net;
  const int scores = net.Op("batch_matmul", {net.Input({6, 5, 8}), net.Input({6, 8, 7})});
  const int apart = net.Op("reshape", {net.Op("relu", {scores})}, Shape(shape));
  const int weights = net.Op("softmax", {apart}, {{"axis", axis}});
  if (between) between(net, weights);
  net.Output(net.Op("batch_matmul", {net.Op("reshape", {weights}, Shape({6, 5, 7})), net.Input({6, 7, 4})}));
  const absl::StatusOr<Plan> plan = MakePlan(net.graph(), options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return Steps(*plan);
}

TEST(Planner, AttentionIsOneKernel) {
  const PlanOptions as_it_is{.optimize = false};
  EXPECT_THAT(AttentionKernels({1, 6, 5, 7}, 3, as_it_is),
              ElementsAre("batch_matmul_6x5x7x8_relu_softmax_6x5x7_batch_matmul_6x5x4x7"));
  EXPECT_EQ(AttentionKernels({1, 6, 5, 7}, 3, {.optimize = false, .joins_attention = false}).size(), 3U);
  EXPECT_EQ(AttentionKernels({1, 6, 5, 7}, 2, as_it_is).size(), 3U) << "not along the rows that the mix reads";
  EXPECT_EQ(AttentionKernels({2, 3, 5, 7}, 3, as_it_is).size(), 3U) << "heads would have to be told apart";
  const auto is_output = [](Net& net, int weights) { net.Output(weights); };
  EXPECT_EQ(AttentionKernels({1, 6, 5, 7}, 3, as_it_is, is_output).size(), 3U);
}

TEST(Planner, AResidualSumGoesToTheLargerProduct) {
  Net net;
  const int x = net.Input({4, 6});
  const int large = net.Op("dense", {net.Op("dense", {x, net.Constant({6, 90}, 1)}), net.Constant({90, 5}, 2)});
  const int small = net.Op("dense", {x, net.Constant({6, 5}, 3)});
  net.Output(net.Op("add", {small, large}));
  EXPECT_THAT(Steps(Fused(net)), ElementsAre("dense_4x90x6", "dense_4x5x6", "dense_4x5x90_add"));
}

// A dequantised residual, whose bytes the product of the sum reads in place of its floats.
TEST(Planner, FollowersTakeWhatIsMadeOfOneValueForThem) {
  const auto steps = [](bool read_twice, bool of_two) {
    Net net;
    const int bytes = net.Op("cast", {net.Input({4, 6})}, {{"to", std::string("uint8")}});
    net.Output(bytes);
    int residual = net.Op("cast", {bytes}, {{"to", std::string("float32")}});
    residual = net.Op("multiply", {residual, of_two ? net.Input({4, 6}) : net.Constant({}, 3)});
    const int dense = net.Op("dense", {net.Input({4, 8}), net.Constant({8, 6}, 1)});
    net.Output(net.Op("relu", {net.Op("add", {dense, residual})}));
    if (read_twice) net.Output(net.Op("exp", {residual}));
    return Steps(Fused(net));
  };
  EXPECT_THAT(steps(false, false), ElementsAre("cast_4x6", "cast_multiply_dense_4x6x8_add_relu"));
  EXPECT_THAT(steps(true, false), ElementsAre("cast_4x6", "cast_multiply_4x6", "dense_4x6x8_add_relu", "exp_4x6"));
  EXPECT_THAT(steps(false, true), ElementsAre("cast_4x6", "cast_multiply_4x6", "dense_4x6x8_add_relu"));
}

TEST(Planner, EqualFunctionsAreOneTask) {
  Net net;
  int x = net.Input({4, 6});
  for (uint64_t layer = 0; layer < 3; ++layer) x = net.Op("relu", {net.Op("dense", {x, net.Constant({6, 6}, layer)})});
  net.Output(net.Op("dense", {x, net.Constant({6, 6}, 9)}));
  const Plan plan = Fused(net);
  EXPECT_EQ(plan.steps.size(), 4u);
  ASSERT_EQ(plan.tasks.size(), 2u);
  EXPECT_EQ(plan.tasks[0].weight, 3);
  EXPECT_EQ(plan.tasks[1].weight, 1);
}

TEST(Planner, ConstantOperandsMakeAnotherTask) {
  Net net;
  const int x = net.Input({4, 6});
  net.Output(net.Op("dense", {x, net.Constant({6, 6}, 1)}));
  net.Output(net.Op("dense", {x, net.Input({6, 6})}));
  EXPECT_EQ(Fused(net).tasks.size(), 2u) << "the weight of one may be packed ahead of time";
}

TEST(Planner, ReshapesAreViews) {
  Net net;
  const int dense = net.Op("dense", {net.Input({4, 6}), net.Constant({6, 6}, 1)});
  const int view = net.Op("reshape", {dense}, {{"shape", Ints{2, 2, 6}}});
  net.Output(net.Op("softmax", {view}, {{"axis", int64_t{2}}}));
  const Plan plan = Fused(net);
  EXPECT_EQ(plan.steps.size(), 2u);
  const PlanTensor& read = plan.tensors[plan.steps[1].tensors[0]];
  EXPECT_EQ(read.shape, (Ints{2, 2, 6}));
  EXPECT_EQ(read.alias_of, plan.steps[0].tensors.back());
}

TEST(Planner, OutputsThatNothingMakesAreCopied) {
  Net net;
  const int x = net.Input({2, 3});
  net.Output(x);
  net.Output(net.Constant({4}, 1));
  const Plan plan = Fused(net);
  EXPECT_THAT(Steps(plan), ElementsAre("copy_2x3", "copy_4"));
  for (const int output : plan.outputs) EXPECT_EQ(plan.tensors[output].kind, PlanTensor::kOutput);
}

TEST(Planner, FusedAndUnfusedComputeTheSame) {
  Net net;
  const int x = net.Input({1, 6, 6, 4});
  const int conv = net.Op("conv", {x, net.Constant({3, 3, 4, 4}, 1)}, {{"pads", Ints{1, 1, 1, 1}}});
  const int gate = net.Op("sigmoid", {net.Op("reduce_mean", {conv}, {{"axes", Ints{1, 2}}, {"keepdims", int64_t{1}}})});
  const int sum = net.Op("add", {net.Op("multiply", {conv, gate}), x});
  net.Output(net.Op("transpose", {net.Op("relu", {sum})}, {{"perm", Ints{0, 3, 1, 2}}}));
  const Plan plan = Fused(net);
  EXPECT_LT(plan.steps.size(), net.graph().nodes.size());
  ExpectNear(Interpreted(plan), Computed(net.graph()), 1e-5);
}

// ---- Domains

TEST(Planner, IndicesStayInTheTable) {
  Net net;
  const int ids = net.Input({5}, kInt64);
  net.Output(net.Op("gather", {net.Constant({7, 3}, 1), ids}, {{"axis", int64_t{0}}}));
  EXPECT_THAT(Domains(Fused(net).tasks[0]), ElementsAre("", "int[0,7)", ""));
}

TEST(Planner, WhatIsRootedIsPositive) {
  Net net;
  net.Output(net.Op("sqrt", {net.Op("exp", {net.Input({5})})}));
  EXPECT_THAT(Domains(Fused(net).tasks[0]), ElementsAre("positive", ""));
  Net other;
  other.Output(other.Op("exp", {other.Input({5})}));
  EXPECT_THAT(Domains(Fused(other).tasks[0]), testing::IsEmpty());
}

TEST(Planner, TheModelsWordOnItsInputsIsKept) {
  Net net;
  const int ids = net.Input({2, 3}, kInt64);
  net.SetDomain(ids, "int[3,9)");
  const int flat = net.Op("reshape", {ids}, {{"shape", Ints{6}}});
  net.Output(net.Op("multiply", {flat, flat}));
  EXPECT_THAT(Domains(Fused(net).tasks[0]), ElementsAre("int[3,9)", ""));
}

// ---- Graph

TEST(GraphTest, CompactDropsWhatNobodyNeeds) {
  Net net;
  const int x = net.Input({3});
  net.Op("exp", {x});
  net.Output(net.Op("relu", {x}));
  EXPECT_EQ(Operators(After(net, [](Graph& g) { return g.Compact(); })), "relu");
}

TEST(GraphTest, CompactNamesTheNodesOfACycle) {
  Net net;
  const int a = net.Op("relu", {net.Input({3})});
  const int b = net.Op("exp", {a});
  net.Output(b);
  Graph graph = net.graph();
  graph.nodes[0].inputs[0] = b;
  const absl::Status status = graph.Compact();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("relu0, exp1"));
}

TEST(GraphTest, ShapesThatDoNotFitAreRefused) {
  Graph graph;
  const int a = graph.AddValue("a", {kFloat32, {2, 3}}), b = graph.AddValue("b", {kFloat32, {4, 3}});
  EXPECT_FALSE(graph.Add("add", "sum", {a, b}).ok());
  EXPECT_FALSE(graph.Add("dense", "product", {a, b}).ok());
  EXPECT_FALSE(graph.Add("reshape", "view", {a}, {{"shape", Ints{7}}}).ok());
  EXPECT_TRUE(graph.nodes.empty()) << "a refused node leaves nothing behind";
  EXPECT_FALSE(CheckSize({kFloat32, {int64_t{1} << 40, 2}}).ok());
  EXPECT_EQ(NumElements({int64_t{1} << 40, int64_t{1} << 40}), std::nullopt);
}

}  // namespace
}  // namespace hone
