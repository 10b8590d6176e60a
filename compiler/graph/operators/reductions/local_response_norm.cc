// Local response normalisation: an element divided by what its neighbours across channels amount to.
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/images/image_layout.h"
#include "compiler/graph/operators/images/image_shapes.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/norm.h"

namespace hone {
namespace {

// Across the last axis: "size", "alpha", "beta", "bias".
OpInfo LrnOp() {
  OpInfo op{.name = "lrn", .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(CheckImages(in, 1));
    if (IntAttr(attrs, "size") < 1) return Refuse("a neighbourhood of ", IntAttr(attrs, "size"), " channels");
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Lrn(in[0], IntAttr(attrs, "size"), in[0].rank() - 1, FloatAttr(attrs, "alpha"),
                                 FloatAttr(attrs, "beta"), FloatAttr(attrs, "bias"), "lrn")};
  };
  op.flop = [](TypeSpan, const Attrs& attrs, TypeSpan out) {
    return Count(out[0].shape) * static_cast<double>(2 * IntAttr(attrs, "size") + 4);
  };
  return op;
}

Outputs Lrn(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_RETURN_IF_ERROR(CheckImage(c, c.input(0)));
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, c.input(0)));
  HONE_ASSIGN_OR_RETURN(int y, c.Emit("lrn", {x},
                                      {{"size", c.IntAttr("size", 0)},
                                       {"alpha", c.FloatAttr("alpha", 1e-4)},
                                       {"beta", c.FloatAttr("beta", 0.75)},
                                       {"bias", c.FloatAttr("bias", 1.0)}}));
  HONE_ASSIGN_OR_RETURN(y, ToChannelsFirst(c, y));
  return std::vector<int>{y};
}

}  // namespace

HONE_OPERATORS(local_response_norm) { return {{.graph = {LrnOp()}, .onnx = {{"LRN", 1, Lrn, "", true}}}}; }

}  // namespace hone
