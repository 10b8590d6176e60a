#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// The numbers start + i * step, "count" of "type". For those that begin where a size says: as constants they would be
// others at each size, and the rows of a table that they choose would be copied.
OpInfo RangeOp() {
  OpInfo op{.name = "range", .kind = OpKind::kInjective};
  op.folds = false;  // it is a node only where it is to be left to run time
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 0));
    const std::optional<DType> type = ParseDType(StringAttr(attrs, "type"));
    if (!type.has_value() || !type->is_int() || IntAttr(attrs, "count") < 0)
      return Refuse("a range of ", IntAttr(attrs, "count"), " elements of type ", StringAttr(attrs, "type"));
    return Types{{*type, {IntAttr(attrs, "count")}}};
  };
  op.lower = [](TensorSpan, const Attrs& attrs, TypeSpan out) {
    const DType type = out[0].dtype;
    const Expr start = IntConst(IntAttr(attrs, "start"), type), step = IntConst(IntAttr(attrs, "step"), type);
    return std::vector{te::Compute(
        out[0].shape, [&](const te::Indices& i) { return MakeCast(type, i[0]) * step + start; }, "range")};
  };
  return op;
}

absl::StatusOr<int> IntRange(NodeContext& c, DType dtype) {
  HONE_ASSIGN_OR_RETURN(const int64_t start, c.Int(0, "the start"));
  HONE_ASSIGN_OR_RETURN(const int64_t limit, c.Int(1, "the limit"));
  HONE_ASSIGN_OR_RETURN(const int64_t step, c.Int(2, "the step"));
  int64_t length = 0;
  if (step == 0 || step == INT64_MIN || __builtin_sub_overflow(limit, start, &length)) {
    return Unsupported(absl::StrCat("a range from ", start, " to ", limit, " in steps of ", step));
  }
  const bool empty = step > 0 ? length <= 0 : length >= 0;
  const int64_t count = empty ? 0 : (length - (step > 0 ? 1 : -1)) / step + 1;
  if (count > (int64_t{1} << 28)) return Unsupported(absl::StrCat("a range of ", count, " elements"));
  if (c.graph().values[c.input(0)].follows_sizes && count > 0)
    return c.Emit("range", {}, {{"start", start}, {"step", step}, {"count", count}, {"type", ToText(dtype)}});
  NdArray array(dtype, {count});
  for (int64_t i = 0; i < count; ++i) array.SetInt(i, start + i * step);
  return c.AddConstant(std::move(array));
}

absl::StatusOr<int> FloatRange(NodeContext& c, DType dtype) {
  HONE_ASSIGN_OR_RETURN(const double start, c.Number(0, "the start"));
  HONE_ASSIGN_OR_RETURN(const double limit, c.Number(1, "the limit"));
  HONE_ASSIGN_OR_RETURN(const double step, c.Number(2, "the step"));
  const double count = std::max(0.0, std::ceil((limit - start) / step));
  if (!(count <= 0x1p28))
    return Unsupported(absl::StrCat("a range from ", start, " to ", limit, " in steps of ", step));
  NdArray array(dtype, {static_cast<int64_t>(count)});
  for (int64_t i = 0; i < array.NumElements(); ++i) array.Set(i, start + static_cast<double>(i) * step);
  return c.AddConstant(std::move(array));
}

Outputs ImportRange(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  const DType dtype = c.type(c.input(0)).dtype;
  if (dtype.is_bool()) return Unsupported("a range of bools");
  if (!c.IsConstant(0) || !c.IsConstant(1) || !c.IsConstant(2)) {
    HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeInsteadOf(c.IsConstant(1) ? c.IsConstant(0) ? 2 : 0 : 1, "its end"));
    if (shape.size() != 1) return Unsupported("the declared shape is not a vector");
    return Results({Reshape(Input(c, 0), {1}) + Iota(c, dtype, shape[0]) * Reshape(Input(c, 2), {1})});
  }
  return One(dtype.is_int() ? IntRange(c, dtype) : FloatRange(c, dtype));
}

}  // namespace

HONE_OPERATORS(range) {
  return {{.graph = {RangeOp()}, .onnx = {{.name = "Range", .since = 11, .import = ImportRange, .in_float32 = true}}}};
}

}  // namespace hone
