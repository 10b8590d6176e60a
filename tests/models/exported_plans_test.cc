// Into how many kernels the networks of exported/ are cut, how many bytes these read and write, how many do nothing but
// change a layout, and how much memory inputs, outputs and what lies between kernels take at once, against the table
// exported/plans.txt. HONE_UPDATE_GOLDEN=1 writes it again.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/package/memory_plan.h"
#include "compiler/support/file.h"
#include "gtest/gtest.h"
#include "tests/models/exported_graph.h"

namespace hone {
namespace {

// Of all tensors but constants, as a bundle has them in memory (memory_plan.h).
int64_t PeakBytes(const Plan& plan) {
  std::map<int, TensorLife> lives;  // by tensor
  const auto use = [&](int tensor, int step) {
    const int root = RootOf(plan, tensor);
    if (plan.tensors[root].kind == PlanTensor::kConstant) return;
    TensorLife& life = lives.try_emplace(root, TensorLife{BytesOf(plan.tensors[root]), step, step}).first->second;
    life.last = std::max(life.last, step);
  };
  const int steps = static_cast<int>(plan.steps.size());
  for (const int input : plan.inputs) use(input, 0);
  for (int step = 0; step < steps; ++step) {
    for (const int tensor : plan.steps[step].tensors) use(tensor, step);
  }
  for (const std::vector<int>* of_caller : {&plan.inputs, &plan.outputs}) {  // they stay when the run is over
    for (const int tensor : *of_caller) use(tensor, steps);
  }
  std::vector<TensorLife> all;
  for (const auto& [tensor, life] : lives) all.push_back(life);
  return PlanMemory(all).arena_bytes;
}

// A line of the table.
std::string Summary(const std::string& name, const Plan& plan) {
  double bytes = 0, layouts = 0;
  for (const PlanTask& task : plan.tasks) {
    bytes += task.weight * task.bytes;
    // Kernels are named after what they do; those that move elements alone, after their shape.
    const bool moves = task.name.starts_with("transpose_") && task.flop == 0;
    layouts += moves ? task.weight : 0;
  }
  return absl::StrFormat("%-20s %7d %7d %10.0f %14.0f %9.0f\n", name, plan.steps.size(), plan.tasks.size(),
                         bytes / 1024, layouts, static_cast<double>(PeakBytes(plan)) / 1024);
}

TEST(ExportedPlans, KernelsBytesLayoutsAndMemory) {
  std::string table = absl::StrFormat("%-20s %7s %7s %10s %14s %9s\n", "network", "kernels", "tasks", "KiB moved",
                                      "layout changes", "KiB held");
  for (const std::string& name : ExportedNetworks()) {
    absl::StatusOr<Graph> graph = ExportedGraph(name);
    ASSERT_TRUE(graph.ok()) << name << ": " << graph.status();
    const absl::StatusOr<Plan> plan = MakePlan(*std::move(graph));
    ASSERT_TRUE(plan.ok()) << name << ": " << plan.status();
    table += Summary(name, *plan);
  }
  const std::string golden = HONE_TEST_DATA "/models/exported/plans.txt";
  if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << table;
  const absl::StatusOr<std::string> expected = ReadFile(golden);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(table, *expected);
}

}  // namespace
}  // namespace hone
