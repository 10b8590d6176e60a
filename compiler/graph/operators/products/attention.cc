// Attention: softmax(q * k' * scale + bias) * v by heads, in the forms exporters write it.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

// [N, S, H * D] as [N, H, S, D].
Value SplitHeads(const Value& x, int64_t heads) {
  if (!x) return {};
  return Transpose(Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

// [N, H, S, D] with every head `times` in a row.
Value RepeatHeads(const Value& x, int64_t times) {
  if (!x || times == 1) return x;
  const std::vector<int64_t> s = x.shape();
  return Reshape(Expand(Reshape(x, {s[0], s[1], 1, s[2], s[3]}), {s[0], s[1], times, s[2], s[3]}),
                 {s[0], s[1] * times, s[2], s[3]});
}

// Rows in which everything is masked are 0.
Value MaskedSoftmax(const Value& scores) {
  const Value most = Reduce("reduce_max", scores, {3}, true);
  const Value safe = Where(most == Number(most, kMasked), Number(most, 0), most);
  const Value e = Exp(scores - safe), sum = Reduce("reduce_sum", e, {3}, true);
  return e / Where(sum == Number(sum, 0), Number(sum, 1), sum);
}

struct Bias {
  Value sum;
  void Add(const Value& more) { sum = sum ? sum + more : more; }
  void Mask(const Value& allowed, DType dtype) {
    if (allowed)
      Add(Where(allowed, Constant(allowed.context(), dtype, 0), Constant(allowed.context(), dtype, kMasked)));
  }
};

// attn_mask: bool (true attends) or added; its last dimension may be shorter than the keys, the rest is masked.
absl::Status AddMask(Bias& bias, Value mask, int64_t keys, DType dtype) {
  NodeContext& c = mask.context();
  if (mask.rank() < 1 || mask.dim(-1) > keys)
    return Unsupported(absl::StrCat("the mask is ", ToText(c.type(mask.id())), " for ", keys, " keys"));
  if (mask.dim(-1) < keys && mask.dim(-1) != 1) {
    std::vector<int64_t> rest = mask.shape();
    rest.back() = keys - rest.back();
    const Value fill = Constant(c, mask.dtype(), mask.dtype().is_bool() ? 0 : kMasked);
    mask = Concat({mask, Expand(fill, rest)}, mask.rank() - 1);
  }
  if (mask.dtype().is_bool()) bias.Mask(mask, dtype);
  else bias.Add(Cast(mask, dtype));
  return c.status();
}

struct Sizes {
  int64_t queries, keys;
};

// Which keys a query sees by its place: position i + offset sees keys up to itself where causal, and those within the
// window on either side. `offset` [1] or [N, 1, 1, 1].
void AddPlaces(Bias& bias, NodeContext& c, Sizes sizes, const Value& offset, bool causal, int64_t left, int64_t right,
               DType dtype) {
  if (!causal && left < 0 && right < 0) return;
  const Value key = Iota(c, kInt64, sizes.keys);
  const Value place = Reshape(Iota(c, kInt64, sizes.queries), {sizes.queries, 1}) + offset;
  if (causal) bias.Mask(key <= place, dtype);
  if (left >= 0) bias.Mask(place - Number(place, static_cast<double>(left)) <= key, dtype);
  if (right >= 0) bias.Mask(key <= place + Number(place, static_cast<double>(right)), dtype);
}

Outputs Attention(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 7));
  Value q = Input(c, 0), k = Input(c, 1), v = Input(c, 2);
  const bool packed = q.rank() == 3;
  if ((q.rank() != 3 && q.rank() != 4) || k.rank() != q.rank() || v.rank() != q.rank())
    return Unsupported("query, key and value are neither all of three nor all of four dimensions");
  if (packed) {
    const int64_t heads = c.IntAttr("q_num_heads", 0), kv_heads = c.IntAttr("kv_num_heads", 0);
    if (heads < 1 || kv_heads < 1 || q.dim(2) % heads != 0 || k.dim(2) % kv_heads != 0 || v.dim(2) % kv_heads != 0)
      return Unsupported(
          absl::StrCat("q_num_heads ", heads, " and kv_num_heads ", kv_heads, " do not divide the inputs"));
    q = SplitHeads(q, heads);
    k = SplitHeads(k, kv_heads);
    v = SplitHeads(v, kv_heads);
  }
  if (c.HasInput(4) != c.HasInput(5)) return Unsupported("past_key and past_value come together");
  Value offset = Iota(c, kInt64, 1);
  if (c.HasInput(4)) {
    offset = Iota(c, kInt64, 1, static_cast<double>(Input(c, 4).dim(2)));
    k = Concat({Input(c, 4), k}, 2);
    v = Concat({Input(c, 5), v}, 2);
  }
  HONE_RETURN_IF_ERROR(c.status());
  const Value present_key = k, present_value = v;
  if (k.dim(1) < 1 || q.dim(1) % k.dim(1) != 0 || v.dim(1) != k.dim(1))
    return Unsupported(absl::StrCat(q.dim(1), " heads of queries, ", k.dim(1), " of keys"));
  const int64_t times = q.dim(1) / k.dim(1);
  const DType dtype = q.dtype();
  const Sizes sizes{q.dim(2), k.dim(2)};

  const double scale = std::sqrt(c.FloatAttr("scale", 1 / std::sqrt(static_cast<double>(q.dim(3)))));
  const Value scores = MatMul(q * scale, Transpose(RepeatHeads(k, times) * scale, {0, 1, 3, 2}));
  const double softcap = c.FloatAttr("softcap", 0);
  const Value capped = softcap > 0 ? Tanh(scores / softcap) * softcap : scores;
  Bias bias;
  if (c.HasInput(3)) HONE_RETURN_IF_ERROR(AddMask(bias, Input(c, 3), sizes.keys, dtype));
  if (c.HasInput(6)) {
    const Value filled = Reshape(Cast(Input(c, 6), kInt64), {q.dim(0), 1, 1, 1});
    bias.Mask(Iota(c, kInt64, sizes.keys) < filled, dtype);
    if (!c.HasInput(4)) offset = filled - Number(filled, static_cast<double>(sizes.queries));
  }
  AddPlaces(bias, c, sizes, offset, c.IntAttr("is_causal", 0) != 0, c.IntAttr("left_window_size", -1),
            c.IntAttr("right_window_size", -1), dtype);
  Value biased = bias.sum ? capped + bias.sum : capped;
  const int64_t precision = c.IntAttr("softmax_precision", 1);
  const std::optional<DType> asked = OnnxDType(precision);
  if (!asked.has_value() || !asked->is_float())
    return Unsupported(absl::StrCat("softmax_precision is ", OnnxDTypeName(precision)));
  if (asked->bits > dtype.bits) biased = Cast(biased, *asked);  // less than the computation's own is not asked for
  const Value probabilities = bias.sum ? MaskedSoftmax(biased) : Softmax(biased, 3);
  Value y = MatMul(Cast(probabilities, dtype), RepeatHeads(v, times));
  HONE_RETURN_IF_ERROR(c.status());
  if (packed) y = Reshape(Transpose(y, {0, 2, 1, 3}), {y.dim(0), y.dim(2), y.dim(1) * y.dim(3)});
  const int64_t mode = c.IntAttr("qk_matmul_output_mode", 0);
  const Value seen[] = {scores, capped, Cast(biased, dtype), Cast(probabilities, dtype)};
  if (mode < 0 || mode > 3) return Unsupported(absl::StrCat("qk_matmul_output_mode is ", mode));
  return Results({y, present_key, present_value, seen[mode]});
}

}  // namespace

HONE_OPERATORS(attention) {
  return {{.onnx = {{.name = "Attention", .since = 23, .import = Attention, .in_float32 = true}}}};
}

}  // namespace hone
