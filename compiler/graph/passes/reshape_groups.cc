#include "compiler/graph/passes/reshape_groups.h"

#include <algorithm>

namespace hone {

std::optional<std::vector<ReshapeGroup>> ReshapeGroups(const std::vector<int64_t>& from,
                                                       const std::vector<int64_t>& to) {
  const int64_t m = static_cast<int64_t>(from.size()), n = static_cast<int64_t>(to.size());
  if (std::count(from.begin(), from.end(), 0) > 0 || std::count(to.begin(), to.end(), 0) > 0) return std::nullopt;
  std::vector<ReshapeGroup> groups;
  int64_t i = 0, j = 0;
  while (i < m || j < n) {
    ReshapeGroup group{i, i, j, j};
    const bool one_here = i < m && from[i] == 1, one_there = j < n && to[j] == 1;
    if (i < m && j < n && one_here == one_there) {
      int64_t a = from[i++], b = to[j++];
      while (a != b) {
        if (a < b) a *= from[i++];
        else b *= to[j++];
      }
    } else if (one_here) {
      ++i;
    } else {
      ++j;  // a 1 of the other shape: they hold equally many elements
    }
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

}  // namespace hone
