#include "tests/tuner/space/extra_workloads.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "compiler/ir/annotations.h"
#include "compiler/te/te.h"
#include "compiler/topi/attention.h"
#include "compiler/topi/conv.h"
#include "compiler/topi/dense.h"
#include "compiler/topi/elementwise.h"
#include "compiler/topi/norm.h"
#include "compiler/topi/pool.h"
#include "compiler/topi/reduce.h"
#include "compiler/topi/shape_ops.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

te::Tensor In(const std::vector<int64_t>& shape, const char* name) {
  return te::Placeholder(te::Shape(shape), kFloat32, name);
}

// What is summed in a wider type; the right operand is a constant or not.
PrimFunc NarrowProduct(DType left, DType right, const std::vector<int64_t>& x, const std::vector<int64_t>& w,
                       bool constant) {
  const te::Tensor a = te::Placeholder(te::Shape(x), left, "a"), b = te::Placeholder(te::Shape(w), right, "b");
  PrimFunc func = te::CreatePrimFunc({a, b}, {w.size() == 2 ? topi::Dense(a, b) : topi::BatchMatmul(a, b)}, "main");
  if (constant) func.attrs["constants"] = std::vector<int64_t>{1};
  return func;
}

// Operands are rounded where they are read; the right one is a cold constant.
PrimFunc RoundedProduct() {
  const te::Tensor a = In({28, 256}, "a"), b = te::Placeholder({256, 96}, DType::BFloat16(), "b");
  PrimFunc func = te::CreatePrimFunc({a, b}, {topi::Relu(topi::Dense(topi::Cast(a, DType::BFloat16()), b))}, "main");
  func.attrs["constants"] = std::vector<int64_t>{1};
  func.attrs[kColdConstants] = int64_t{1};
  return func;
}

// Sums that fill tile registers of 14 rows, and what takes them.
PrimFunc ByteTilesRelu() {
  const te::Tensor a = te::Placeholder({28, 128}, DType::UInt(8), "a"),
                   b = te::Placeholder({128, 48}, DType::Int(8), "b");
  PrimFunc func = te::CreatePrimFunc({a, b}, {topi::Relu(topi::Dense(a, b))}, "main");
  func.attrs["constants"] = std::vector<int64_t>{1};
  return func;
}

// Rows of 7 pixels, each of 64 channels, from a border of 0.
PrimFunc ByteTilesConv() {
  const te::Tensor x = te::Placeholder({1, 4, 7, 64}, DType::UInt(8), "x"),
                   w = te::Placeholder({3, 3, 64, 16}, DType::Int(8), "w");
  PrimFunc func = te::CreatePrimFunc(
      {x, w}, {topi::Conv2d(x, w, topi::ConvAttrs{.pads_before = {1, 1}, .pads_after = {1, 1}})}, "main");
  func.attrs["constants"] = std::vector<int64_t>{1};
  return func;
}

// With a border of 7.
PrimFunc ByteConv() {
  const te::Tensor x = te::Placeholder({1, 6, 7, 8}, DType::UInt(8), "x"),
                   w = te::Placeholder({3, 3, 8, 48}, DType::Int(8), "w");
  const topi::ConvAttrs attrs{.pads_before = {1, 1}, .pads_after = {1, 1}, .pad_value = 7};
  PrimFunc func = te::CreatePrimFunc({x, w}, {topi::Conv2d(x, w, attrs)}, "main");
  func.attrs["constants"] = std::vector<int64_t>{1};
  return func;
}

// A depthwise convolution with its epilogue, and the product of its pixels (a convolution of 1x1) that alone reads it.
PrimFunc Separable(const std::vector<int64_t>& x, int64_t stride, int64_t channels) {
  const te::Tensor image = In(x, "x"), each = In({3, 3, x[3]}, "w"), mixing = In({x[3], channels}, "u");
  const te::Tensor inner = topi::Relu(topi::DepthwiseConv2d(
      image, each, {.strides = {stride, stride}, .pads_before = {1, 1}, .pads_after = {1, 1}}, "depthwise"));
  const int64_t pixels = x[0] * ((x[1] - 1) / stride + 1) * ((x[2] - 1) / stride + 1);
  const te::Tensor rows = topi::Reshape(inner, {pixels, x[3]});
  PrimFunc func = te::CreatePrimFunc({image, each, mixing}, {topi::Relu(topi::Dense(rows, mixing))}, "main");
  func.attrs["constants"] = std::vector<int64_t>{1, 2};
  return func;
}

// Of `rows` queries and `keys` keys a head, with a mask; few divide an odd number of rows.
PrimFunc MaskedAttention(int64_t heads, int64_t rows, int64_t keys) {
  const te::Tensor q = In({heads, rows, 20}, "q"), k = In({heads, keys, 20}, "k"), v = In({heads, keys, 24}, "v"),
                   mask = In({rows, keys}, "mask");
  return te::CreatePrimFunc({q, k, v, mask}, {topi::Attention(q, k, v, mask)}, "main");
}

// The heads of a row lie beside one another in what it reads and writes.
PrimFunc AttentionOfJoinedHeads(int64_t heads, int64_t rows) {
  const te::Tensor q = In({rows, heads, 16}, "q"), k = In({rows, heads, 16}, "k"), v = In({rows, heads, 16}, "v");
  const te::Tensor scores = topi::BatchMatmulInOrder(q, {1, 0, 2}, k, {1, 2, 0}, {0, 1, 2}, "scores");
  const te::Tensor weights = topi::Softmax(scores, -1, "weights");
  return te::CreatePrimFunc({q, k, v}, {topi::BatchMatmulInOrder(weights, {0, 1, 2}, v, {1, 0, 2}, {1, 0, 2}, "mix")},
                            "main");
}

}  // namespace

std::vector<SmallWorkload> LargerWorkloads() {
  std::vector<SmallWorkload> all;
  all.push_back({"long_dense_relu", DenseRelu(5, 37, 520)});
  all.push_back({"long_product", Matmul(5, 37, 520)});
  all.push_back({"cold_dense", DenseRelu(29, 130, 520)});
  all.back().func.attrs[kColdConstants] = int64_t{1};
  all.push_back({"one_row_of_a_long_product", Matmul(1, 19, 8192)});
  all.push_back({"wide_conv_block", ConvBiasResidualRelu({9, 7, 5, 37, 3, 1, 1})});
  all.push_back({"rows_softmax", Softmax(7, 45), false});
  const te::Tensor q = In({2, 5, 37}, "q"), k = In({2, 19, 37}, "k");
  all.push_back(
      {"scores",
       te::CreatePrimFunc({q, k}, {topi::MultiplyScalar(topi::BatchMatmul(q, k, false, true), 2, "scaled")}, "main")});
  const te::Tensor qk = In({7, 4, 37}, "qk");  // queries and keys are parts of one tensor, as one product makes them
  const te::Tensor queries = topi::StridedSlice(qk, {0}, {2}, {1}, {1}, "queries"),
                   keys = topi::StridedSlice(qk, {2}, {4}, {1}, {1}, "keys");
  all.push_back(
      {"scores_of_one",
       te::CreatePrimFunc({qk}, {topi::BatchMatmulInOrder(queries, {1, 0, 2}, keys, {1, 2, 0}, {0, 1, 2})}, "main")});
  const te::Tensor x = In({5, 43}, "x"), scale = In({43}, "scale"), bias = In({43}, "bias");
  all.push_back({"rows_layer_norm",
                 te::CreatePrimFunc({x, scale, bias}, {topi::LayerNorm(x, scale, bias, 1, 1e-5)}, "main"), false});
  const te::Tensor image = In({1, 6, 9, 21}, "x"), each = In({3, 3, 21}, "w");
  all.push_back(
      {"padded_depthwise",
       te::CreatePrimFunc({image, each}, {topi::DepthwiseConv2d(image, each, {{}, {}, {1, 1}, {1, 1}})}, "main")});
  all.push_back({"depthwise_separable", Separable({1, 6, 8, 40}, 1, 20)});
  all.push_back({"batch_depthwise_separable", Separable({2, 4, 5, 24}, 1, 20)});
  all.push_back({"wide_depthwise_separable", Separable({1, 4, 4, 64}, 1, 16)});
  all.push_back({"strided_depthwise_separable", Separable({1, 12, 9, 24}, 2, 33)});
  all.push_back({"masked_attention", MaskedAttention(3, 24, 40), false});
  all.push_back({"attention_of_odd_rows", MaskedAttention(4, 13, 29), false});
  all.push_back({"attention_of_joined_heads", AttentionOfJoinedHeads(4, 30), false});
  const te::Tensor plane = In({1, 5, 9, 41}, "x"), taps = In({3, 5, 5}, "w");
  all.push_back(
      {"padded_depthwise_of_planes",
       te::CreatePrimFunc(
           {plane, taps},
           {topi::DepthwiseConv2d(
               plane, taps, {.strides = {1, 2}, .pads_before = {1, 2}, .pads_after = {1, 2}, .channels_first = true})},
           "main")});
  const topi::PoolAttrs halves{
      .kernel = {3, 3}, .strides = {2, 2}, .pads_before = {1, 1}, .pads_after = {1, 1}, .channels_first = true};
  all.push_back({"max_pool_of_planes", te::CreatePrimFunc({plane}, {topi::MaxPool(plane, halves)}, "main")});
  all.push_back({"avg_pool_of_planes", te::CreatePrimFunc({plane}, {topi::AveragePool(plane, halves)}, "main"), false});
  // Either sum could take the elements of each row as they are made, neither comes after the other.
  const te::Tensor left = In({6, 70}, "a"), right = In({6, 70}, "b"), both = topi::Maximum(left, right, "both");
  const te::Tensor sum = topi::ReduceSum(both, {1}, true, "sum"), top = topi::ReduceMax(both, {1}, true, "top");
  all.push_back(
      {"rows_two_reductions",
       te::CreatePrimFunc({left, right}, {topi::Add(topi::Multiply(both, top, "scaled"), sum, "out")}, "main")});
  const te::Tensor planes = In({1, 16, 3, 15}, "x"), mixing = In({1, 1, 4, 24}, "w");
  all.push_back({"groups_of_planes",
                 te::CreatePrimFunc({planes, mixing},
                                    {topi::Conv2d(planes, mixing, {.groups = 4, .channels_first = true})}, "main")});
  all.back().func.attrs["constants"] = std::vector<int64_t>{1};
  for (const auto& [name, channels, groups] :
       {std::tuple("narrow_groups", 48, 12), std::tuple("pairs_of_groups", 32, 4), std::tuple("odd_groups", 48, 2)}) {
    const te::Tensor grouped = In({1, 6, 5, channels}, "x"), weight = In({3, 3, channels / groups, channels}, "w");
    const topi::ConvAttrs attrs{.pads_before = {1, 1}, .pads_after = {1, 1}, .groups = groups};
    all.push_back({name, te::CreatePrimFunc({grouped, weight}, {topi::Conv2d(grouped, weight, attrs)}, "main")});
    all.back().func.attrs["constants"] = std::vector<int64_t>{1};
  }
  const te::Tensor all_of = In({6, 1503}, "x");
  all.push_back({"long_sum", te::CreatePrimFunc({all_of}, {topi::ReduceSum(all_of, {}, false)}, "main")});
  const te::Tensor line = In({9001}, "x");
  all.push_back({"long_maximum", te::CreatePrimFunc({line}, {topi::ReduceMax(line, {0}, true)}, "main")});
  for (const int64_t lanes : {8, 16}) {  // the elements of a row are one vector's
    const te::Tensor row = In({1, lanes}, "x");
    all.push_back(
        {absl::StrCat("row_of_", lanes), te::CreatePrimFunc({row}, {topi::ReduceMax(row, {1}, true)}, "main")});
  }
  const te::Tensor across = In({3, 37, 70}, "x");
  all.push_back({"wide_transpose", te::CreatePrimFunc({across}, {topi::Transpose(across, {0, 2, 1})}, "main")});
  const te::Tensor even = In({2, 8192}, "x");
  all.push_back({"long_rows", te::CreatePrimFunc({even}, {topi::ReduceSum(even, {1}, false)}, "main")});
  constexpr DType kUInt8 = DType::UInt(8), kInt8 = DType::Int(8);
  all.push_back({"byte_dense", NarrowProduct(kUInt8, kInt8, {7, 24}, {24, 112}, true)});
  all.push_back({"long_byte_product", NarrowProduct(kUInt8, kInt8, {5, 1024}, {1024, 48}, false)});
  all.push_back({"signed_byte_product", NarrowProduct(kInt8, kInt8, {2, 5, 12}, {2, 12, 32}, false)});
  all.push_back({"byte_conv", ByteConv()});
  all.push_back({"rounded_product", RoundedProduct()});
  all.push_back({"byte_tiles_relu", ByteTilesRelu()});
  all.push_back({"byte_tiles_conv", ByteTilesConv()});
  return all;
}

}  // namespace hone::testing
