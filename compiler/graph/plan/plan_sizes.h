// Values of a plan's symbolic sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/plan/plan.h"

namespace hone {

// All that have a value of each list; the last list's change fastest.
std::vector<std::vector<int64_t>> Grid(const std::vector<std::vector<int64_t>>& lists);

// "batch=3, seq=17", a value for each size.
std::string SizesText(const std::vector<PlanSize>& sizes, const std::vector<int64_t>& values,
                      const char* between = ", ");

}  // namespace hone
