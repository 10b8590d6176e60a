// Attention as ONNX Runtime's optimizer and exporters leave it in transformers, in its domain com.microsoft. Semantics:
// ONNX Runtime, docs/ContribOperators.md.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Shape = std::vector<int64_t>;

// [N, S, H * D] as [N, H, S, D]; one that has four dimensions is so already.
Value Heads(const Value& x, int64_t heads) {
  if (!x || x.rank() == 4) return x;
  return Transpose(Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}
Value Joined(const Value& x) {
  return x ? Reshape(Transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)}) : x;
}

// What masks and added scores come to, [.., S, T].
class Scores {
 public:
  explicit Scores(double masked) : masked_(masked) {}
  void Add(const Value& more) { sum_ = sum_ ? sum_ + more : more; }
  // Where `seen` is false, `masked` is added.
  void Mask(const Value& seen, DType dtype) {
    if (seen) Add(Where(seen, Constant(seen.context(), dtype, 0), Constant(seen.context(), dtype, masked_)));
  }
  Value Of(const Value& scores) const { return sum_ ? scores + sum_ : scores; }

 private:
  double masked_;
  Value sum_;
};

// The value that stands for minus infinity where all of a row may be masked: a softmax of it has no NaN.
constexpr double kLeast = -3.0e38;

// softmax(q k' scale + scores) v of heads.
Value Attend(const Value& q, const Value& k, const Value& v, double scale, double softcap, const Scores& scores) {
  Value products = MatMul(q, Transpose(k, {0, 1, 3, 2})) * scale;
  if (softcap > 0) products = Tanh(products / softcap) * softcap;
  return MatMul(Softmax(scores.Of(products), 3), v);
}

double ScaleOf(NodeContext& c, int64_t head_size) {
  const double given = c.FloatAttr("scale", 0);
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(head_size));
}

// Query i, which has `past` keys before it, sees keys up to its own.
Value Causal(NodeContext& c, int64_t queries, int64_t keys, int64_t past) {
  return Reshape(Iota(c, kInt64, keys), {1, keys}) <=
         Reshape(Iota(c, kInt64, queries, static_cast<double>(past)), {queries, 1});
}

// A mask: the number of keys of each row [N], or 1 for a key that is seen, [N, T] or [N, S, T].
absl::Status AddKeyMask(Scores& scores, const Value& mask, int64_t batch, int64_t queries, int64_t keys, DType dtype) {
  NodeContext& c = mask.context();
  const Shape shape = mask.shape();
  if (shape == Shape{batch, keys}) {
    scores.Mask(Reshape(Cast(mask, kBool), {batch, 1, 1, keys}), dtype);
  } else if (shape == Shape{batch, queries, keys}) {
    scores.Mask(Reshape(Cast(mask, kBool), {batch, 1, queries, keys}), dtype);
  } else if (shape == Shape{batch}) {
    scores.Mask(Reshape(Iota(c, kInt64, keys), {1, 1, 1, keys}) < Reshape(Cast(mask, kInt64), {batch, 1, 1, 1}), dtype);
  } else {
    return Unsupported(absl::StrCat("a mask ", ToText(c.type(mask.id())), " for ", queries, " queries and ", keys,
                                    " keys of ", batch, " rows"));
  }
  return c.status();
}

// input [N, S, I], weights [I, Q + K + V], bias, mask, past [2, N, H, P, D], attention bias.
Outputs Attention(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 6));
  const Value x = Input(c, 0), weights = Input(c, 1);
  const int64_t heads = c.IntAttr("num_heads", 0);
  if (c.IntAttr("do_rotary", 0) != 0) return Unsupported("do_rotary");
  if (x.rank() != 3 || weights.rank() != 2 || weights.dim(0) != x.dim(2))
    return Unsupported(
        absl::StrCat("an input ", ToText(c.type(x.id())), " and weights ", ToText(c.type(weights.id()))));
  const Shape sizes = c.IntsAttr("qkv_hidden_sizes", Shape(3, weights.dim(1) / 3));
  if (heads < 1 || sizes.size() != 3 || sizes[0] < 1 || sizes[2] < 1 || sizes[0] != sizes[1] ||
      sizes[0] + sizes[1] + sizes[2] != weights.dim(1) || sizes[0] % heads != 0 || sizes[2] % heads != 0)
    return Unsupported(
        absl::StrCat("num_heads ", heads, " or qkv_hidden_sizes do not fit weights ", ToText(c.type(weights.id()))));
  Value all = MatMul(x, weights);
  if (c.HasInput(2)) all = all + Input(c, 2);
  HONE_RETURN_IF_ERROR(c.status());
  const Value q = Heads(Slice(all, 2, 0, sizes[0]), heads);
  Value k = Heads(Slice(all, 2, sizes[0], sizes[1]), heads),
        v = Heads(Slice(all, 2, sizes[0] + sizes[1], sizes[2]), heads);
  int64_t past = 0;
  if (c.HasInput(4)) {
    const Value before = Input(c, 4);
    if (before.rank() != 5 || before.dim(0) != 2)
      return Unsupported(absl::StrCat("past ", ToText(c.type(before.id()))));
    const Shape each(before.shape().begin() + 1, before.shape().end());
    past = each[2];
    k = Concat({Reshape(Slice(before, 0, 0, 1), each), k}, 2);
    v = Concat({Reshape(Slice(before, 0, 1, 1), each), v}, 2);
  }
  HONE_RETURN_IF_ERROR(c.status());
  Scores scores(c.FloatAttr("mask_filter_value", -10000));
  if (c.IntAttr("unidirectional", 0) != 0) scores.Mask(Causal(c, q.dim(2), k.dim(2), past), q.dtype());
  if (c.HasInput(3)) HONE_RETURN_IF_ERROR(AddKeyMask(scores, Input(c, 3), q.dim(0), q.dim(2), k.dim(2), q.dtype()));
  if (c.HasInput(5)) scores.Add(Input(c, 5));
  const Value y = Joined(Attend(q, k, v, ScaleOf(c, q.dim(3)), 0, scores));
  Value present;
  if (c.num_outputs() > 1) {
    const auto as_one = [](const Value& a) { return Reshape(a, {1, a.dim(0), a.dim(1), a.dim(2), a.dim(3)}); };
    present = Concat({as_one(k), as_one(v)}, 0);
  }
  return Results({y, present});
}

struct Projections {
  Value q, k, v;
};

// query [N, S, H * D]; key and value likewise, or as heads [N, H, T, D]; or query [N, S, H, 3, D] and key [N, T, H, 2,
// D], packed.
absl::StatusOr<Projections> UnpackProjections(NodeContext& c, int64_t heads) {
  const Value q = Input(c, 0), k = Input(c, 1), v = Input(c, 2);
  const auto part = [](const Value& packed, int64_t i) {
    return Transpose(Reshape(Slice(packed, 3, i, 1), {packed.dim(0), packed.dim(1), packed.dim(2), packed.dim(4)}),
                     {0, 2, 1, 3});
  };
  if (q && q.rank() == 5 && !k && q.dim(3) == 3) return Projections{part(q, 0), part(q, 1), part(q, 2)};
  if (!k || q.rank() != 3 || q.dim(2) % heads != 0) return Unsupported("the form of query and key");
  if (k.rank() == 5 && !v && k.dim(3) == 2) return Projections{Heads(q, heads), part(k, 0), part(k, 1)};
  if (!v || k.rank() != v.rank() || (k.rank() != 3 && k.rank() != 4) ||
      (k.rank() == 3 && (k.dim(2) != q.dim(2) || v.dim(2) % heads != 0)))
    return Unsupported("the form of key and value");
  return Projections{Heads(q, heads), Heads(k, heads), Heads(v, heads)};
}

// query, key, value, bias of all three, key mask, attention bias, past key, past value.
Outputs MultiHeadAttention(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 8));
  const int64_t heads = c.IntAttr("num_heads", 0);
  if (heads < 1) return Unsupported(absl::StrCat("num_heads is ", heads));
  HONE_ASSIGN_OR_RETURN(Projections p, UnpackProjections(c, heads));
  HONE_RETURN_IF_ERROR(c.status());
  if (c.HasInput(3)) {
    const Value bias = Input(c, 3);
    int64_t at = 0;
    for (Value* x : {&p.q, &p.k, &p.v}) {
      const int64_t size = x->dim(1) * x->dim(3);
      if (bias.rank() != 1 || at + size > bias.dim(0))
        return Unsupported(absl::StrCat("bias ", ToText(c.type(bias.id()))));
      *x = *x + Reshape(Slice(bias, 0, at, size), {1, x->dim(1), 1, x->dim(3)});
      at += size;
    }
  }
  if (c.HasInput(6) != c.HasInput(7)) return Unsupported("past_key and past_value come together");
  int64_t past = 0;
  if (c.HasInput(6)) {
    if (Input(c, 6).rank() != 4 || Input(c, 7).rank() != 4) return Unsupported("the form of past_key and past_value");
    past = Input(c, 6).dim(2);
    p.k = Concat({Input(c, 6), p.k}, 2);
    p.v = Concat({Input(c, 7), p.v}, 2);
  }
  HONE_RETURN_IF_ERROR(c.status());
  const int64_t queries = p.q.dim(2), keys = p.k.dim(2);
  Scores scores(c.FloatAttr("mask_filter_value", -10000));
  if (c.HasInput(4)) HONE_RETURN_IF_ERROR(AddKeyMask(scores, Input(c, 4), p.q.dim(0), queries, keys, p.q.dtype()));
  if (c.HasInput(5)) scores.Add(Input(c, 5));
  if (c.IntAttr("unidirectional", 0) != 0) scores.Mask(Causal(c, queries, keys, past), p.q.dtype());
  return Results({Joined(Attend(p.q, p.k, p.v, ScaleOf(c, p.q.dim(3)), 0, scores)), p.k, p.v});
}

// x [N, H, S, D] turned by the tables' rows [N or 1, S, R / 2]; R may be less than D.
Value Rotate(const Value& x, const Value& cosines, const Value& sines, bool interleaved) {
  if (!x || !cosines || !sines) return {};
  const int64_t half = cosines.dim(2), turned = 2 * half, size = x.dim(3);
  const auto row = [&](const Value& table) { return Reshape(table, {table.dim(0), 1, table.dim(1), half}); };
  const Value cos = row(cosines), sin = row(sines);
  const Value a = interleaved ? Slice(x, 3, 0, half, 2) : Slice(x, 3, 0, half);
  const Value b = interleaved ? Slice(x, 3, 1, half, 2) : Slice(x, 3, half, half);
  const Value real = cos * a - sin * b, imaginary = sin * a + cos * b;
  if (!real || !imaginary) return {};
  Value y;
  if (interleaved) {
    Shape pair = real.shape();
    pair.push_back(1);
    const Value pairs = Concat({Reshape(real, pair), Reshape(imaginary, pair)}, 4);
    y = Reshape(pairs, {x.dim(0), x.dim(1), x.dim(2), turned});
  } else {
    y = Concat({real, imaginary}, 3);
  }
  return turned < size ? Concat({y, Slice(x, 3, turned, size - turned)}, 3) : y;
}

// input [N, S, H * D] or [N, H, S, D], places [N, S] or the first one [1], tables of cosines and sines.
Outputs RotaryEmbedding(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(4, 4));
  const Value x = Input(c, 0), cos = Input(c, 2), sin = Input(c, 3);
  for (const char* unused : {"max_position_embeddings", "theta"}) c.HasAttr(unused);
  if (c.FloatAttr("scale", 1) != 1 || c.IntAttr("is_packed_batching", 0) != 0)
    return Unsupported("scale or packed batches");
  if ((x.rank() != 3 && x.rank() != 4) || cos.rank() != 2 || sin.shape() != cos.shape() || cos.dim(1) < 1)
    return Unsupported(absl::StrCat("an input ", ToText(c.type(x.id())), " and a cache ", ToText(c.type(cos.id()))));
  const int64_t turned = c.IntAttr("rotary_embedding_dim", 0), named = c.IntAttr("num_heads", 0);
  const int64_t size = turned == 0 ? 2 * cos.dim(1) : x.rank() == 4 ? x.dim(3) : named > 0 ? x.dim(2) / named : 0;
  if (size < 2 * cos.dim(1) || (x.rank() == 3 && x.dim(2) % size != 0) || (turned != 0 && turned != 2 * cos.dim(1)))
    return Unsupported("num_heads or rotary_embedding_dim does not fit the cache");
  const int64_t length = x.dim(x.rank() == 4 ? 2 : 1);
  Value places = Cast(Input(c, 1), kInt64);
  if (places && places.rank() < 2) places = Reshape(places, {1, 1}) + Reshape(Iota(c, kInt64, length), {1, length});
  HONE_RETURN_IF_ERROR(c.status());
  const Value heads = x.rank() == 4 ? x : Heads(x, x.dim(2) / size);
  const Value y = Rotate(heads, Gather(cos, places, 0), Gather(sin, places, 0), c.IntAttr("interleaved", 0) != 0);
  return Results({x.rank() == 4 ? y : Joined(y)});
}

// [N, H, P + S, D]: past keys with the new ones from each row's place `start` [N] on; what comes after is 0.
Value Append(const Value& past, const Value& fresh, const Value& start) {
  NodeContext& c = fresh.context();
  const int64_t batch = fresh.dim(0), length = fresh.dim(2), total = past.dim(2) + length;
  const Value offset = Reshape(Iota(c, kInt64, total), {1, 1, total, 1}) - Reshape(start, {batch, 1, 1, 1});
  const Shape shape{batch, fresh.dim(1), total, fresh.dim(3)};
  const Value from = Expand(Clip(offset, 0, static_cast<double>(length - 1)), shape);
  const Value old = Concat({past, Expand(Number(fresh, 0), fresh.shape())}, 2);
  const Value is_new = And(offset >= Number(offset, 0), offset < Number(offset, static_cast<double>(length)));
  const Value is_old = offset < Number(offset, 0);
  return Where(is_new, Apply("gather_elements", {fresh, from}, {{"axis", int64_t{2}}}),
               Where(is_old, old, Number(fresh, 0)));
}

// query, key, value (or all in the query), past key and value [N, G, P, D], for each row its number of keys less one,
// the most of them, tables for rotation. G heads of keys serve H / G heads of queries each.
Outputs GroupQueryAttention(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 9));
  const int64_t heads = c.IntAttr("num_heads", 0), groups = c.IntAttr("kv_num_heads", 0);
  Value q = Input(c, 0), k = Input(c, 1), v = Input(c, 2);
  if (heads < 1 || groups < 1 || heads % groups != 0 || q.rank() != 3 || !c.HasInput(5))
    return Unsupported(absl::StrCat("num_heads ", heads, " and kv_num_heads ", groups));
  if (c.IntAttr("smooth_softmax", 0) != 0) return Unsupported("smooth_softmax");
  if (!k) {
    const int64_t size = q.dim(2) / (heads + 2 * groups);
    if (size < 1 || q.dim(2) % (heads + 2 * groups) != 0) return Unsupported("the packed query does not fit the heads");
    k = Slice(q, 2, heads * size, groups * size);
    v = Slice(q, 2, (heads + groups) * size, groups * size);
    q = Slice(q, 2, 0, heads * size);
  }
  HONE_RETURN_IF_ERROR(c.status());
  if (!v || k.rank() != 3 || v.rank() != 3 || q.dim(2) % heads != 0 || k.dim(2) % groups != 0 || v.dim(2) % groups != 0)
    return Unsupported("the form of key and value");
  q = Heads(q, heads);
  k = Heads(k, groups);
  v = Heads(v, groups);
  const int64_t batch = q.dim(0), length = q.dim(2);
  if (c.HasInput(3) != c.HasInput(4) || (c.HasInput(3) && (Input(c, 3).rank() != 4 || Input(c, 4).rank() != 4)))
    return Unsupported("the form of past_key and past_value");
  const int64_t past = c.HasInput(3) ? Input(c, 3).dim(2) : 0, total = past + length;
  // A prompt begins at 0; later, the last of the new keys is the last of all.
  const Value keys = Reshape(Cast(Input(c, 5), kInt64), {batch}) + 1;
  const Value start = past == 0 ? keys * 0 : keys - static_cast<double>(length);
  const Value places = Reshape(start, {batch, 1}) + Reshape(Iota(c, kInt64, length), {1, length});  // [N, S]
  if (c.IntAttr("do_rotary", 0) != 0) {
    if (!c.HasInput(7) || !c.HasInput(8) || Input(c, 7).rank() != 2 || Input(c, 8).rank() != 2)
      return Unsupported("do_rotary without tables of cosines and sines");
    const Value cos = Gather(Input(c, 7), places, 0), sin = Gather(Input(c, 8), places, 0);
    const bool interleaved = c.IntAttr("rotary_interleaved", 0) != 0;
    q = Rotate(q, cos, sin, interleaved);
    k = Rotate(k, cos, sin, interleaved);
  }
  HONE_RETURN_IF_ERROR(c.status());
  if (past > 0) {
    k = Append(Input(c, 3), k, start);
    v = Append(Input(c, 4), v, start);
  }
  Scores scores(kLeast);
  const Value key = Reshape(Iota(c, kInt64, total), {1, 1, 1, total}), place = Reshape(places, {batch, 1, length, 1});
  scores.Mask(key <= place, q.dtype());
  const int64_t window = c.IntAttr("local_window_size", -1);
  if (window >= 0) scores.Mask(key > place - static_cast<double>(window), q.dtype());
  const auto repeat = [&](const Value& x) {
    const int64_t times = heads / groups;
    if (!x || times == 1) return x;
    return Reshape(Expand(Reshape(x, {batch, groups, 1, total, x.dim(3)}), {batch, groups, times, total, x.dim(3)}),
                   {batch, heads, total, x.dim(3)});
  };
  HONE_RETURN_IF_ERROR(c.status());
  const Value y = Attend(q, repeat(k), repeat(v), ScaleOf(c, q.dim(3)), c.FloatAttr("softcap", 0), scores);
  return Results({Joined(y), k, v});
}

OnnxOperator Row(std::string_view name, ImportFn import) {
  return {.name = name, .since = 1, .import = import, .domain = "com.microsoft", .in_float32 = true};
}

}  // namespace

HONE_OPERATORS(contrib_attention) {
  return {{.onnx = {Row("Attention", Attention), Row("MultiHeadAttention", MultiHeadAttention),
                    Row("RotaryEmbedding", RotaryEmbedding), Row("GroupQueryAttention", GroupQueryAttention)}}};
}

}  // namespace hone
