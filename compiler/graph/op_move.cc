// Operators that move elements and compute nothing.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "compiler/graph/op_groups.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/shape_ops.h"

namespace hone {
namespace {

// "shape": as many elements as the input.
OpInfo ReshapeOp() {
  OpInfo op{.name = "reshape", .kind = OpKind::kView};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> shape = IntsAttr(attrs, "shape");
    if (NumElements(shape) != NumElements(in[0].shape)) {
      return Refuse("a reshape of ", ToText(in[0]), " to [", absl::StrJoin(shape, ", "),
                    "]: the numbers of elements differ");
    }
    return Types{{in[0].dtype, shape}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Reshape(in[0], IntsAttr(attrs, "shape"), "reshape")};
  };
  return op;
}

// "perm": y.shape[d] = x.shape[perm[d]].
OpInfo TransposeOp() {
  OpInfo op{.name = "transpose", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> perm = IntsAttr(attrs, "perm");
    std::vector<int64_t> sorted = perm, identity(in[0].rank());
    std::sort(sorted.begin(), sorted.end());
    std::iota(identity.begin(), identity.end(), 0);
    if (sorted != identity)
      return Refuse("[", absl::StrJoin(perm, ", "), "] is not a permutation of ", in[0].rank(), " axes");
    TensorType out{in[0].dtype, {}};
    for (const int64_t axis : perm) out.shape.push_back(in[0].shape[axis]);
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Transpose(in[0], IntsAttr(attrs, "perm"), "transpose")};
  };
  return op;
}

// "starts", "sizes", "steps", one entry a dimension: y[i] = x[start + i * step].
OpInfo SliceOp() {
  OpInfo op{.name = "slice", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> starts = IntsAttr(attrs, "starts"), sizes = IntsAttr(attrs, "sizes"),
                               steps = IntsAttr(attrs, "steps");
    const size_t rank = in[0].shape.size();
    if (starts.size() != rank || sizes.size() != rank || steps.size() != rank)
      return Refuse("a slice of ", starts.size(), " dimensions of ", ToText(in[0]));
    for (size_t d = 0; d < rank; ++d) {
      int64_t last = 0;
      if (sizes[d] < 0 || steps[d] == 0 ||
          __builtin_mul_overflow(std::max<int64_t>(sizes[d] - 1, 0), steps[d], &last) ||
          __builtin_add_overflow(last, starts[d], &last) ||
          (sizes[d] > 0 && (starts[d] < 0 || starts[d] >= in[0].shape[d] || last < 0 || last >= in[0].shape[d]))) {
        return Refuse("a slice of dimension ", d, " of ", ToText(in[0]), " from ", starts[d], " in steps of ", steps[d],
                      ", ", sizes[d], " elements");
      }
    }
    return Types{{in[0].dtype, sizes}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan out) {
    const std::vector<int64_t> starts = IntsAttr(attrs, "starts"), steps = IntsAttr(attrs, "steps");
    const te::Tensor x = in[0];
    const auto element = [&](const te::Indices& i) {
      std::vector<Expr> at;
      for (size_t d = 0; d < i.size(); ++d) at.push_back(i[d] * Expr(steps[d]) + Expr(starts[d]));
      return x(at);
    };
    return std::vector{te::Compute(te::Shape(out[0].shape), element, "slice")};
  };
  return op;
}

// "axis".
OpInfo ConcatOp() {
  OpInfo op{.name = "concat", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    if (in.empty()) return Refuse("a concat of nothing");
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    TensorType out = in[0];
    for (const TensorType& type : in.subspan(1)) {
      std::vector<int64_t> expected = in[0].shape;
      if (type.rank() == in[0].rank()) expected[axis] = type.shape[axis];
      if (type.dtype != in[0].dtype || type.shape != expected)
        return Refuse("a concat of ", ToText(in[0]), " and ", ToText(type), " along axis ", axis);
      if (__builtin_add_overflow(out.shape[axis], type.shape[axis], &out.shape[axis]))
        return Refuse("the concat is too large");
    }
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Concat({in.begin(), in.end()}, IntAttr(attrs, "axis"), "concat")};
  };
  return op;
}

// "axis": of parts of one type, element i is element i / n of part i mod n. What a shuffle of channels makes of a
// concatenation (Ma et al., "ShuffleNet V2", 2018, section 3.2).
OpInfo InterleaveOp() {
  OpInfo op{.name = "interleave", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    if (in.empty()) return Refuse("an interleave of nothing");
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    for (const TensorType& type : in) {
      if (type != in[0]) return Refuse("an interleave of ", ToText(in[0]), " and ", ToText(type));
    }
    TensorType out = in[0];
    if (__builtin_mul_overflow(out.shape[axis], static_cast<int64_t>(in.size()), &out.shape[axis]))
      return Refuse("the interleave is too large");
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Interleave({in.begin(), in.end()}, IntAttr(attrs, "axis"))};
  };
  return op;
}

// "shape": numpy's broadcast_to.
OpInfo ExpandOp() {
  OpInfo op{.name = "expand", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> shape = IntsAttr(attrs, "shape");
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> both, BroadcastShapes(in[0].shape, shape));
    if (both != shape) return Refuse(ToText(in[0]), " does not broadcast to [", absl::StrJoin(shape, ", "), "]");
    return Types{{in[0].dtype, shape}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::BroadcastTo(in[0], IntsAttr(attrs, "shape"), "expand")};
  };
  return op;
}

// "repeats", one a dimension.
OpInfo RepeatOp() {
  OpInfo op{.name = "tile", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> repeats = IntsAttr(attrs, "repeats");
    if (repeats.size() != in[0].shape.size()) return Refuse(repeats.size(), " repeats of ", ToText(in[0]));
    TensorType out = in[0];
    for (size_t d = 0; d < repeats.size(); ++d) {
      if (repeats[d] < 0 || __builtin_mul_overflow(out.shape[d], repeats[d], &out.shape[d]))
        return Refuse(repeats[d], " repeats of dimension ", d);
    }
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Tile(in[0], IntsAttr(attrs, "repeats"), "tile")};
  };
  return op;
}

topi::PadMode PadModeOf(const std::string& mode) {
  return mode == "reflect" ? topi::PadMode::kReflect
         : mode == "edge"  ? topi::PadMode::kEdge
         : mode == "wrap"  ? topi::PadMode::kWrap
                           : topi::PadMode::kConstant;
}

// "before", "after", one a dimension (negative crops); "mode" constant, reflect, edge, wrap; "value".
OpInfo PadOp() {
  OpInfo op{.name = "pad", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> before = IntsAttr(attrs, "before"), after = IntsAttr(attrs, "after");
    if (before.size() != in[0].shape.size() || after.size() != before.size())
      return Refuse(before.size(), " pads of ", ToText(in[0]));
    const std::string mode = StringAttr(attrs, "mode", "constant");
    if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
      return Refuse("unknown padding mode \"", mode, "\"");
    TensorType out = in[0];
    for (size_t d = 0; d < before.size(); ++d) {
      const int64_t size = in[0].shape[d];
      int64_t& padded = out.shape[d];
      if (__builtin_add_overflow(padded, before[d], &padded) || __builtin_add_overflow(padded, after[d], &padded) ||
          padded < 0 || before[d] < -size || after[d] < -size) {
        return Refuse("padding dimension ", d, " of ", ToText(in[0]), " by ", before[d], " and ", after[d]);
      }
      const int64_t most = mode == "reflect" ? size - 1 : mode == "wrap" ? size : padded;
      if (mode != "constant" && (before[d] > most || after[d] > most || (padded > 0 && size == 0))) {
        return Refuse("padding dimension ", d, " of ", ToText(in[0]), " by ", before[d], " and ", after[d], " in mode ",
                      mode);
      }
    }
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Pad(in[0], IntsAttr(attrs, "before"), IntsAttr(attrs, "after"),
                                 PadModeOf(StringAttr(attrs, "mode", "constant")), FloatAttr(attrs, "value"), "pad")};
  };
  return op;
}

}  // namespace

std::vector<OpInfo> MoveOps() {
  return {ReshapeOp(), TransposeOp(), SliceOp(), ConcatOp(), InterleaveOp(), ExpandOp(), RepeatOp(), PadOp()};
}

}  // namespace hone
