#include "compiler/topi/axes.h"

#include <algorithm>

#include "compiler/support/check.h"

namespace hone::topi {

int64_t NormalizeAxis(int64_t axis, int64_t rank) {
  const int64_t at = axis < 0 ? axis + rank : axis;
  HONE_CHECK(at >= 0 && at < rank) << "axis " << axis << " of rank " << rank;
  return at;
}

std::vector<int64_t> NormalizeAxes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (const int64_t axis : axes) result.push_back(NormalizeAxis(axis, rank));
  std::sort(result.begin(), result.end());
  HONE_CHECK(std::adjacent_find(result.begin(), result.end()) == result.end()) << "an axis is named twice";
  return result;
}

std::vector<int64_t> OrDefault(const std::vector<int64_t>& values, size_t count, int64_t fallback) {
  if (values.empty()) return std::vector<int64_t>(count, fallback);
  HONE_CHECK(values.size() == count) << values.size() << " values for " << count << " dimensions";
  return values;
}

bool AllAre(const std::vector<int64_t>& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [value](int64_t v) { return v == value; });
}

}  // namespace hone::topi
