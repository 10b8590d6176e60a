// Random graphs compute the same with all passes and with none: interpreted, and, since compiling takes longer, some of
// them compiled. HONE_RANDOM_GRAPHS=1000 tries so many of both, from the one that HONE_FIRST_RANDOM_GRAPH names.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/driver/bundles/bundle_session.h"
#include "compiler/driver/models/model.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "gtest/gtest.h"
#include "tests/models/random_graph.h"

namespace hone {
namespace {

constexpr uint64_t kInterpreted = 200, kCompiled = 16;
constexpr double kTolerance = 2e-4;  // of an output's largest element, or of 1

uint64_t FromEnvironment(const char* name, uint64_t usual) {
  const char* text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : usual;
}

std::vector<NdArray> Inputs(const Plan& plan) {
  std::vector<NdArray> inputs;
  for (const int input : plan.inputs) {
    NdArray data(plan.tensors[input].dtype, plan.tensors[input].shape);
    Random random(1000, inputs.size());
    for (int64_t i = 0; i < data.NumElements(); ++i) data.Set(i, 2 * random.Uniform() - 1);
    inputs.push_back(std::move(data));
  }
  return inputs;
}

absl::StatusOr<std::vector<NdArray>> Compiled(const Plan& plan) {
  Model model;
  model.plan = plan;
  for (const PlanTask& task : plan.tasks) model.workloads.push_back(Canonicalize(task.func));
  const std::string bundle = absl::StrCat(testing::TempDir(), "/random_graph_", getpid(), ".hone");
  HONE_ASSIGN_OR_RETURN(const ResolvedSettings settings, Resolve({.threads = 2, .machine_text = "usual"}));
  HONE_RETURN_IF_ERROR(CompileModel(model, settings, nullptr, bundle).status());
  HONE_ASSIGN_OR_RETURN(BundleSession session, BundleSession::Load(bundle, 0));
  std::filesystem::remove(bundle);
  const std::vector<NdArray> inputs = Inputs(plan);
  for (size_t i = 0; i < inputs.size(); ++i)
    HONE_RETURN_IF_ERROR(session.SetInput(plan.tensors[plan.inputs[i]].name, inputs[i]));
  HONE_RETURN_IF_ERROR(session.Run());
  std::vector<NdArray> outputs;
  for (const int output : plan.outputs) {
    HONE_ASSIGN_OR_RETURN(NdArray value, session.Output(plan.tensors[output].name));
    outputs.push_back(std::move(value));
  }
  return outputs;
}

// "" when all outputs agree.
std::string Difference(const std::vector<NdArray>& got, const std::vector<NdArray>& want) {
  for (size_t o = 0; o < want.size(); ++o) {
    if (got[o].shape != want[o].shape) return absl::StrCat("output ", o, " has another shape");
    double largest = 1;
    for (int64_t i = 0; i < want[o].NumElements(); ++i) largest = std::max(largest, std::abs(want[o].Get(i)));
    for (int64_t i = 0; i < want[o].NumElements(); ++i) {
      if (std::abs(got[o].Get(i) - want[o].Get(i)) <= kTolerance * largest) continue;
      return absl::StrCat("output ", o, ", element ", i, ": ", got[o].Get(i), " instead of ", want[o].Get(i));
    }
  }
  return "";
}

// "" when the graph computes the same by `run` with all passes, and without any where `plain` says so, as it does
// interpreted node by node.
using Run = std::function<absl::StatusOr<std::vector<NdArray>>(const Plan&)>;
std::string Problem(const Graph& graph, const Run& run, bool plain) {
  const absl::StatusOr<Plan> as_it_is = MakePlan(graph, {.optimize = false, .fuse = false}),
                             optimised = MakePlan(graph);
  if (!as_it_is.ok()) return absl::StrCat("unoptimised: ", as_it_is.status().ToString());
  if (!optimised.ok()) return absl::StrCat("optimised: ", optimised.status().ToString());
  const absl::StatusOr<std::vector<NdArray>> want = InterpretPlan(*as_it_is, Inputs(*as_it_is));
  if (!want.ok()) return want.status().ToString();
  for (const Plan* plan : {&*optimised, &*as_it_is}) {
    if (plan == &*as_it_is && !plain) continue;
    const std::string label = plan == &*optimised ? "with all passes: " : "without passes: ";
    const absl::StatusOr<std::vector<NdArray>> got = run(*plan);
    if (!got.ok()) return absl::StrCat(label, got.status().ToString());
    if (const std::string difference = Difference(*got, *want); !difference.empty()) return label + difference;
  }
  return "";
}

void ExpectNoProblem(uint64_t usual, const Run& run, bool plain) {
  const uint64_t first = FromEnvironment("HONE_FIRST_RANDOM_GRAPH", 0);
  const uint64_t count = FromEnvironment("HONE_RANDOM_GRAPHS", usual);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph graph = RandomGraph(seed);
    const std::string problem = Problem(graph, run, plain);
    if (problem.empty()) continue;
    const Graph small = Shrunk(graph, [&](const Graph& g) { return !Problem(g, run, plain).empty(); });
    ADD_FAILURE() << "seed " << seed << ": " << problem << "\nof a smaller graph: " << Problem(small, run, plain)
                  << "\n"
                  << ToText(small);
  }
}

TEST(RandomGraphs, PassesKeepWhatIsComputed) {
  ExpectNoProblem(
      kInterpreted, [](const Plan& plan) { return InterpretPlan(plan, Inputs(plan)); }, false);
}

TEST(RandomGraphs, CompiledCodeComputesIt) { ExpectNoProblem(kCompiled, Compiled, true); }

// The generator is worth something only where its graphs are not all alike.
TEST(RandomGraphs, AreOfManyOperatorsAndSizes) {
  std::set<std::string> operators;
  size_t most = 0;
  for (uint64_t seed = 0; seed < kInterpreted; ++seed) {
    const Graph graph = RandomGraph(seed);
    most = std::max(most, graph.nodes.size());
    for (const Node& node : graph.nodes) operators.insert(node.op);
  }
  EXPECT_GE(operators.size(), 40u);
  EXPECT_GE(most, 30u);
}

TEST(RandomGraphs, AFailureShrinksToItsOperator) {
  uint64_t seed = 0;
  const auto has = [](const Graph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) { return node.op == "softmax"; });
  };
  while (!has(RandomGraph(seed))) ++seed;
  const Graph small = Shrunk(RandomGraph(seed), has);
  EXPECT_EQ(small.nodes.size(), 1u) << ToText(small);
}

}  // namespace
}  // namespace hone
