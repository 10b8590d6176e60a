#include "compiler/graph/plan/cold_operands.h"

#include <algorithm>

#include "compiler/arith/linear.h"
#include "compiler/ir/annotations.h"

namespace hone {
namespace {

// Last caches are of 8 to 32 MiB where one program has them for itself; larger ones are a server's, which others use.
constexpr int64_t kCached = int64_t{24} << 20;
constexpr int64_t kBackAtOnce = 64 << 10;

int64_t BytesOf(const Buffer& param) { return MostElements(param).value_or(0) * param.type().bytes(); }

bool IsOutputInAllSteps(const Plan& plan, int task, size_t param) {
  return std::ranges::all_of(plan.steps, [&](const PlanStep& step) {
    return step.task != task || plan.tensors[static_cast<size_t>(step.tensors[param])].kind == PlanTensor::kOutput;
  });
}

}  // namespace

void MarkColdOperands(Plan& plan) {
  int64_t all = 0;
  for (const PlanTensor& tensor : plan.tensors) {
    if (tensor.kind == PlanTensor::kConstant && tensor.alias_of < 0 && tensor.data != nullptr)
      all += static_cast<int64_t>(tensor.data->data.size());
  }
  if (all <= kCached) return;
  for (size_t t = 0; t < plan.tasks.size(); ++t) {
    PrimFunc& func = plan.tasks[t].func;
    int64_t constants = 0;
    std::vector<int64_t> outputs;
    for (size_t i = 0; i < func.params.size(); ++i) {
      const int64_t bytes = BytesOf(func.params[i]);
      const bool is_output = i + static_cast<size_t>(func.num_outputs()) >= func.params.size();
      if (func.IsConstant(static_cast<int>(i))) constants += bytes;
      if (is_output && bytes > kBackAtOnce && IsOutputInAllSteps(plan, static_cast<int>(t), i))
        outputs.push_back(static_cast<int64_t>(i));
    }
    if (constants > kBackAtOnce) func.attrs[kColdConstants] = int64_t{1};
    if (!outputs.empty()) func.attrs[kColdOutputs] = std::move(outputs);
  }
}

}  // namespace hone
