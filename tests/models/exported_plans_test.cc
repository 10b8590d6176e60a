// Into how many kernels the networks of exported/ are cut, how many bytes these read and write, and how many do nothing
// but change a layout, against the table exported/plans.txt. HONE_UPDATE_GOLDEN=1 writes it again.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/planner.h"
#include "compiler/support/file.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string kFolder = HONE_TEST_DATA "/models/exported";

// Weights in [0.5, 1), of which no pass thinks that they are none.
absl::Status WriteWeights(const Json& weights, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  Random random(1);
  std::vector<float> values;
  for (const Json& weight : weights) {
    int64_t elements = 1;
    for (const Json& extent : weight.at("shape")) elements *= extent.get<int64_t>();
    values.resize(static_cast<size_t>(elements));
    for (float& value : values) value = static_cast<float>(0.5 + random.Uniform() / 2);
    file.seekp(weight.at("offset").get<int64_t>());
    file.write(reinterpret_cast<const char*>(values.data()), elements * 4);
  }
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::StatusOr<Plan> PlanOf(const std::string& name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/hone_plans_", getpid());
  fs::create_directories(folder);
  HONE_ASSIGN_OR_RETURN(const std::string json, ReadFile(absl::StrCat(kFolder, "/", name, ".json")));
  HONE_RETURN_IF_ERROR(WriteWeights(Json::parse(json).at("weights"), absl::StrCat(folder, "/", name, ".onnx.data")));
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(absl::StrCat(kFolder, "/", name, ".onnx")));
  absl::StatusOr<Graph> graph = ImportOnnxBytes(bytes, folder);
  fs::remove_all(folder);
  HONE_RETURN_IF_ERROR(graph.status());
  return MakePlan(*std::move(graph));
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
  return absl::StrFormat("%-20s %7d %7d %10.0f %14.0f\n", name, plan.steps.size(), plan.tasks.size(), bytes / 1024,
                         layouts);
}

TEST(ExportedPlans, KernelsBytesAndLayouts) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".onnx") names.insert(entry.path().stem());
  }
  std::string table =
      absl::StrFormat("%-20s %7s %7s %10s %14s\n", "network", "kernels", "tasks", "KiB moved", "layout changes");
  for (const std::string& name : names) {
    const absl::StatusOr<Plan> plan = PlanOf(name);
    ASSERT_TRUE(plan.ok()) << name << ": " << plan.status();
    table += Summary(name, *plan);
  }
  const std::string golden = kFolder + "/plans.txt";
  if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << table;
  const absl::StatusOr<std::string> expected = ReadFile(golden);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(table, *expected);
}

}  // namespace
}  // namespace hone
