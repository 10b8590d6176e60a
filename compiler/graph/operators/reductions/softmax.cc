// Softmax and its logarithm along an axis.
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/norm.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// "step": the type to which exponentials and sums are rounded, if not that of x.
OpInfo SoftmaxOp() {
  OpInfo op = AlongAxisOp("softmax", OpKind::kAnchor, 5, [](const te::Tensor& x, int64_t axis, const Attrs& attrs) {
    return topi::Softmax(x, axis, "softmax", ParseDType(StringAttr(attrs, "step")));
  });
  op.reduces = Reduces::kAxis;
  return op;
}

OpInfo LogSoftmaxOp() {
  OpInfo op = AlongAxisOp("log_softmax", OpKind::kAnchor, 5, [](const te::Tensor& x, int64_t axis, const Attrs&) {
    return topi::LogSoftmax(x, axis, "log_softmax");
  });
  op.reduces = Reduces::kAxis;
  return op;
}

// Before operator set 13 the dimensions from `axis` (1 by default) on were one.
absl::StatusOr<int> AlongAxis(NodeContext& c, int x, std::string_view op, Attrs attrs) {
  const auto along = [&](int value, int64_t axis) {
    attrs["axis"] = axis;
    return c.Emit(op, {value}, attrs);
  };
  if (c.opset() >= 13) {
    HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -1), c.rank(x)));
    return along(x, axis);
  }
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 1), c.rank(x)));
  const Ints shape = c.shape(x);
  if (axis + 1 == c.rank(x)) return along(x, axis);
  const auto from = static_cast<size_t>(axis);
  HONE_ASSIGN_OR_RETURN(int y,
                        c.Reshape(x, {ProductOfExtents(shape, 0, from), ProductOfExtents(shape, from, shape.size())}));
  HONE_ASSIGN_OR_RETURN(y, along(y, 1));
  return c.Reshape(y, shape);
}

Outputs LogSoftmax(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_ASSIGN_OR_RETURN(const int y, AlongAxis(c, c.input(0), "log_softmax", {}));
  return std::vector<int>{y};
}

// The function that the standard gives for Softmax rounds every step to the type of x: of a narrow type the
// exponentials and their sum are rounded as well, and everything is computed in float32.
Outputs Softmax(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  int x = c.input(0);
  const DType dtype = c.type(x).dtype;
  const bool narrow = dtype.is_float() && dtype.bits == 16;
  Attrs attrs;
  if (narrow) {
    attrs["step"] = ToText(dtype);
    HONE_ASSIGN_OR_RETURN(x, c.Emit("cast", {x}, {{"to", ToText(kFloat32)}}));
  }
  HONE_ASSIGN_OR_RETURN(int y, AlongAxis(c, x, "softmax", attrs));
  if (narrow) { HONE_ASSIGN_OR_RETURN(y, c.Emit("cast", {y}, {{"to", ToText(dtype)}})); }
  return std::vector<int>{y};
}

}  // namespace

HONE_OPERATORS(softmax) {
  return {{.graph = {SoftmaxOp(), LogSoftmaxOp()},
           .onnx = {
               {"Softmax", 1, Softmax},
               {"LogSoftmax", 1, LogSoftmax, "", true},
           }}};
}

}  // namespace hone
