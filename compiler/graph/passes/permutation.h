// Orders of dimensions, as transposes have them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hone {

inline std::vector<int64_t> Inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverse;
}

inline std::vector<int64_t> Permuted(const std::vector<int64_t>& values, const std::vector<int64_t>& perm) {
  std::vector<int64_t> result;
  for (const int64_t axis : perm) result.push_back(values[static_cast<size_t>(axis)]);
  return result;
}

// The order of the elements does not change when dimensions of size 1 alone move.
inline bool MovesOnesOnly(const std::vector<int64_t>& shape, const std::vector<int64_t>& perm) {
  std::vector<int64_t> moved;
  for (const int64_t axis : perm) {
    if (shape[static_cast<size_t>(axis)] != 1) moved.push_back(axis);
  }
  return std::is_sorted(moved.begin(), moved.end());
}

}  // namespace hone
