// Normalisation by the statistics of each channel, running ones or a batch's own.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// In training the statistics are the batch's own; running ones are outputs.
Outputs BatchNormOfBatch(NodeContext& c) {
  const Value x = Input(c, 0), running_mean = Input(c, 3), running_variance = Input(c, 4);
  if (x.rank() < 2) return Unsupported(absl::StrCat("a batch norm of ", ToText(c.type(x.id()))));
  const double momentum = c.FloatAttr("momentum", 0.9);
  Ints over, shape(c.shape(x.id()).size() - 1, 1);
  for (int d = 0; d < x.rank(); ++d) {
    if (d != 1) over.push_back(d);
  }
  shape[0] = x.dim(1);
  const Value mean = Reduce("reduce_mean", x, over, false), centred = x - Reshape(mean, shape);
  const Value variance = Reduce("reduce_mean", centred * centred, over, false);
  const Value scale = Input(c, 1) / Sqrt(variance + c.FloatAttr("epsilon", 1e-5));
  return Results({centred * Reshape(scale, shape) + Reshape(Input(c, 2), shape),
                  running_mean * momentum + mean * (1 - momentum),
                  running_variance * momentum + variance * (1 - momentum)});
}

// x * (scale / sqrt(var + epsilon)) + (bias - mean * scale / sqrt(var + epsilon)), a multiply and an add by channel:
// with constant statistics both fold into the convolution in front.
Outputs BatchNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(5, 5));
  c.FloatAttr("momentum", 0.9);
  if (c.IntAttr("training_mode", 0) != 0) return BatchNormOfBatch(c);
  if (c.IntAttr("spatial", 1) == 0) return Unsupported("spatial 0 is not supported");
  const int x = c.input(0);
  if (c.rank(x) < 2) return Unsupported(absl::StrCat("a batch norm of ", ToText(c.type(x))));
  const DType dtype = c.type(x).dtype;
  const int64_t channels = c.shape(x)[1];
  for (int i = 1; i < 5; ++i) {
    if (c.shape(c.input(i)) != Ints{channels})
      return Unsupported(absl::StrCat("input ", i, " is ", ToText(c.type(c.input(i))), " for ", channels, " channels"));
  }
  HONE_ASSIGN_OR_RETURN(const int safe, c.Emit("add", {c.input(4), c.Scalar(dtype, c.FloatAttr("epsilon", 1e-5))}));
  HONE_ASSIGN_OR_RETURN(const int deviation, c.Emit("sqrt", {safe}));
  HONE_ASSIGN_OR_RETURN(int scale, c.Emit("divide", {c.input(1), deviation}));
  HONE_ASSIGN_OR_RETURN(const int moved, c.Emit("multiply", {c.input(3), scale}));
  HONE_ASSIGN_OR_RETURN(int shift, c.Emit("subtract", {c.input(2), moved}));
  Ints shape(c.rank(x) - 1, 1);
  shape[0] = channels;
  HONE_ASSIGN_OR_RETURN(scale, c.Reshape(scale, shape));
  HONE_ASSIGN_OR_RETURN(shift, c.Reshape(shift, shape));
  HONE_ASSIGN_OR_RETURN(const int scaled, c.Emit("multiply", {x, scale}));
  HONE_ASSIGN_OR_RETURN(const int y, c.Emit("add", {scaled, shift}));
  return std::vector<int>{y};
}

}  // namespace

HONE_OPERATORS(batch_norm) { return {{.onnx = {{"BatchNormalization", 7, BatchNormalization, "", true}}}}; }

}  // namespace hone
