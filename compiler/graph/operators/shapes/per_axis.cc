#include "compiler/graph/operators/shapes/per_axis.h"

namespace hone {

Value PerAxis::Get(const Value& list, int d, double otherwise) const {
  if (!list) return {};
  NodeContext& c = list.context();
  if (!axes_) return d < list.dim(0) ? Slice(list, 0, d, 1) : Constant(c, kInt64, otherwise);
  Value entry = Constant(c, kInt64, otherwise);
  for (int64_t i = 0; i < list.dim(0); ++i) {
    const Value axis = Slice(axes_, 0, i, 1);
    const Value is_it = Or(axis == Number(axis, d), axis == Number(axis, d - rank_));
    entry = Where(is_it, Slice(list, 0, i, 1), entry);
  }
  return entry;
}

}  // namespace hone
