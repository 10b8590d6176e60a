#include "compiler/graph/constant_parts.h"

#include <cstring>

namespace hone {

bool IsCornerOf(const NdArray& part, const NdArray& whole) {
  const size_t rank = whole.shape.size(), bytes = static_cast<size_t>(whole.dtype.bytes());
  if (!(part.dtype == whole.dtype) || part.shape.size() != rank) return false;
  for (size_t d = 0; d < rank; ++d) {
    if (part.shape[d] > whole.shape[d]) return false;
  }
  if (rank == 0) return part.data == whole.data;
  const size_t row = static_cast<size_t>(part.shape.back()) * bytes;
  const int64_t rows = part.shape.back() == 0 ? 0 : part.NumElements() / part.shape.back();
  for (int64_t r = 0; r < rows; ++r) {
    int64_t rest = r, at = 0, stride = whole.shape.back();
    for (size_t d = rank - 1; d-- > 0; rest /= part.shape[d], stride *= whole.shape[d])
      at += rest % part.shape[d] * stride;
    if (std::memcmp(part.data.data() + static_cast<size_t>(r) * row,
                    whole.data.data() + static_cast<size_t>(at) * bytes, row) != 0)
      return false;
  }
  return true;
}

}  // namespace hone
