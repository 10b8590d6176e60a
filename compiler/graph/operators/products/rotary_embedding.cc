// Rotary position embedding (arXiv 2104.09864): pairs of elements of a head turned by an angle that grows with the
// place.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// x [N, H, S, D] or [N, S, H * D], cos and sin [places, R / 2] at position_ids [N, S], or [N, S, R / 2]: the first R
// elements of a head are turned, paired with the next one (interleaved) or with the one half of R further.
Outputs RotaryEmbedding(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 4));
  Value x = Input(c, 0), cos = Input(c, 1), sin = Input(c, 2);
  const std::vector<int64_t> shape = x.shape();
  if (x.rank() != 3 && x.rank() != 4)
    return Unsupported(absl::StrCat("an input of shape ", ToText(c.type(c.input(0)))));
  if (x.rank() == 4) {
    x = Transpose(x, {0, 2, 1, 3});
  } else {
    const int64_t heads = c.IntAttr("num_heads", 0);
    if (heads < 1 || shape[2] % heads != 0)
      return Unsupported(absl::StrCat("num_heads ", heads, " does not divide ", shape[2]));
    x = Reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
  }
  if (c.HasInput(3)) {
    const Value places = Cast(Input(c, 3), kInt64);
    cos = Gather(cos, places, 0);
    sin = Gather(sin, places, 0);
  }
  HONE_RETURN_IF_ERROR(c.status());
  const int64_t size = x.dim(3), named = c.IntAttr("rotary_embedding_dim", 0), turned = named == 0 ? size : named;
  const int64_t half = turned / 2;
  if (turned > size || turned % 2 != 0 || cos.rank() != 3 || cos.dim(2) != half || sin.shape() != cos.shape())
    return Unsupported(
        absl::StrCat("rotary_embedding_dim is ", turned, " of ", size, ", the cache is ", ToText(c.type(cos.id()))));
  cos = Reshape(cos, {cos.dim(0), cos.dim(1), 1, half});
  sin = Reshape(sin, {sin.dim(0), sin.dim(1), 1, half});
  const bool interleaved = c.IntAttr("interleaved", 0) != 0;
  const Value a = interleaved ? Slice(x, 3, 0, half, 2) : Slice(x, 3, 0, half);
  const Value b = interleaved ? Slice(x, 3, 1, half, 2) : Slice(x, 3, half, half);
  const Value real = cos * a - sin * b, imaginary = sin * a + cos * b;
  HONE_RETURN_IF_ERROR(c.status());
  Value y;
  if (interleaved) {
    std::vector<int64_t> pair = real.shape();
    pair.push_back(1);
    y = Concat({Reshape(real, pair), Reshape(imaginary, pair)}, 4);
    pair.pop_back();
    pair.back() = turned;
    y = Reshape(y, pair);
  } else {
    y = Concat({real, imaginary}, 3);
  }
  if (turned < size) y = Concat({y, Slice(x, 3, turned, size - turned)}, 3);
  return Results({shape.size() == 4 ? Transpose(y, {0, 2, 1, 3}) : Reshape(y, shape)});
}

}  // namespace

HONE_OPERATORS(rotary_embedding) {
  return {{.onnx = {{.name = "RotaryEmbedding", .since = 23, .import = RotaryEmbedding, .in_float32 = true}}}};
}

}  // namespace hone
