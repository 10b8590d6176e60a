#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// x divided by its norm along an axis.
Outputs LpNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const int64_t p = c.IntAttr("p", 2);
  if (p != 1 && p != 2) return Unsupported(absl::StrCat("p is ", p, "; 1 and 2 are supported"));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -1), c.rank(c.input(0))));
  HONE_ASSIGN_OR_RETURN(const int norm, c.Emit(p == 1 ? "reduce_l1" : "reduce_l2", {c.input(0)},
                                               {{"axes", Ints{axis}}, {"keepdims", int64_t{1}}}));
  // Where the norm is 0 so is x: it is divided by 1.
  const DType dtype = c.type(norm).dtype;
  HONE_ASSIGN_OR_RETURN(const int zero, c.Emit("equal", {norm, c.Scalar(dtype, 0)}));
  HONE_ASSIGN_OR_RETURN(const int divisor, c.Emit("where", {zero, c.Scalar(dtype, 1), norm}));
  HONE_ASSIGN_OR_RETURN(const int y, c.Emit("divide", {c.input(0), divisor}));
  return std::vector<int>{y};
}

}  // namespace

HONE_OPERATORS(lp_normalization) { return {{.onnx = {{"LpNormalization", 1, LpNormalization, "", true}}}}; }

}  // namespace hone
