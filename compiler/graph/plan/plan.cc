#include "compiler/graph/plan/plan.h"

#include <set>

namespace hone {

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
