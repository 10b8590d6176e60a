// Into how many kernels the networks of exported/ are cut, how many bytes these read and write, and how many do nothing
// but change a layout, against the table exported/plans.txt. HONE_UPDATE_GOLDEN=1 writes it again.
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/support/file.h"
#include "gtest/gtest.h"
#include "tests/models/exported_graph.h"

namespace hone {
namespace {

// A line of the table.
std::string Summary(const std::string& name, const Plan& plan) {
  double bytes = 0, layouts = 0;
  for (const PlanTask& task : plan.tasks) {
    bytes += task.weight * task.bytes;
    // Kernels are named after what they do; those that move elements alone, after their shape.
    const bool moves = task.name.starts_with("transpose_") && task.flop == 0;
    layouts += moves ? task.weight : 0;
  }
  return absl::StrFormat("%-20s %7d %7d %10.0f %14.0f\n", name, plan.steps.size(), plan.tasks.size(), bytes / 1024,
                         layouts);
}

TEST(ExportedPlans, KernelsBytesAndLayouts) {
  std::string table =
      absl::StrFormat("%-20s %7s %7s %10s %14s\n", "network", "kernels", "tasks", "KiB moved", "layout changes");
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
