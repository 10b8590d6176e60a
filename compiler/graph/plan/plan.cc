#include "compiler/graph/plan/plan.h"

#include <set>

namespace hone {

int RootOf(const Plan& plan, int tensor) {
  return plan.tensors[tensor].alias_of < 0 ? tensor : plan.tensors[tensor].alias_of;
}

int64_t BytesOf(const PlanTensor& tensor) {
  int64_t bytes = tensor.dtype.bytes();
  for (const int64_t extent : tensor.shape) bytes *= extent;
  return bytes;
}

const std::string& NameOf(const Plan& plan, const PlanStep& step) {
  return step.is_call() ? step.packed : plan.tasks[step.task].name;
}

std::vector<std::string> CalledFunctions(const Plan& plan) {
  std::set<std::string> names;
  for (const PlanStep& step : plan.steps) {
    if (step.is_call()) names.insert(step.packed);
  }
  return {names.begin(), names.end()};
}

}  // namespace hone
