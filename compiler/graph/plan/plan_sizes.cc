#include "compiler/graph/plan/plan_sizes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone {

std::vector<std::vector<int64_t>> Grid(const std::vector<std::vector<int64_t>>& lists) {
  std::vector<std::vector<int64_t>> grid = {{}};
  for (const std::vector<int64_t>& list : lists) {
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& start : grid) {
      for (const int64_t value : list) {
        longer.push_back(start);
        longer.back().push_back(value);
      }
    }
    grid = std::move(longer);
  }
  return grid;
}

std::string SizesText(const std::vector<PlanSize>& sizes, const std::vector<int64_t>& values, const char* between) {
  std::vector<std::string> parts;
  for (size_t s = 0; s < sizes.size(); ++s) parts.push_back(absl::StrCat(sizes[s].name, "=", values[s]));
  return absl::StrJoin(parts, between);
}

}  // namespace hone
