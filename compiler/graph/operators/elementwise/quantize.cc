// Integers that stand for numbers: real = (integer - zero point) * scale.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/graph/integer_product.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/narrow_types.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

double Least(DType type) { return type.code == TypeCode::kUInt ? 0 : -std::ldexp(1, type.bits - 1); }
double Greatest(DType type) { return std::ldexp(1, type.code == TypeCode::kUInt ? type.bits : type.bits - 1) - 1; }

// A scale or zero point as it goes with x: one for all, one for each index along an axis, or one for each block of
// elements along it.
Value Spread(const Value& param, const Value& x, int64_t axis, int64_t block) {
  if (!param || !x) return {};
  NodeContext& c = param.context();
  if (*NumElements(param.shape()) == 1 && block == 0) return Reshape(param, {});
  if (axis < 0 || axis >= x.rank())
    return Fail(c, Unsupported(absl::StrCat("axis ", axis, " is outside the rank ", x.rank())));
  std::vector<int64_t> shape(x.shape().size(), 1);
  const size_t along = static_cast<size_t>(axis);
  if (block == 0) {
    if (param.rank() != 1 || param.dim(0) != x.dim(static_cast<int>(axis)))
      return Fail(c, Unsupported(absl::StrCat("scale or zero point is ", ToText(c.type(param.id())), " for ",
                                              ToText(c.type(x.id())))));
    shape[along] = param.dim(0);
    return Reshape(param, shape);
  }
  if (param.rank() != x.rank()) return Fail(c, Unsupported("scale or zero point of another rank than the blocks"));
  shape = param.shape();
  std::vector<int64_t> with_block = shape, repeated = shape;
  with_block.insert(with_block.begin() + axis + 1, 1);
  repeated.insert(repeated.begin() + axis + 1, block);
  shape[along] *= block;
  return Slice(Reshape(Expand(Reshape(param, with_block), repeated), shape), axis, 0, x.dim(static_cast<int>(axis)));
}

// round(x / scale) + zero, held within the type; a sum in float32 is exact where it matters.
Value Quantise(const Value& x, const Value& scale, const Value& zero, DType to) {
  if (!x || !scale) return {};
  Value y = Round(x / scale);
  if (zero) y = y + Cast(zero, x.dtype());
  return Cast(Clip(y, Least(to), Greatest(to)), to);
}
Value Dequantise(const Value& x, const Value& scale, const Value& zero) {
  if (!x || !scale) return {};
  return zero ? Apply("dequantize", {x, scale, zero}) : Apply("dequantize", {x, scale});
}

// (x - zero) * scale, in the type of the scale; the parameters broadcast to x.
OpInfo DequantizeOp() {
  OpInfo op{.name = "dequantize", .kind = OpKind::kElementwise};
  op.folds = false;  // before a pass has seen it (passes/quantised_products.cc)
  op.infer = [](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    if (in.size() != 3) HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    for (size_t i = 1; i < in.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, BroadcastShapes(in[0].shape, in[i].shape));
      if (shape != in[0].shape) return Refuse("parameters of type ", ToText(in[i]), " for ", ToText(in[0]));
    }
    if (!in[0].dtype.is_int() || !in[1].dtype.is_float() || (in.size() > 2 && in[2].dtype != in[0].dtype))
      return Refuse("integers of type ", ToText(in[0].dtype), " with scales of type ", ToText(in[1].dtype));
    return Types{{in[1].dtype, in[0].shape}};
  };
  op.lower = [](TensorSpan in, const Attrs&, TypeSpan) {
    te::Tensor y = topi::Cast(in[0], kInt32);
    if (in.size() > 2) y = topi::Subtract(y, topi::Cast(in[2], kInt32));
    return std::vector{topi::Multiply(topi::Cast(y, in[1].dtype()), in[1])};
  };
  return op;
}

Outputs QuantizeLinear(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  const Value x = Input(c, 0);
  int64_t axis = c.IntAttr("axis", 1);
  if (axis < 0) axis += x.rank();
  const int64_t block = c.IntAttr("block_size", 0);
  const int64_t named = c.IntAttr("output_dtype", 0), precision = c.IntAttr("precision", 0);
  const bool saturate = c.IntAttr("saturate", 1) != 0;  // integers always are
  const NarrowType* narrow = c.HasInput(2) ? FindNarrowType(c.element(c.input(2))) : FindNarrowType(named);
  DType to = c.HasInput(2) ? Input(c, 2).dtype() : DType::UInt(8);
  if (named != 0 && !c.HasInput(2) && narrow == nullptr) {
    const std::optional<DType> type = OnnxDType(named);
    if (!type.has_value()) return Unsupported(absl::StrCat("elements of type ", OnnxDTypeName(named)));
    to = *type;
  }
  if (precision != 0 && precision != 1) return Unsupported("precision other than float32");
  if (narrow != nullptr) {
    Value y = x / Spread(Cast(Input(c, 1), x.dtype()), x, axis, block);
    if (!narrow->is_float) {
      y = Round(y);
      if (c.HasInput(2)) y = y + Cast(Spread(Widen(Input(c, 2), *narrow), x, axis, block), x.dtype());
      const double low = narrow->has_sign ? -std::ldexp(1, narrow->bits - 1) : 0;
      y = Clip(y, low, low + std::ldexp(1, narrow->bits) - 1);
    }
    y = Narrow(y, *narrow, saturate, "up");
    if (y) c.SetElement(y.id(), narrow->name);
    return Results({y});
  }
  if (!to.is_int() || !x.dtype().is_float())
    return Unsupported(absl::StrCat("quantisation of ", ToText(x.dtype()), " to ", ToText(to)));
  const Value scale = Cast(Input(c, 1), x.dtype());
  return Results({Quantise(x, Spread(scale, x, axis, block), Spread(Input(c, 2), x, axis, block), to)});
}

Outputs DequantizeLinear(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  const Value x = Input(c, 0);
  if (const int64_t named = c.IntAttr("output_dtype", 0); named != 0 && OnnxDType(named) != Input(c, 1).dtype())
    return Unsupported("output_dtype is not the scale's type");
  int64_t axis = c.IntAttr("axis", 1);
  if (axis < 0) axis += x.rank();
  const int64_t block = c.IntAttr("block_size", 0);
  if (const NarrowType* narrow = FindNarrowType(c.element(x.id())); narrow != nullptr) {
    const Value scale = Spread(Input(c, 1), x, axis, block);
    Value y = Widen(x, *narrow);
    if (c.HasInput(2) && !narrow->is_float) y = y - Spread(Widen(Input(c, 2), *narrow), x, axis, block);
    return Results({scale ? Cast(y, scale.dtype()) * scale : Value()});
  }
  if (!x.dtype().is_int()) return Unsupported(absl::StrCat("integers of type ", ToText(x.dtype())));
  return Results({Dequantise(x, Spread(Input(c, 1), x, axis, block), Spread(Input(c, 2), x, axis, block))});
}

// To uint8 over the range of the values, which is made to hold 0.
Outputs DynamicQuantizeLinear(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value x = Input(c, 0), flat = Reshape(x, {*NumElements(x.shape())});
  const Value least = Min(Reduce("reduce_min", flat, {0}, false), Number(x, 0));
  const Value greatest = Max(Reduce("reduce_max", flat, {0}, false), Number(x, 0));
  const Value scale = (greatest - least) / 255.0;
  const Value zero = Cast(Round(Clip(-least / scale, 0, 255)), DType::UInt(8));
  return Results({Quantise(x, scale, zero, DType::UInt(8)), scale, zero});
}

// Operands of a product as matrices, those of one rank above 2 as batches of them: a vector is a row on the left and a
// column on the right, whose dimension the result has not.
struct MatrixOperands {
  Value a, b;
  bool row = false, column = false;
};
MatrixOperands AsMatrices(const Value& a, const Value& b) {
  if (!a || !b) return {};
  if (a.rank() == 0 || b.rank() == 0) return {Fail(a.context(), Unsupported("a product of scalars")), b};
  const bool row = a.rank() == 1, column = b.rank() == 1;
  return {row ? Reshape(a, {1, a.dim(0)}) : a, column ? Reshape(b, {b.dim(0), 1}) : b, row, column};
}
Value WithoutAdded(const Value& y, const MatrixOperands& of) {
  if (!y || (!of.row && !of.column)) return y;
  std::vector<int64_t> shape = y.shape();
  if (of.column) shape.pop_back();
  if (of.row) shape.erase(shape.end() - (of.column ? 1 : 2));
  return Reshape(y, shape);
}

// A scale or zero point of a matrix: one for all, for each row of the left, for each column of the right.
Value OfRows(const Value& param) {
  if (!param || *NumElements(param.shape()) == 1) return param ? Reshape(param, {}) : param;
  return param.rank() == 1 ? Reshape(param, {param.dim(0), 1}) : param;
}
Value OfColumns(const Value& param) { return param && *NumElements(param.shape()) == 1 ? Reshape(param, {}) : param; }

// A product of integers less their zero points, as int32.
Value IntegerMatMul(const MatrixOperands& of, const Value& a_zero, const Value& b_zero) {
  if (!of.a || !of.b) return {};
  NodeContext& c = of.a.context();
  const auto id = [](const Value& zero) { return zero ? zero.id() : -1; };
  const absl::StatusOr<int> y =
      AddIntegerProduct(c.graph(), of.b.rank() == 2 ? "dense" : "batch_matmul", c.name(),
                        {of.a.id(), id(OfRows(a_zero))}, {of.b.id(), id(OfColumns(b_zero))}, {});
  return y.ok() ? Value(c, *y) : Fail(c, y.status());
}

Outputs MatMulInteger(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 4));
  const MatrixOperands of = AsMatrices(Input(c, 0), Input(c, 1));
  return Results({WithoutAdded(IntegerMatMul(of, Input(c, 2), Input(c, 3)), of)});
}

// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
Outputs QLinearMatMul(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(8, 8));
  const MatrixOperands of = AsMatrices(Input(c, 0), Input(c, 3));
  const Value product = IntegerMatMul(of, Input(c, 2), Input(c, 5));
  const Value scale = Cast(OfRows(Input(c, 1)), kFloat32) * Cast(OfColumns(Input(c, 4)), kFloat32);
  if (!product || !scale) return Results({});
  const Value zero = OfRows(Input(c, 7)), y_scale = Cast(OfRows(Input(c, 6)), kFloat32);
  return Results({WithoutAdded(Quantise(Cast(product, kFloat32) * scale, y_scale, zero, zero.dtype()), of)});
}

}  // namespace

HONE_OPERATORS(quantize) {
  return {
      {.graph = {DequantizeOp()}},
      {.onnx = {{.name = "QuantizeLinear",
                 .since = 10,
                 .import = QuantizeLinear,
                 .in_float32 = true,
                 .narrow = NarrowElements::kConverts}}},
      {.onnx = {{.name = "DequantizeLinear",
                 .since = 10,
                 .import = DequantizeLinear,
                 .in_float32 = true,
                 .narrow = NarrowElements::kConverts}}},
      {.onnx = {{.name = "DynamicQuantizeLinear", .since = 11, .import = DynamicQuantizeLinear}}},
      {.onnx = {{.name = "MatMulInteger", .since = 10, .import = MatMulInteger}}},
      {.onnx = {{.name = "QLinearMatMul", .since = 10, .import = QLinearMatMul}}},
  };
}

}  // namespace hone
