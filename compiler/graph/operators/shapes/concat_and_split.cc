// Tensors joined along an axis, and cut along one.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/shape_ops.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

NdArray ConcatArrays(DirectEvaluation::Arrays parts, const TensorType& type, int64_t axis) {
  NdArray joined(type.dtype, type.shape);
  size_t rows = 1;
  for (int64_t d = 0; d < axis; ++d) rows *= static_cast<size_t>(type.shape[d]);
  char* to = joined.data.data();
  for (size_t row = 0; row < rows; ++row) {
    for (const auto& part : parts) {
      const size_t bytes = part->data.size() / rows;
      if (bytes > 0) std::memcpy(to, part->data.data() + row * bytes, bytes);
      to += bytes;
    }
  }
  return joined;
}

// "axis".
OpInfo ConcatOp() {
  OpInfo op{.name = "concat", .kind = OpKind::kInjective};
  op.concatenates = true;
  op.is_no_op = [](size_t inputs, const Attrs&) { return inputs == 1; };
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
  op.evaluation.run = [](DirectEvaluation::Arrays in, const Attrs& attrs, const TensorType& out) {
    return ConcatArrays(in, out, IntAttr(attrs, "axis"));
  };
  return op;
}

// "axis": of parts of one type, element i is element i / n of part i mod n. What a shuffle of channels makes of a
// concatenation (Ma et al., "ShuffleNet V2", 2018, section 3.2).
OpInfo InterleaveOp() {
  OpInfo op{.name = "interleave", .kind = OpKind::kInjective};
  op.concatenates = true;
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

Outputs Concat(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1 << 16));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), c.rank(c.input(0))));
  std::vector<int> parts;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.HasInput(i)) return Unsupported(absl::StrCat("input ", i, " is left out"));
    const Ints& shape = c.shape(c.input(i));
    if (static_cast<int>(shape.size()) == c.rank(c.input(0)) && shape[axis] == 0 && c.num_inputs() > 1)
      continue;  // adds nothing
    parts.push_back(c.input(i));
  }
  if (parts.empty()) parts.push_back(c.input(0));
  if (parts.size() == 1) return std::vector<int>{parts[0]};
  return One(c.Emit("concat", parts, {{"axis", axis}}));
}

absl::StatusOr<int> SliceAxis(NodeContext& c, int value, int64_t axis, int64_t start, int64_t size) {
  const Ints shape = c.shape(value);
  Ints starts(shape.size(), 0), sizes = shape, steps(shape.size(), 1);
  starts[axis] = start;
  sizes[axis] = size;
  return c.Emit("slice", {value}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

Outputs Split(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, c.opset() >= 13 ? 2 : 1));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), c.rank(c.input(0))));
  const int64_t extent = c.shape(c.input(0))[axis];
  Ints sizes = c.IntsAttr("split");
  if (c.HasInput(1) && c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(sizes, c.Ints(1, "the sizes"));
  } else if (c.HasInput(1)) {
    for (int i = 0; i < c.num_outputs(); ++i) {
      HONE_ASSIGN_OR_RETURN(const Ints part, c.ShapeInsteadOf(1, "the sizes", i));
      if (static_cast<int>(part.size()) != c.rank(c.input(0)))
        return Unsupported("the declared shape of a part has another rank");
      sizes.push_back(part[axis]);
    }
  }
  if (sizes.empty()) {  // equal parts, the last one smaller where they do not divide
    const int64_t parts = c.IntAttr("num_outputs", c.num_outputs());
    if (parts < 1 || parts > (1 << 16)) return Unsupported(absl::StrCat(parts, " parts"));
    const int64_t part = (extent + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::max<int64_t>(0, std::min(part, extent - i * part)));
  }
  int64_t at = 0;
  std::vector<int> outputs;
  for (const int64_t size : sizes) {
    if (size < 0 || size > extent - at)
      return Unsupported(absl::StrCat("parts of ", absl::StrJoin(sizes, ", "), " of ", extent, " elements"));
    HONE_ASSIGN_OR_RETURN(const int part, SliceAxis(c, c.input(0), axis, at, size));
    outputs.push_back(part);
    at += size;
  }
  if (at != extent)
    return Unsupported(absl::StrCat("parts of ", absl::StrJoin(sizes, ", "), " of ", extent, " elements"));
  return outputs;
}

}  // namespace

HONE_OPERATORS(concat_and_split) {
  return {{.graph = {ConcatOp(), InterleaveOp()},
           .onnx = {
               {"Concat", 4, Concat, "", false, NarrowElements::kMoves},
               {"Split", 2, Split, "", false, NarrowElements::kMoves},
           }}};
}

}  // namespace hone
