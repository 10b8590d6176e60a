// From graph to plan: groups of nodes become TensorIR functions.
//
// A group is one anchor (convolution, product, pooling, reduction, softmax, layer norm) with the elementwise operators
// that follow it, and for reductions and products those in front of it; a product with the anchors that it alone reads
// (a depthwise convolution; scores and softmax of attention); or a chain of elementwise and moving operators.
// It has one output. Reshapes are views and belong to no group. A call of a function that only the program that runs
// the model has is no task.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/ir/numeric.h"

namespace hone {

struct PlanOptions {
  bool optimize = true;  // run Optimize first; otherwise the graph is planned as it is
  bool fuse = true;      // otherwise every node is its own task
  // Scores, softmax and mix of attention are one task. Without it they are three, which is for devices: their nests
  // take one product each.
  bool joins_attention = true;
  // Of the target: which instructions there are for products (passes.h). Empty: the plan is for any.
  std::set<std::string> features;
  NumericLevel numeric = NumericLevel::kDefault;
};

// Equal functions are one task. A graph whose output is an input or a constant gets a copying step.
absl::StatusOr<Plan> MakePlan(Graph graph, const PlanOptions& options = {});

// The plan run step by step, each step by `run` on the arguments of its task's function. Inputs in the plan's order;
// outputs likewise. InvalidArgument when an input has another type or shape than the plan's, FailedPrecondition names a
// function that the plan calls and `packed` has not.
using RunTask = std::function<absl::Status(const PlanTask& task, std::vector<NdArray>& args)>;
using PackedFunction = std::function<absl::Status(std::vector<NdArray>& args)>;  // reads inputs, writes outputs
using PackedFunctions = std::map<std::string, PackedFunction>;
absl::StatusOr<std::vector<NdArray>> RunPlan(const Plan& plan, std::span<const NdArray> inputs, const RunTask& run,
                                             const PackedFunctions& packed = {});
// The same in the interpreter: for small shapes.
absl::StatusOr<std::vector<NdArray>> InterpretPlan(const Plan& plan, std::span<const NdArray> inputs,
                                                   const PackedFunctions& packed = {});

// The plan as text: steps with their tasks and tensors.
std::string ToText(const Plan& plan);

}  // namespace hone
