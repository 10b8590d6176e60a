#include "compiler/graph/plan/cold_operands.h"

#include "compiler/graph/plan/planner.h"
#include "compiler/ir/annotations.h"
#include "compiler/support/check.h"
#include "gtest/gtest.h"
#include "tests/compiler/graph/net.h"

namespace hone {
namespace {

// A wide layer and a narrow one, behind each other.
Plan TwoLayers(int64_t wide) {
  Net net;
  const int x = net.Input({2, 64});
  const int y = net.Op("dense", {x, net.Constant({64, wide}, 1)});
  net.Output(net.Op("dense", {y, net.Constant({wide, 2}, 2)}));
  absl::StatusOr<Plan> plan = MakePlan(net.graph(), {.optimize = false});
  HONE_CHECK(plan.ok()) << plan.status().ToString();
  MarkColdOperands(*plan);
  return *std::move(plan);
}

std::vector<bool> Cold(const Plan& plan) {
  std::vector<bool> cold;
  for (const PlanTask& task : plan.tasks) cold.push_back(task.func.attrs.count(kColdConstants) != 0);
  return cold;
}

TEST(ColdOperands, AreConstantsOfLargeKernelsInLargeModels) {
  EXPECT_EQ(Cold(TwoLayers(4096)), (std::vector<bool>{false, false})) << "1 MiB: it stays in a cache";
  EXPECT_EQ(Cold(TwoLayers(120000)), (std::vector<bool>{true, true})) << "30 MiB, one of them";
}

TEST(ColdOperands, FewConstantsComeBackAtOnce) {
  Net net;
  const int x = net.Input({2, 64});
  const int y = net.Op("dense", {x, net.Constant({64, 120000}, 1)});
  net.Output(y);
  net.Output(net.Op("dense", {x, net.Constant({64, 8}, 2)}));
  absl::StatusOr<Plan> plan = MakePlan(net.graph(), {.optimize = false});
  ASSERT_TRUE(plan.ok()) << plan.status();
  MarkColdOperands(*plan);
  EXPECT_EQ(Cold(*plan), (std::vector<bool>{true, false}));
}

// The numbers of the params that are cold outputs, of each task.
std::vector<std::vector<int>> ColdOutputs(const Plan& plan) {
  std::vector<std::vector<int>> cold;
  for (const PlanTask& task : plan.tasks) {
    cold.emplace_back();
    for (int i = 0; i < static_cast<int>(task.func.params.size()); ++i) {
      if (IsColdOutput(task.func, i)) cold.back().push_back(i);
    }
  }
  return cold;
}

// A product of so many rows, whose result `y` and a part of it are outputs; the product before it has `wide` columns.
Plan LargeResults(int64_t wide) {
  Net net;
  const int x = net.Input({512, 64});
  const int hidden = net.Op("dense", {x, net.Constant({64, wide}, 1)});
  net.Output(net.Op("dense", {hidden, net.Constant({wide, 128}, 2)}));
  net.Output(net.Op("dense", {hidden, net.Constant({wide, 2}, 3)}));
  absl::StatusOr<Plan> plan = MakePlan(net.graph(), {.optimize = false});
  HONE_CHECK(plan.ok()) << plan.status().ToString();
  MarkColdOperands(*plan);
  return *std::move(plan);
}

TEST(ColdOperands, AreLargeOutputsOfLargeModels) {
  const std::vector<int> none, second = {2};
  EXPECT_EQ(ColdOutputs(LargeResults(256)), (std::vector{none, none, none}));
  EXPECT_EQ(ColdOutputs(LargeResults(60000)), (std::vector{none, second, none}))
      << "not what only the model reads, nor a few numbers";
}

// The same program writes the output `y` and what the model reads again.
TEST(ColdOperands, AreOutputsWheneverTheirTaskRuns) {
  for (const bool again : {false, true}) {
    Net net;
    const int x = net.Input({512, 128});
    int y = net.Op("dense", {x, net.Constant({128, 128}, 1)});
    if (again) y = net.Op("dense", {y, net.Constant({128, 128}, 2)});
    net.Output(y);
    net.Output(net.Op("dense", {y, net.Constant({128, 60000}, 3)}));
    absl::StatusOr<Plan> plan = MakePlan(net.graph(), {.optimize = false});
    ASSERT_TRUE(plan.ok()) << plan.status();
    MarkColdOperands(*plan);
    EXPECT_EQ(ColdOutputs(*plan).front().empty(), again);
  }
}

}  // namespace
}  // namespace hone
