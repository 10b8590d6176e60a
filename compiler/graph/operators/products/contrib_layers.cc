// Fused layers that ONNX Runtime's optimizer and exporters leave in transformers, in its domain com.microsoft:
// activations with their bias, products with their transposes, sums with their normalization. Semantics: ONNX Runtime,
// docs/ContribOperators.md.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// ---- Activations.
Value WithBias(NodeContext& c) { return c.HasInput(1) ? Input(c, 0) + Input(c, 1) : Input(c, 0); }

Outputs Gelu(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  return Results({Apply("gelu", {Input(c, 0)})});
}
Outputs BiasGelu(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  return Results({Apply("gelu", {WithBias(c)})});
}
Outputs FastGelu(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 2));
  return Results({Apply("gelu_tanh", {WithBias(c)})});
}
Outputs QuickGelu(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value x = Input(c, 0);
  return Results({x * Sigmoid(x * c.FloatAttr("alpha", 1.702))});
}

// ---- alpha * a * b, either one transposed in its last two dimensions, or with its first dimension made the last but
// one ("batch").
Value Transposed(const Value& x, bool matrix, bool batch) {
  if (!x || x.rank() < 2) return x;
  std::vector<int64_t> perm(x.shape().size());
  std::iota(perm.begin(), perm.end(), 0);
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (matrix) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return Transpose(x, perm);
}

Outputs FusedMatMul(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Value a = Transposed(Input(c, 0), c.IntAttr("transA", 0) != 0, c.IntAttr("transBatchA", 0) != 0);
  const Value b = Transposed(Input(c, 1), c.IntAttr("transB", 0) != 0, c.IntAttr("transBatchB", 0) != 0);
  const double alpha = c.FloatAttr("alpha", 1);
  const Value y = MatMul(a, b);
  return Results({alpha == 1 ? y : y * alpha});
}

// ---- Normalizations over the last dimension, of a sum.
struct Normalized {
  Value y, mean, inverse_deviation;
};

Normalized LayerNorm(const Value& x, const Value& gamma, const Value& beta, double epsilon) {
  if (!x || !gamma) return {};
  const int64_t axis = x.rank() - 1;
  const Value mean = Reduce("reduce_mean", x, {axis}, true), centered = x - mean;
  const Value variance = Reduce("reduce_mean", centered * centered, {axis}, true);
  const Value inverse = 1 / Sqrt(variance + epsilon);
  const Attrs attrs{{"axis", axis}, {"epsilon", epsilon}};
  const Value y = beta ? Apply("layer_norm", {x, gamma, beta}, attrs) : Apply("layer_norm", {x, gamma}, attrs);
  return {y, mean, inverse};
}

Normalized RmsNorm(const Value& x, const Value& gamma, double epsilon) {
  if (!x || !gamma) return {};
  const int64_t axis = x.rank() - 1;
  const Value inverse = 1 / Sqrt(Reduce("reduce_mean", x * x, {axis}, true) + epsilon);
  return {Apply("rms_norm", {x, gamma}, {{"axis", axis}, {"epsilon", epsilon}}), Value(), inverse};
}

// input, skip (of a batch of 1, too), gamma, beta (not for RMS), bias.
Outputs SkipNormalization(NodeContext& c, bool rms) {
  const int last = rms ? 3 : 4;
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, last + 1));
  const double epsilon = c.FloatAttr("epsilon", 1e-12);
  Value sum = Input(c, 0) + Input(c, 1);
  if (c.HasInput(last)) sum = sum + Input(c, last);
  HONE_RETURN_IF_ERROR(c.status());
  const Normalized n = rms ? RmsNorm(sum, Input(c, 2), epsilon) : LayerNorm(sum, Input(c, 2), Input(c, 3), epsilon);
  return Results({n.y, n.mean, n.inverse_deviation, sum});
}

Outputs SimplifiedLayerNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  c.IntAttr("stash_type", 1);
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -1), c.rank(c.input(0))));
  if (axis + 1 != c.rank(c.input(0))) return Unsupported(absl::StrCat("axis ", axis, " is not the last"));
  const Normalized n = RmsNorm(Input(c, 0), Input(c, 1), c.FloatAttr("epsilon", 1e-5));
  return Results({n.y, n.inverse_deviation});
}

// Words, places and segments looked up, summed and normalized. Inputs: ids, segment ids, three tables, gamma, beta,
// mask, position ids. Outputs: the embedding, each row's count of tokens that are not masked, the sum.
Outputs EmbedLayerNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 9));
  const Value ids = Input(c, 0), words = Input(c, 2), places = Input(c, 3);
  if (!c.HasInput(2) || !c.HasInput(3) || !c.HasInput(5) || !c.HasInput(6)) return Unsupported("a table is left out");
  if (ids.rank() != 2 || places.rank() != 2 || words.rank() != 2)
    return Unsupported(absl::StrCat("input_ids ", ToText(c.type(ids.id())), " and tables ", ToText(c.type(words.id())),
                                    ", ", ToText(c.type(places.id()))));
  if (c.HasInput(1) != c.HasInput(4)) return Unsupported("segment_ids and segment_embedding come together");
  const int64_t length = ids.dim(1);
  if (!c.HasInput(8) && length > places.dim(0))
    return Unsupported(absl::StrCat(length, " places, position_embedding is ", ToText(c.type(places.id()))));
  Value sum =
      Gather(words, ids, 0) + (c.HasInput(8) ? Gather(places, Input(c, 8), 0)
                                             : Reshape(Slice(places, 0, 0, length), {1, length, places.dim(1)}));
  if (c.HasInput(1)) sum = sum + Gather(Input(c, 4), Input(c, 1), 0);
  HONE_RETURN_IF_ERROR(c.status());
  const Normalized n = LayerNorm(sum, Input(c, 5), Input(c, 6), c.FloatAttr("epsilon", 1e-12));
  c.IntAttr("mask_index_type", 0);
  const Value count = c.HasInput(7) ? Reduce("reduce_sum", Cast(Input(c, 7), kInt32), {1}, false)
                                    : Expand(Constant(c, kInt32, 0), {ids.dim(0)});
  return Results({n.y, count, sum});
}

OnnxOperator Row(std::string_view name, ImportFn import) {
  return {.name = name, .since = 1, .import = import, .domain = "com.microsoft", .in_float32 = true};
}

}  // namespace

HONE_OPERATORS(contrib_layers) {
  return {{.onnx = {
               Row("Gelu", Gelu),
               Row("BiasGelu", BiasGelu),
               Row("FastGelu", FastGelu),
               Row("QuickGelu", QuickGelu),
               Row("FusedMatMul", FusedMatMul),
               Row("SkipLayerNormalization", [](NodeContext& c) { return SkipNormalization(c, false); }),
               Row("SkipSimplifiedLayerNormalization", [](NodeContext& c) { return SkipNormalization(c, true); }),
               // In ONNX's own domain, too, which is where ONNX Runtime's optimizer puts it.
               {"SimplifiedLayerNormalization", 1, SimplifiedLayerNormalization, "", true},
               Row("SimplifiedLayerNormalization", SimplifiedLayerNormalization),
               Row("EmbedLayerNormalization", EmbedLayerNormalization),
           }}};
}

}  // namespace hone
