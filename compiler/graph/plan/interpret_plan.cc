#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/interp/interpreter.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<std::vector<NdArray>> RunPlan(const Plan& plan, std::span<const NdArray> inputs, const RunTask& run,
                                             const PackedFunctions& packed) {
  for (const std::string& name : CalledFunctions(plan)) {
    if (packed.count(name) == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the model calls \"", name, "\", which only the program that runs it has"));
    }
  }
  if (inputs.size() != plan.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", plan.inputs.size(), " inputs, ", inputs.size(), " are given"));
  }
  std::map<int, NdArray> storage;  // by the tensor that is no view
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PlanTensor& tensor = plan.tensors[plan.inputs[i]];
    if (inputs[i].dtype != tensor.dtype || inputs[i].shape != tensor.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " (\"", tensor.name, "\") has another type or shape than the model's"));
    }
    storage[plan.inputs[i]] = inputs[i];
  }
  for (const PlanStep& step : plan.steps) {
    const int num_outputs = step.is_call() ? step.outputs : plan.tasks[step.task].func.num_outputs();
    const size_t first_output = step.tensors.size() - static_cast<size_t>(num_outputs);
    std::vector<NdArray> args;
    for (size_t i = 0; i < step.tensors.size(); ++i) {
      const PlanTensor& tensor = plan.tensors[step.tensors[i]];
      const PlanTensor& held = plan.tensors[RootOf(plan, step.tensors[i])];
      if (i >= first_output) {
        args.emplace_back(tensor.dtype, tensor.shape);
        continue;
      }
      args.push_back(held.data != nullptr ? *held.data : storage.at(RootOf(plan, step.tensors[i])));
      args.back().shape = tensor.shape;
      args.back().dtype = tensor.dtype;
    }
    const absl::Status ran = step.is_call() ? packed.at(step.packed)(args) : run(plan.tasks[step.task], args);
    HONE_RETURN_IF_ERROR(Annotate(ran, absl::StrCat("running ", NameOf(plan, step))));
    for (size_t i = first_output; i < step.tensors.size(); ++i) {
      const int held = RootOf(plan, step.tensors[i]);
      args[i].shape = plan.tensors[held].shape;
      args[i].dtype = plan.tensors[held].dtype;
      storage[held] = std::move(args[i]);
    }
  }
  std::vector<NdArray> outputs;
  for (const int output : plan.outputs) {
    outputs.push_back(storage.at(RootOf(plan, output)));
    outputs.back().shape = plan.tensors[output].shape;
    outputs.back().dtype = plan.tensors[output].dtype;
  }
  return outputs;
}

absl::StatusOr<std::vector<NdArray>> InterpretPlan(const Plan& plan, std::span<const NdArray> inputs,
                                                   const PackedFunctions& packed) {
  return RunPlan(
      plan, inputs, [](const PlanTask& task, std::vector<NdArray>& args) { return Interpret(task.func, args); },
      packed);
}

}  // namespace hone
