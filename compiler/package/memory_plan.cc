#include "compiler/package/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "compiler/support/check.h"

namespace hone {
MemoryPlan PlanMemory(std::span<const TensorLife> tensors, int64_t alignment) {
  const auto aligned = [&](int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  MemoryPlan plan;
  plan.offsets.assign(tensors.size(), 0);
  std::vector<int> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return tensors[a].bytes > tensors[b].bytes; });
  std::vector<int> placed;  // by offset
  for (const int tensor : order) {
    const TensorLife& life = tensors[tensor];
    HONE_CHECK(life.bytes >= 0 && life.first <= life.last) << "tensor " << tensor << " has no life";
    const int64_t size = aligned(life.bytes);
    if (size == 0) continue;
    int64_t best = -1, best_gap = 0, end = 0;  // end: of the tensors seen so far that live at the same time
    for (const int other : placed) {
      if (tensors[other].last < life.first || life.last < tensors[other].first) continue;
      const int64_t gap = plan.offsets[other] - end;
      if (gap >= size && (best < 0 || gap < best_gap)) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, plan.offsets[other] + aligned(tensors[other].bytes));
    }
    plan.offsets[tensor] = best < 0 ? end : best;
    plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[tensor] + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), tensor,
                                   [&](int a, int b) { return plan.offsets[a] < plan.offsets[b]; }),
                  tensor);
  }
  return plan;
}

}  // namespace hone
