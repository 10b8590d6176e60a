// Workloads with one or two symbolic sizes: what random schedules over them are played on.
#pragma once

#include <string>
#include <vector>

#include "compiler/support/random.h"
#include "tests/compiler/schedule/workload_table.h"

namespace hone::testing {

struct SymbolicWorkload {
  std::string name;
  PrimFunc func;
  bool exact = true;  // as of a SmallWorkload
};

// A product, one of two sizes, a dense layer, softmax, attention's scores, layer norm, an element-wise chain, a
// reduction over a symbolic axis, a convolution with a border, a strided pool, rows in multiples of 8.
const std::vector<SymbolicWorkload>& SymbolicWorkloads();

// Values of the function's sizes: the least, the greatest, and `more` random ones between.
std::vector<std::vector<int64_t>> SomeSizes(const PrimFunc& func, int more, Random& random);

// The same with numbers in place of the sizes.
SmallWorkload AtSizes(const SymbolicWorkload& workload, const std::vector<int64_t>& sizes);

}  // namespace hone::testing
