// Lists that come at run time, with an entry for each axis of a tensor or, beside a list of axes, for some of them.
#pragma once

#include "compiler/graph/operators/expressions.h"

namespace hone {

class PerAxis {
 public:
  // `axes` false: the lists have an entry for each of the first axes, in order.
  PerAxis(int rank, const Value& axes) : rank_(rank), axes_(axes ? Cast(axes, kInt64) : Value()) {}
  // The entry of `list` (int64) for axis d; `otherwise` where it has none.
  Value Get(const Value& list, int d, double otherwise) const;

 private:
  int rank_;
  Value axes_;
};

}  // namespace hone
