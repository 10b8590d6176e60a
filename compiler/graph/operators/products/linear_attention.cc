// Attention without softmax as a recurrence over a state (d_k x d_v for every head), and the causal convolution in
// front.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int64_t kMostSteps = 512;  // the recurrence is unrolled

// [B, T, H * D] as [B, H, T, D].
Value Heads(const Value& x, int64_t heads) {
  return Transpose(Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

// S_t = exp(g_t) S_{t-1} + beta_t k_t (v_t - (exp(g_t) S_{t-1})' k_t)'   (gated_delta; without g: delta)
// S_t = exp(g_t) S_{t-1} + k_t v_t'                                      (gated; without g: linear)
// o_t = scale * S_t' q_t
Outputs LinearAttention(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 6));
  const int64_t q_heads = c.IntAttr("q_num_heads", 0), heads = c.IntAttr("kv_num_heads", 0);
  const std::string rule = c.StringAttr("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") return Unsupported(absl::StrCat("update_rule is \"", rule, "\""));
  if (gated && !c.HasInput(4)) return Unsupported("the decay is left out");
  if (delta && !c.HasInput(5)) return Unsupported("beta is left out");
  c.IntAttr("chunk_size", 64);  // of no account for the result
  for (int i = 0; i < 3; ++i) {
    const int64_t n = i == 0 ? q_heads : heads;
    if (c.rank(c.input(i)) != 3 || n < 1 || c.shape(c.input(i))[2] % n != 0)
      return Unsupported(absl::StrCat("input ", i, " is ", ToText(c.type(c.input(i))), " for ", n, " heads"));
  }
  if (q_heads % heads != 0) return Unsupported(absl::StrCat(q_heads, " heads of queries, ", heads, " of keys"));
  const Value q = Heads(Input(c, 0), q_heads), k = Heads(Input(c, 1), heads), v = Heads(Input(c, 2), heads);
  HONE_RETURN_IF_ERROR(c.status());
  const int64_t batch = q.dim(0), steps = q.dim(2), dk = k.dim(3), dv = v.dim(3), times = q_heads / heads;
  if (steps > kMostSteps) return Unsupported(absl::StrCat(steps, " steps; at most ", kMostSteps, " are unrolled"));
  const double named = c.FloatAttr("scale", 0), scale = named == 0 ? 1 / std::sqrt(static_cast<double>(dk)) : named;
  Value state = c.HasInput(3) ? Input(c, 3) : Expand(Constant(c, q.dtype(), 0), {batch, heads, dk, dv});
  // Decay and beta have one entry, one for each head, or one for each element of the key of each head.
  const auto at_step = [&](int input, int64_t t) {
    const Value all = Input(c, input);
    const Value now = Slice(all, 1, t, 1);
    if (all.dim(2) == 1) return Reshape(now, {batch, 1, 1, 1});
    return Reshape(now, {batch, heads, all.dim(2) / heads, 1});
  };
  for (const int input : {4, 5}) {
    if (c.HasInput(input) &&
        (c.rank(c.input(input)) != 3 || (c.shape(c.input(input))[2] != 1 && c.shape(c.input(input))[2] % heads != 0)))
      return Unsupported(absl::StrCat("input ", input, " is ", ToText(c.type(c.input(input)))));
  }
  std::vector<Value> outputs;
  for (int64_t t = 0; t < steps; ++t) {
    const Value kt = Reshape(Slice(k, 2, t, 1), {batch, heads, dk, 1}), vt = Slice(v, 2, t, 1);
    if (gated) state = Exp(at_step(4, t)) * state;
    Value change = vt;  // [B, H, 1, dv]
    if (delta) change = at_step(5, t) * (vt - Reduce("reduce_sum", kt * state, {2}, true));
    state = state + kt * change;
    const Value qt = Reshape(Slice(q, 2, t, 1), {batch, heads, times, dk, 1});
    const Value seen = Reduce("reduce_sum", qt * Reshape(state, {batch, heads, 1, dk, dv}), {3}, false) * scale;
    outputs.push_back(Reshape(seen, {batch, 1, q_heads * dv}));
    HONE_RETURN_IF_ERROR(c.status());
  }
  return Results({Concat(outputs, 1), state});
}

// Each channel convolved with its own kernel over the present and past elements; the past is the state, zeros without.
Outputs CausalConvWithState(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 4));
  const Value x = Input(c, 0), w = Input(c, 1);
  if (x.rank() != 3 || w.rank() != 3 || w.dim(0) != x.dim(1) || w.dim(1) != 1)
    return Unsupported(absl::StrCat("the weight is ", ToText(c.type(c.input(1))), " for ", ToText(c.type(c.input(0)))));
  const int64_t taps = w.dim(2), length = x.dim(2);
  const std::vector<int64_t> past{x.dim(0), x.dim(1), taps - 1};
  const Value state = c.HasInput(3) ? Input(c, 3) : Value();
  if (state && state.shape() != past) return Unsupported(absl::StrCat("the state is ", ToText(c.type(c.input(3)))));
  const Value zeros = taps > 1 ? Expand(Constant(c, x.dtype(), 0), past) : Value();
  const Value all = taps == 1 ? x : Concat({state ? state : zeros, x}, 2);
  Value y;
  for (int64_t k = 0; k < taps; ++k) {
    const Value term = Slice(all, 2, k, length) * Reshape(Slice(w, 2, k, 1), {1, x.dim(1), 1});
    y = y ? y + term : term;
  }
  if (c.HasInput(2)) y = y + Reshape(Input(c, 2), {1, x.dim(1), 1});
  const std::string activation = c.StringAttr("activation", "none");
  if (activation == "silu" || activation == "swish") y = Apply("silu", {y});
  else if (activation != "none") return Unsupported(absl::StrCat("activation is \"", activation, "\""));
  return Results({y, taps == 1 ? Constant(c, NdArray(x.dtype(), past)) : Slice(all, 2, length, taps - 1)});
}

}  // namespace

HONE_OPERATORS(linear_attention) {
  return {
      {.onnx = {{.name = "LinearAttention", .since = 27, .import = LinearAttention, .in_float32 = true}}},
      {.onnx = {{.name = "CausalConvWithState", .since = 27, .import = CausalConvWithState, .in_float32 = true}}},
  };
}

}  // namespace hone
