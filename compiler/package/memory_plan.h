// Places tensors in one arena so that those whose lives do not meet share memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hone {

struct TensorLife {
  int64_t bytes = 0;
  int first = 0, last = 0;  // the steps that use it, both included
};

struct MemoryPlan {
  std::vector<int64_t> offsets;
  int64_t arena_bytes = 0;
};

// Greedy by size: the biggest first, each into the smallest gap among the tensors placed that live at the same time, as
// in Pisarchyk and Lee, "Efficient memory management for deep neural net inference" (2020), section 4.4. A tensor read
// by a step and one written by it never share bytes: kernels may assume that their tensors do not alias.
// Offsets are multiples of `alignment`.
MemoryPlan PlanMemory(std::span<const TensorLife> tensors, int64_t alignment = 64);

}  // namespace hone
