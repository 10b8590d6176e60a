// What part of a buffer a tile of iterations reads, and how it lies in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tuner/space/workload/workload_info.h"

namespace hone {

// Dimensions [first, last) of an access whose indices are the quotients and remainders of one expression: they are as
// one dimension of `extent` elements at `index`.
struct JoinedDimension {
  size_t first = 0, last = 0;
  Expr index;
  int64_t extent = 1;
};
// All dimensions of an access, joined where that makes a linear index of what is none.
std::vector<JoinedDimension> JoinDimensions(const BlockInfo& block, const BlockInfo::Access& access);

class AccessRegion {
 public:
  AccessRegion(const BlockInfo& block, const BlockInfo::Access& access);

  // Elements that `sizes[i]` neighbouring iterations of every variable read. Those that a stride or a dilation leaves
  // out between them count along the last dimension alone, where they lie in the same lines.
  double Elements(std::span<const int64_t> sizes) const;
  // The same without those between, along the last dimension too.
  double ElementsAlone(std::span<const int64_t> sizes) const;
  // Elements of the smallest box around those, which is what a copy of them has.
  double BoxElements(std::span<const int64_t> sizes) const;

  // Bytes that such a tile reads in one piece: along the last dimension, and on along the next where it is whole.
  int64_t RunBytes(std::span<const int64_t> sizes) const;
  // Of the sets of a cache whose index repeats every `period` bytes, the share that such a tile touches, in (0, 1]:
  // rows of it that lie a multiple of a large power of two apart fall on a few sets alone. `buffer`: the sizes of the
  // tile whose box the buffer is, where it holds no more than that; empty: the whole buffer.
  double SetShare(std::span<const int64_t> sizes, std::span<const int64_t> buffer, int64_t period) const;

 private:
  static constexpr int kQuotient = -1;
  // Of an index: `step` for each iteration of a variable, or of quotient_.
  struct Term {
    int64_t step = 0;  // above 0
    int iter = 0;
  };
  struct Dimension {
    int64_t extent = 1;
    bool linear = false;      // its index is the sum of the terms and a constant
    std::vector<Term> terms;  // the least step first
  };
  int64_t BoxSize(const Dimension& dimension, std::span<const int64_t> sizes) const;
  int64_t IndicesRead(const Dimension& dimension, std::span<const int64_t> sizes) const;

  BlockInfo::Access::Steps quotient_;
  std::vector<Dimension> dimensions_;
  int64_t bytes_ = 4;  // of an element
};

}  // namespace hone
