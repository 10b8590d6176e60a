// The general matrix product, with factors and a bias.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// alpha * A' * B' + beta * C
Outputs Gemm(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  const double alpha = c.FloatAttr("alpha", 1), beta = c.FloatAttr("beta", 1);
  int a = c.input(0), b = c.input(1);
  if (c.rank(a) != 2 || c.rank(b) != 2)
    return Unsupported(absl::StrCat("operands ", ToText(c.type(a)), " and ", ToText(c.type(b)), " are not matrices"));
  if (c.IntAttr("transA", 0) != 0) { HONE_ASSIGN_OR_RETURN(a, c.Transpose(a, {1, 0})); }
  if (c.IntAttr("transB", 0) != 0) { HONE_ASSIGN_OR_RETURN(b, c.Transpose(b, {1, 0})); }
  HONE_ASSIGN_OR_RETURN(int y, c.Emit("dense", {a, b}));
  const DType dtype = c.type(y).dtype;
  if (alpha != 1) { HONE_ASSIGN_OR_RETURN(y, c.Emit("multiply", {y, c.Scalar(dtype, alpha)})); }
  if (!c.HasInput(2) || beta == 0) return std::vector<int>{y};
  int bias = c.input(2);
  if (beta != 1) { HONE_ASSIGN_OR_RETURN(bias, c.Emit("multiply", {bias, c.Scalar(dtype, beta)})); }
  const std::vector<int64_t> shape = c.shape(y);
  HONE_ASSIGN_OR_RETURN(y, c.Emit("add", {y, bias}));
  if (c.shape(y) != shape)
    return Unsupported(absl::StrCat("C is ", ToText(c.type(bias)), ", which does not broadcast to the product"));
  return std::vector<int>{y};
}

}  // namespace

HONE_OPERATORS(gemm) { return {{.onnx = {{"Gemm", 7, Gemm, "", true}}}}; }

}  // namespace hone
