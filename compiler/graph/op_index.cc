// Reading and writing at indices that are data.
#include <algorithm>

#include "compiler/graph/op_groups.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/index_ops.h"

namespace hone {
namespace {

absl::Status CheckIndices(const TensorType& indices) {
  if (indices.dtype == kInt32 || indices.dtype == kInt64) return absl::OkStatus();
  return Refuse("indices of type ", ToText(indices.dtype), " instead of int32 or int64");
}

// x, indices: "axis".
OpInfo GatherOp() {
  OpInfo op{.name = "gather", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_RETURN_IF_ERROR(CheckIndices(in[1]));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    std::vector<int64_t> shape(in[0].shape.begin(), in[0].shape.begin() + axis);
    shape.insert(shape.end(), in[1].shape.begin(), in[1].shape.end());
    shape.insert(shape.end(), in[0].shape.begin() + axis + 1, in[0].shape.end());
    return Types{{in[0].dtype, std::move(shape)}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Gather(in[0], in[1], IntAttr(attrs, "axis"), "gather")};
  };
  return op;
}

OpInfo GatherElementsOp() {
  OpInfo op{.name = "gather_elements", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_RETURN_IF_ERROR(CheckIndices(in[1]));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    if (in[1].rank() != in[0].rank())
      return Refuse("indices ", ToText(in[1]), " into ", ToText(in[0]), ": the ranks differ");
    for (int d = 0; d < in[0].rank(); ++d) {
      if (d != axis && in[1].shape[d] > in[0].shape[d])
        return Refuse("indices ", ToText(in[1]), " into ", ToText(in[0]));
    }
    return Types{{in[0].dtype, in[1].shape}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::GatherElements(in[0], in[1], IntAttr(attrs, "axis"), "gather_elements")};
  };
  return op;
}

// "batch_dims".
OpInfo GatherNdOp() {
  OpInfo op{.name = "gather_nd", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_RETURN_IF_ERROR(CheckIndices(in[1]));
    const int64_t batch = IntAttr(attrs, "batch_dims");
    if (batch < 0 || in[1].rank() < 1 || batch >= in[1].rank() || batch > in[0].rank())
      return Refuse(batch, " batch dimensions of indices ", ToText(in[1]));
    const int64_t depth = in[1].shape.back();
    if (depth < 1 || batch + depth > in[0].rank() ||
        !std::equal(in[1].shape.begin(), in[1].shape.begin() + batch, in[0].shape.begin())) {
      return Refuse("indices ", ToText(in[1]), " into ", ToText(in[0]), " with ", batch, " batch dimensions");
    }
    std::vector<int64_t> shape(in[1].shape.begin(), in[1].shape.end() - 1);
    shape.insert(shape.end(), in[0].shape.begin() + batch + depth, in[0].shape.end());
    return Types{{in[0].dtype, std::move(shape)}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::GatherNd(in[0], in[1], IntAttr(attrs, "batch_dims"), "gather_nd")};
  };
  return op;
}

topi::ScatterMode ScatterModeOf(const std::string& mode) {
  return mode == "add"   ? topi::ScatterMode::kAdd
         : mode == "mul" ? topi::ScatterMode::kMul
         : mode == "min" ? topi::ScatterMode::kMin
         : mode == "max" ? topi::ScatterMode::kMax
                         : topi::ScatterMode::kReplace;
}

absl::Status CheckScatter(TypeSpan in, const Attrs& attrs) {
  HONE_RETURN_IF_ERROR(ExpectInputs(in, 3));
  HONE_RETURN_IF_ERROR(CheckIndices(in[1]));
  if (in[2].dtype != in[0].dtype) return Refuse("updates ", ToText(in[2]), " into ", ToText(in[0]));
  const std::string mode = StringAttr(attrs, "reduction", "none");
  if (mode != "none" && mode != "add" && mode != "mul" && mode != "min" && mode != "max")
    return Refuse("unknown reduction \"", mode, "\"");
  if (in[0].dtype.is_bool() && mode != "none") return Refuse("reduction ", mode, " of bools");
  return absl::OkStatus();
}

// x, indices, updates: "reduction".
OpInfo ScatterNdOp() {
  OpInfo op{.name = "scatter_nd", .kind = OpKind::kOpaque};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(CheckScatter(in, attrs));
    if (in[1].rank() < 1 || in[1].shape.back() < 1 || in[1].shape.back() > in[0].rank())
      return Refuse("indices ", ToText(in[1]), " into ", ToText(in[0]));
    std::vector<int64_t> expected(in[1].shape.begin(), in[1].shape.end() - 1);
    expected.insert(expected.end(), in[0].shape.begin() + in[1].shape.back(), in[0].shape.end());
    if (in[2].shape != expected)
      return Refuse("updates ", ToText(in[2]), " at indices ", ToText(in[1]), " into ", ToText(in[0]));
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{
        topi::ScatterNd(in[0], in[1], in[2], ScatterModeOf(StringAttr(attrs, "reduction")), "scatter_nd")};
  };
  return op;
}

// x, indices, updates: "axis", "reduction".
OpInfo ScatterElementsOp() {
  OpInfo op{.name = "scatter_elements", .kind = OpKind::kOpaque};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(CheckScatter(in, attrs));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    if (in[1].shape != in[2].shape || in[1].rank() != in[0].rank())
      return Refuse("updates ", ToText(in[2]), " at indices ", ToText(in[1]), " into ", ToText(in[0]));
    for (int d = 0; d < in[0].rank(); ++d) {
      if (d != axis && in[1].shape[d] > in[0].shape[d])
        return Refuse("indices ", ToText(in[1]), " into ", ToText(in[0]));
    }
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::ScatterElements(in[0], in[1], in[2], IntAttr(attrs, "axis"),
                                             ScatterModeOf(StringAttr(attrs, "reduction")), "scatter_elements")};
  };
  return op;
}

// indices, values {off, on}: "depth", "axis".
OpInfo OneHotOp() {
  OpInfo op{.name = "one_hot", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_RETURN_IF_ERROR(CheckIndices(in[0]));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank() + 1));
    const int64_t depth = IntAttr(attrs, "depth");
    if (depth < 1) return Refuse("a one-hot of depth ", depth);
    if (in[1].shape != std::vector<int64_t>{2})
      return Refuse("the values of a one-hot are ", ToText(in[1]), " instead of 2");
    TensorType out{in[1].dtype, in[0].shape};
    out.shape.insert(out.shape.begin() + axis, depth);
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::OneHot(in[0], IntAttr(attrs, "depth"), in[1], IntAttr(attrs, "axis"), "one_hot")};
  };
  return op;
}

// "upper", "k".
OpInfo TriluOp() {
  OpInfo op{.name = "trilu", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    if (in[0].rank() < 2) return Refuse("the triangle of ", ToText(in[0]));
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Trilu(in[0], IntAttr(attrs, "upper", 1) != 0, IntAttr(attrs, "k"), "trilu")};
  };
  return op;
}

}  // namespace

std::vector<OpInfo> IndexOps() {
  return {GatherOp(), GatherElementsOp(), GatherNdOp(), ScatterNdOp(), ScatterElementsOp(), OneHotOp(), TriluOp()};
}

}  // namespace hone
