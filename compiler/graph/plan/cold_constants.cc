#include "compiler/graph/plan/cold_constants.h"

#include "compiler/ir/annotations.h"

namespace hone {
namespace {

// Last caches are of 8 to 32 MiB where one program has them for itself; larger ones are a server's, which others use.
constexpr int64_t kCached = int64_t{24} << 20;
constexpr int64_t kBackAtOnce = 64 << 10;

}  // namespace

void MarkColdConstants(Plan& plan) {
  int64_t all = 0;
  for (const PlanTensor& tensor : plan.tensors) {
    if (tensor.kind == PlanTensor::kConstant && tensor.alias_of < 0 && tensor.data != nullptr)
      all += static_cast<int64_t>(tensor.data->data.size());
  }
  if (all <= kCached) return;
  for (PlanTask& task : plan.tasks) {
    int64_t bytes = 0;
    for (size_t i = 0; i < task.func.params.size(); ++i) {
      const Buffer& param = task.func.params[i];
      if (task.func.IsConstant(static_cast<int>(i))) bytes += param.NumElements().value_or(0) * param.type().bytes();
    }
    if (bytes > kBackAtOnce) task.func.attrs[kColdConstants] = int64_t{1};
  }
}

}  // namespace hone
