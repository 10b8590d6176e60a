// Shapes as data.
#include <algorithm>

#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

Outputs Shape(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Ints& shape = c.shape(c.input(0));
  const int64_t rank = c.rank(c.input(0));
  const auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = bound(c.IntAttr("start", 0)), end = bound(c.IntAttr("end", rank));
  const Ints part(shape.begin() + start, shape.begin() + std::max(start, end));
  const int value = c.IntVector(part);
  c.graph().values[value].follows_sizes = c.graph().sizes_are_open && !c.IsConstant(0);
  return std::vector<int>{value};
}

Outputs Size(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  NdArray count(kInt64, {});
  count.SetInt(0, *NumElements(c.shape(c.input(0))));
  return std::vector<int>{c.AddConstant(std::move(count))};
}

}  // namespace

HONE_OPERATORS(shape) {
  return {{.onnx = {
               {"Shape", 1, Shape, "", false, NarrowElements::kConverts},
               {"Size", 1, Size, "", false, NarrowElements::kConverts},
           }}};
}

}  // namespace hone
