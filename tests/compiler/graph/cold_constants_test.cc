#include "compiler/graph/plan/cold_constants.h"

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
  MarkColdConstants(*plan);
  return *std::move(plan);
}

std::vector<bool> Cold(const Plan& plan) {
  std::vector<bool> cold;
  for (const PlanTask& task : plan.tasks) cold.push_back(task.func.attrs.count(kColdConstants) != 0);
  return cold;
}

TEST(ColdConstants, AreThoseOfLargeKernelsInLargeModels) {
  EXPECT_EQ(Cold(TwoLayers(4096)), (std::vector<bool>{false, false})) << "1 MiB: it stays in a cache";
  EXPECT_EQ(Cold(TwoLayers(120000)), (std::vector<bool>{true, true})) << "30 MiB, one of them";
}

TEST(ColdConstants, FewComeBackAtOnce) {
  Net net;
  const int x = net.Input({2, 64});
  const int y = net.Op("dense", {x, net.Constant({64, 120000}, 1)});
  net.Output(y);
  net.Output(net.Op("dense", {x, net.Constant({64, 8}, 2)}));
  absl::StatusOr<Plan> plan = MakePlan(net.graph(), {.optimize = false});
  ASSERT_TRUE(plan.ok()) << plan.status();
  MarkColdConstants(*plan);
  EXPECT_EQ(Cold(*plan), (std::vector<bool>{true, false}));
}

}  // namespace
}  // namespace hone
