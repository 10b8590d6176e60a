#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/narrow_types.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

NdArray CastArray(const NdArray& x, DType to) {
  NdArray y(to, x.shape);
  const int64_t n = x.NumElements();
  const bool from_int = !x.dtype.is_float();
  for (int64_t i = 0; i < n; ++i) {
    if (to.is_bool()) {
      y.SetInt(i, from_int ? x.GetInt(i) != 0 : x.Get(i) != 0);
    } else if (from_int && !to.is_float()) {
      y.SetInt(i, x.GetInt(i));
    } else if (!to.is_float()) {
      const double value = x.Get(i);  // out of range: the nearest there is; NaN: 0
      y.SetInt(i, value != value     ? 0
                  : value >= 0x1p63  ? INT64_MAX
                  : value <= -0x1p63 ? INT64_MIN
                                     : static_cast<int64_t>(value));
    } else {
      y.Set(i, from_int ? static_cast<double>(x.GetInt(i)) : x.Get(i));
    }
  }
  return y;
}

OpInfo CastOp() {
  OpInfo op{.name = "cast", .kind = OpKind::kElementwise};
  op.is_no_op = [](size_t, const Attrs&) { return true; };
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::string text = StringAttr(attrs, "to");
    const std::optional<DType> to = ParseDType(text);
    if (!to.has_value()) return Refuse("cast to an unknown type \"", text, "\"");
    return Types{{*to, in[0].shape}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Cast(in[0], *ParseDType(StringAttr(attrs, "to")), "cast")};
  };
  op.evaluation.run = [](DirectEvaluation::Arrays in, const Attrs&, const TensorType& out) {
    return CastArray(*in[0], out.dtype);
  };
  return op;
}

// `to`: a type of arithmetic, or a narrow one.
Outputs CastTo(NodeContext& c, std::optional<DType> to, const NarrowType* narrow) {
  Value x = Input(c, 0);
  const std::string rounding = c.StringAttr("round_mode", "up");
  const bool saturate = c.IntAttr("saturate", 1) != 0;
  if (rounding != "up" && rounding != "down" && rounding != "nearest")
    return Unsupported(absl::StrCat("round_mode is \"", rounding, "\""));
  if (const NarrowType* from = FindNarrowType(c.element(x.id())); from != nullptr) {
    if (from == narrow) return Results({x});
    x = Widen(x, *from);
  }
  if (narrow == nullptr) return Results({Cast(x, *to)});
  const Value y = Narrow(x, *narrow, saturate, rounding);
  if (y) c.SetElement(y.id(), narrow->name);
  return Results({y});
}

Outputs ImportCast(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const int64_t number = c.IntAttr("to", 0);
  const std::optional<DType> to = OnnxDType(number);
  const NarrowType* narrow = FindNarrowType(number);
  if (!to.has_value() && narrow == nullptr)
    return Unsupported(absl::StrCat("a cast to elements of type ", OnnxDTypeName(number)));
  return CastTo(c, to, narrow);
}

Outputs CastLike(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  return CastTo(c, c.type(c.input(1)).dtype, FindNarrowType(c.element(c.input(1))));
}

}  // namespace

HONE_OPERATORS(cast) {
  return {
      {.graph = {CastOp()},
       .onnx = {{.name = "Cast",
                 .since = 6,
                 .import = ImportCast,
                 .narrow = NarrowElements::kConverts,
                 .keeps_shape = true}}},
      {.onnx = {{.name = "CastLike",
                 .since = 15,
                 .import = CastLike,
                 .narrow = NarrowElements::kConverts,
                 .keeps_shape = true}}},
  };
}

}  // namespace hone
