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

absl::StatusOr<std::optional<int>> Unreshaped(Rewriting& r, const Node& node, int input,
                                              const std::vector<int64_t>& inner, const std::vector<int64_t>& outer,
                                              const std::vector<ReshapeGroup>& groups) {
  if (NumElements(r.shape(input)) == 1 && r.shape(input).size() < inner.size()) return input;
  std::vector<int64_t> shape(outer.size() - r.shape(input).size(), 1);
  shape.insert(shape.end(), r.shape(input).begin(), r.shape(input).end());
  if (shape == outer) return r.Reshape(node, input, inner);
  std::vector<int64_t> result;
  for (const ReshapeGroup& group : groups) {
    const bool whole =
        std::equal(shape.begin() + group.to_begin, shape.begin() + group.to_end, outer.begin() + group.to_begin);
    const bool ones =
        std::all_of(shape.begin() + group.to_begin, shape.begin() + group.to_end, [](int64_t n) { return n == 1; });
    if (!whole && !ones) return std::nullopt;
    for (int64_t d = group.from_begin; d < group.from_end; ++d) result.push_back(whole ? inner[d] : 1);
  }
  // Leading ones are left away: a bias stays a vector.
  const size_t lead = static_cast<size_t>(std::find_if(result.begin(), result.end(), [](int64_t n) { return n != 1; }) -
                                          result.begin());
  if (lead > 0 && r.shape(input).size() < outer.size())
    result.erase(result.begin(), result.begin() + static_cast<int64_t>(lead));
  return r.Reshape(node, input, result);
}

}  // namespace hone
