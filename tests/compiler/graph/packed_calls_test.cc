// Calls of functions that only the program has which runs the model: steps of a plan that are no tasks.
#include <algorithm>
#include <utility>

#include "compiler/graph/calls.h"
#include "compiler/graph/plan/generalise_plan.h"
#include "compiler/graph/plan/planner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kRows{kFloat32, {3, 4}}, kThree{kFloat32, {3}};

// y = relu(f(relu(x), c) as [2, 6]), where f gives the sum of the two and their product, which nobody reads.
Graph GraphThatCalls() {
  Net net;
  const int values = net.Op("relu", {net.Input({3, 4})}), c = net.Constant({3, 4}, 7);
  Graph graph = net.graph();
  const absl::StatusOr<std::vector<int>> both =
      graph.AddNode("call_packed", "both", {values, c}, CallAttrs("env.both", std::vector{kRows, kRows}));
  EXPECT_TRUE(both.ok()) << both.status();
  const int rows = *graph.Add("reshape", "rows", {both->front()}, Shape({2, 6}));
  graph.outputs = {*graph.Add("relu", "y", {rows})};
  graph.output_names = {"y"};
  return graph;
}

absl::Status SumAndProduct(std::vector<NdArray>& args) {
  for (int64_t i = 0; i < args[0].NumElements(); ++i) {
    args[2].Set(i, args[0].Get(i) + args[1].Get(i));
    args[3].Set(i, args[0].Get(i) * args[1].Get(i));
  }
  return absl::OkStatus();
}

Plan PlanOfCalls(Graph graph, const PlanOptions& options = {}) {
  absl::StatusOr<Plan> plan = MakePlan(std::move(graph), options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(PackedCalls, AreStepsThatAreNoTasks) {
  for (const bool fuse : {false, true}) {
    const Plan plan = PlanOfCalls(GraphThatCalls(), {.optimize = false, .fuse = fuse});
    ASSERT_EQ(plan.steps.size(), 3u) << ToText(plan);
    ASSERT_EQ(plan.tasks.size(), 2u) << "nothing is tuned of a call";
    const PlanStep& call = plan.steps[1];
    EXPECT_TRUE(call.is_call());
    EXPECT_EQ(NameOf(plan, call), "env.both");
    EXPECT_EQ(call.outputs, 2);
    ASSERT_EQ(call.tensors.size(), 4u);
    EXPECT_EQ(call.tensors[0], plan.steps[0].tensors.back());
    EXPECT_EQ(plan.tensors[call.tensors[1]].kind, PlanTensor::kConstant);
    EXPECT_EQ(plan.tensors[plan.steps[2].tensors[0]].alias_of, call.tensors[2]) << "read as another shape";
    EXPECT_THAT(CalledFunctions(plan), ElementsAre("env.both"));
    EXPECT_THAT(ToText(plan), HasSubstr("  env.both(t"));
  }
}

TEST(PackedCalls, RunByWhatTheCallerHas) {
  const Plan plan = PlanOfCalls(GraphThatCalls());
  NdArray x(kFloat32, {3, 4});
  for (int64_t i = 0; i < 12; ++i) x.Set(i, static_cast<double>(i) - 6);
  const absl::StatusOr<std::vector<NdArray>> y = InterpretPlan(plan, {&x, 1}, {{"env.both", SumAndProduct}});
  ASSERT_TRUE(y.ok()) << y.status();
  const NdArray& c = *plan.tensors[plan.steps[1].tensors[1]].data;
  for (int64_t i = 0; i < 12; ++i) EXPECT_FLOAT_EQ((*y)[0].Get(i), std::max(0.0, i - 6.0) + c.Get(i));

  const absl::Status without = InterpretPlan(plan, {&x, 1}, {{"env.other", SumAndProduct}}).status();
  EXPECT_EQ(without.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(without.message(), HasSubstr("the model calls \"env.both\", which only the program that runs it has"));

  const auto fails = [](std::vector<NdArray>&) { return absl::InternalError("no luck"); };
  EXPECT_THAT(InterpretPlan(plan, {&x, 1}, {{"env.both", fails}}).status().message(),
              HasSubstr("running env.both: no luck"));
}

TEST(PackedCalls, AnOutputOfTheModelIsWrittenByTheCall) {
  Net net;
  const int x = net.Input({3, 4});
  net.Output(net.Op("call_packed", {x, x}, CallAttrs("env.twice", {&kRows, 1})));
  const Plan plan = PlanOfCalls(net.graph());
  ASSERT_EQ(plan.steps.size(), 1u) << ToText(plan);
  EXPECT_TRUE(plan.tasks.empty());
  EXPECT_THAT(plan.steps[0].tensors, ElementsAre(plan.inputs[0], plan.inputs[0], plan.outputs[0]));
}

TEST(PackedCalls, HaveAName) {
  Net net;
  net.Output(net.Op("call_packed", {net.Input({3})}, CallAttrs("", {&kThree, 1})));
  EXPECT_THAT(MakePlan(net.graph()).status().message(), HasSubstr("calls a function without a name"));
}

TEST(PackedCalls, HaveTensorsOfOneShape) {
  const std::vector<PlanSize> sizes = {{"n", {1, 8}}};
  const std::vector<std::vector<int64_t>> points = SizesToPlanAt(sizes);
  const std::vector<Plan> plans(points.size(), PlanOfCalls(GraphThatCalls()));
  const absl::Status refused = GeneralisePlan(sizes, points, plans).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("the model calls \"env.both\""));
}

}  // namespace
}  // namespace hone
