#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/shapes/per_axis.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/axes.h"
#include "compiler/topi/shape_ops.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

topi::PadMode PadModeOf(const std::string& mode) {
  return mode == "reflect" ? topi::PadMode::kReflect
         : mode == "edge"  ? topi::PadMode::kEdge
         : mode == "wrap"  ? topi::PadMode::kWrap
                           : topi::PadMode::kConstant;
}

// "before", "after", one a dimension (negative crops); "mode" constant, reflect, edge, wrap; "value".
OpInfo PadOp() {
  OpInfo op{.name = "pad", .kind = OpKind::kInjective};
  op.per_dimension = {"before", "after"};
  op.is_no_op = [](size_t, const Attrs& attrs) {
    return topi::AllAre(IntsAttr(attrs, "before"), 0) && topi::AllAre(IntsAttr(attrs, "after"), 0);
  };
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

// Where pads, their axes or the value come at run time: each element is looked up at its place less the pad before it.
Outputs PadAtRunTime(NodeContext& c) {
  Value x = Input(c, 0);
  HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeInsteadOf(1, "the pads"));
  if (static_cast<int>(shape.size()) != x.rank()) return Unsupported("the declared shape has another rank");
  const std::string mode = c.StringAttr("mode", "constant");
  const PerAxis by_axis(x.rank(), Input(c, 3));
  const Value pads = Cast(Input(c, 1), kInt64);
  if (pads.rank() != 1 || pads.dim(0) % 2 != 0) return Unsupported("the pads are not a list of pairs");
  const Value befores = Slice(pads, 0, 0, pads.dim(0) / 2);
  Value inside;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    const double n = static_cast<double>(x.dim(d));
    Value at = Iota(c, kInt64, shape[static_cast<size_t>(d)]) - by_axis.Get(befores, d, 0);
    if (mode == "constant") {
      Value here = And(at >= Number(at, 0), at < Number(at, n));
      Ints along(shape.size(), 1);
      along[static_cast<size_t>(d)] = shape[static_cast<size_t>(d)];
      here = Reshape(here, along);
      inside = inside ? And(inside, here) : here;
    } else if (mode == "reflect" && n > 1) {
      at = Number(at, n - 1) - Abs(Number(at, n - 1) - Abs(at));
    } else if (mode == "wrap") {
      at = Apply("mod", {at, Number(at, n)});
    } else if (mode != "edge" && mode != "reflect") {
      return Unsupported(absl::StrCat("mode is \"", mode, "\""));
    }
    x = Gather(x, Clip(at, 0, n - 1), d);
    HONE_RETURN_IF_ERROR(c.status());
  }
  if (mode != "constant" || !inside) return Results({x});
  const Value value = c.HasInput(2) ? Reshape(Cast(Input(c, 2), x.dtype()), {}) : Number(x, 0);
  return Results({Where(inside, x, value)});
}

Outputs Pad(NodeContext& c) {
  const bool as_inputs = c.opset() >= 11;
  HONE_RETURN_IF_ERROR(c.NeedInputs(as_inputs ? 2 : 1, as_inputs ? 4 : 1));
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.HasInput(i) && !c.IsConstant(i)) return PadAtRunTime(c);
  }
  const int rank = c.rank(c.input(0));
  Ints pads = c.IntsAttr(c.HasAttr("paddings") ? "paddings" : "pads"), axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  double value = c.FloatAttr("value", 0);
  if (as_inputs) {
    HONE_ASSIGN_OR_RETURN(pads, c.Ints(1, "the pads"));
    if (c.HasInput(2)) { HONE_ASSIGN_OR_RETURN(value, c.Number(2, "the padding value")); }
    if (c.HasInput(3)) {
      HONE_ASSIGN_OR_RETURN(axes, c.Ints(3, "axes"));
      HONE_ASSIGN_OR_RETURN(axes, c.Axes(axes, rank));
    }
  }
  if (pads.size() != 2 * axes.size())
    return Unsupported(absl::StrCat(pads.size(), " pads for ", axes.size(), " dimensions"));
  Ints before(rank, 0), after(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    before[axes[i]] = pads[i];
    after[axes[i]] = pads[axes.size() + i];
  }
  return One(
      c.Emit("pad", {c.input(0)},
             {{"before", before}, {"after", after}, {"mode", c.StringAttr("mode", "constant")}, {"value", value}}));
}

}  // namespace

HONE_OPERATORS(pad) { return {{.graph = {PadOp()}, .onnx = {{.name = "Pad", .since = 1, .import = Pad}}}}; }

}  // namespace hone
