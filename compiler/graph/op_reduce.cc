// Reductions, softmax, normalisations, running sums, top k.
#include <algorithm>

#include "compiler/graph/op_groups.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/norm.h"
#include "compiler/topi/reduce.h"

namespace hone {
namespace {

std::vector<int64_t> ReducedShape(const std::vector<int64_t>& shape, const std::vector<int64_t>& axes, bool keepdims) {
  std::vector<int64_t> reduced;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (!gone) reduced.push_back(shape[d]);
    if (gone && keepdims) reduced.push_back(1);
  }
  return reduced;
}

// "axes" (at least one), "keepdims".
OpInfo ReduceOp(std::string_view name, bool needs_float,
                te::Tensor (*f)(const te::Tensor&, const topi::Axes&, bool, const std::string&)) {
  OpInfo op{.name = name, .kind = OpKind::kAnchor};
  op.infer = [name, needs_float](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    if (in[0].dtype.is_bool() || (needs_float && !in[0].dtype.is_float()))
      return Refuse(name, " of elements of type ", ToText(in[0].dtype));
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, CheckedAxes(attrs, "axes", in[0].rank()));
    if (axes.empty()) return Refuse(name, " over no axes");
    for (const int64_t axis : axes) {
      if (in[0].shape[axis] == 0)
        return Refuse(name, " over axis ", axis, " of ", ToText(in[0]), ", which has no elements");
    }
    return Types{{in[0].dtype, ReducedShape(in[0].shape, axes, IntAttr(attrs, "keepdims") != 0)}};
  };
  op.lower = [f, name](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{f(in[0], IntsAttr(attrs, "axes"), IntAttr(attrs, "keepdims") != 0, std::string(name.substr(7)))};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan) { return Count(in[0].shape); };
  return op;
}

// "axis", "keepdims", "select_last"; the index is int64.
OpInfo ArgOp(std::string_view name, te::Tensor (*f)(const te::Tensor&, int64_t, bool, bool, const std::string&)) {
  OpInfo op{.name = name, .kind = OpKind::kOpaque};
  op.infer = [name](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    if (in[0].dtype.is_bool()) return Refuse(name, " of bools");
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    if (in[0].shape[axis] == 0)
      return Refuse(name, " over axis ", axis, " of ", ToText(in[0]), ", which has no elements");
    return Types{{kInt64, ReducedShape(in[0].shape, {axis}, IntAttr(attrs, "keepdims") != 0)}};
  };
  op.lower = [f, name](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{f(in[0], IntAttr(attrs, "axis"), IntAttr(attrs, "keepdims") != 0,
                         IntAttr(attrs, "select_last") != 0, std::string(name))};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan) { return Count(in[0].shape); };
  return op;
}

// "axis"; the type and shape of the input.
OpInfo AlongAxisOp(std::string_view name, OpKind kind, double flop_per_element,
                   std::function<te::Tensor(const te::Tensor&, int64_t, const Attrs&)> f, bool needs_float = true) {
  OpInfo op{.name = name, .kind = kind};
  op.infer = [name, needs_float](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    if (in[0].dtype.is_bool() || (needs_float && !in[0].dtype.is_float()))
      return Refuse(name, " of elements of type ", ToText(in[0].dtype));
    HONE_RETURN_IF_ERROR(CheckedAxis(attrs, in[0].rank()).status());
    return Types{in[0]};
  };
  op.lower = [f](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{f(in[0], IntAttr(attrs, "axis"), attrs)};
  };
  op.flop = [flop_per_element](TypeSpan in, const Attrs&, TypeSpan) { return flop_per_element * Count(in[0].shape); };
  return op;
}

// x, scale [x.shape[axis:]], bias (may be left out): "axis", "epsilon".
OpInfo LayerNormOp(std::string_view name, bool has_mean) {
  OpInfo op{.name = name, .kind = OpKind::kAnchor};
  op.infer = [name](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    if (in.size() != 2 && in.size() != 3) return Refuse(in.size(), " inputs instead of 2 or 3");
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    const std::vector<int64_t> normal(in[0].shape.begin() + axis, in[0].shape.end());
    for (const TensorType& type : in) {
      if (!type.dtype.is_float() || type.dtype != in[0].dtype)
        return Refuse(name, " of ", ToText(type), " beside ", ToText(in[0]));
    }
    for (const TensorType& type : in.subspan(1)) {
      if (type.shape != normal)
        return Refuse(name, " of ", ToText(in[0]), " from axis ", axis, ": scale or bias is ", ToText(type));
    }
    return Types{in[0]};
  };
  op.lower = [has_mean](TensorSpan in, const Attrs& attrs, TypeSpan) {
    const int64_t axis = IntAttr(attrs, "axis");
    const double epsilon = FloatAttr(attrs, "epsilon");
    if (!has_mean) return std::vector{topi::RmsNorm(in[0], in[1], axis, epsilon, "rms_norm")};
    return std::vector{
        topi::LayerNorm(in[0], in[1], in.size() == 3 ? in[2] : te::Tensor(), axis, epsilon, "layer_norm")};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan) { return 8 * Count(in[0].shape); };
  return op;
}

// x [N, ..., C], scale [C], bias [C]: "groups", "epsilon".
OpInfo GroupNormOp() {
  OpInfo op{.name = "group_norm", .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 3));
    if (in[0].rank() < 3 || !in[0].dtype.is_float()) return Refuse("group norm of ", ToText(in[0]));
    const int64_t channels = in[0].shape.back(), groups = IntAttr(attrs, "groups");
    if (groups < 1 || channels % groups != 0) return Refuse(groups, " groups of ", channels, " channels");
    for (const TensorType& type : in.subspan(1)) {
      if (type.shape != std::vector<int64_t>{channels} || type.dtype != in[0].dtype)
        return Refuse("scale or bias is ", ToText(type), " for ", ToText(in[0]));
    }
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{
        topi::GroupNorm(in[0], in[1], in[2], IntAttr(attrs, "groups"), FloatAttr(attrs, "epsilon"), "group_norm")};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan) { return 8 * Count(in[0].shape); };
  return op;
}

// "axis", "k", "largest": values, and indices (int64).
OpInfo TopKOp() {
  OpInfo op{.name = "topk", .kind = OpKind::kOpaque};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    const int64_t k = IntAttr(attrs, "k");
    if (in[0].dtype.is_bool()) return Refuse("top k of bools");
    if (k < 1 || k > in[0].shape[axis]) return Refuse("the top ", k, " of ", in[0].shape[axis], " elements");
    TensorType values = in[0];
    values.shape[axis] = k;
    TensorType indices{kInt64, values.shape};
    return Types{std::move(values), std::move(indices)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    const topi::TopKResult r =
        topi::TopK(in[0], IntAttr(attrs, "k"), IntAttr(attrs, "axis"), IntAttr(attrs, "largest", 1) != 0, "topk");
    return std::vector{r.values, r.indices};
  };
  op.flop = [](TypeSpan in, const Attrs& attrs, TypeSpan) {
    return Count(in[0].shape) * static_cast<double>(in[0].shape[IntAttr(attrs, "axis")]);
  };
  return op;
}

}  // namespace

std::vector<OpInfo> ReduceOps() {
  return {
      ReduceOp("reduce_sum", false, topi::ReduceSum),
      ReduceOp("reduce_max", false, topi::ReduceMax),
      ReduceOp("reduce_min", false, topi::ReduceMin),
      ReduceOp("reduce_prod", false, topi::ReduceProd),
      ReduceOp("reduce_mean", true, topi::ReduceMean),
      ReduceOp("reduce_l1", false, topi::ReduceL1),
      ReduceOp("reduce_l2", true, topi::ReduceL2),
      ReduceOp("reduce_sum_square", false, topi::ReduceSumSquare),
      ReduceOp("reduce_logsumexp", true, topi::ReduceLogSumExp),
      ArgOp("argmax", topi::ArgMax),
      ArgOp("argmin", topi::ArgMin),
      // "step": the type to which exponentials and sums are rounded, if not that of x.
      AlongAxisOp("softmax", OpKind::kAnchor, 5,
                  [](const te::Tensor& x, int64_t axis, const Attrs& attrs) {
                    return topi::Softmax(x, axis, "softmax", ParseDType(StringAttr(attrs, "step")));
                  }),
      AlongAxisOp(
          "log_softmax", OpKind::kAnchor, 5,
          [](const te::Tensor& x, int64_t axis, const Attrs&) { return topi::LogSoftmax(x, axis, "log_softmax"); }),
      AlongAxisOp(
          "cumsum", OpKind::kOpaque, 1,
          [](const te::Tensor& x, int64_t axis, const Attrs& a) {
            return topi::CumSum(x, axis, IntAttr(a, "exclusive") != 0, IntAttr(a, "reverse") != 0, "cumsum");
          },
          false),
      LayerNormOp("layer_norm", true),
      LayerNormOp("rms_norm", false),
      GroupNormOp(),
      TopKOp(),
  };
}

}  // namespace hone
