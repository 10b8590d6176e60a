#include "tests/compiler/schedule/workload_table.h"

#include <iterator>
#include <utility>

#include "compiler/te/te.h"
#include "compiler/topi/attention.h"
#include "compiler/topi/conv.h"
#include "compiler/topi/dense.h"
#include "compiler/topi/elementwise.h"
#include "compiler/topi/index_ops.h"
#include "compiler/topi/norm.h"
#include "compiler/topi/pool.h"
#include "compiler/topi/reduce.h"
#include "compiler/topi/resize.h"
#include "compiler/topi/shape_ops.h"
#include "tests/compiler/schedule/hand_written.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

using te::Compute;
using te::CreatePrimFunc;
using te::Indices;
using te::Placeholder;
using te::ReduceAxis;
using te::Tensor;

using Sizes = std::vector<int64_t>;

Tensor In(const Sizes& shape, const char* name, DType dtype = kFloat32) { return Placeholder(shape, dtype, name); }

class Table {
 public:
  void Add(std::string name, PrimFunc func, bool exact = true) {
    all_.push_back({std::move(name), std::move(func), exact});
  }
  void Add(std::string name, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, bool exact = true,
           Attrs attrs = {}) {
    Add(std::move(name), CreatePrimFunc(inputs, outputs, "main", std::move(attrs)), exact);
  }
  std::vector<SmallWorkload> Take() { return std::move(all_); }

 private:
  std::vector<SmallWorkload> all_;
};

const Attrs kSecondIsConstant = {{"constants", std::vector<int64_t>{1}}};

void AddProducts(Table& table) {
  table.Add("matmul_prime", Matmul(7, 11, 13));
  table.Add("matmul_row", Matmul(1, 17, 5));
  table.Add("matmul_column", Matmul(19, 1, 3));
  table.Add("matmul_outer", Matmul(9, 5, 1));
  table.Add("matmul_unit", Matmul(1, 1, 1));
  table.Add("matmul_even", Matmul(8, 16, 4));
  table.Add("dense_relu", DenseRelu(3, 23, 7));
  table.Add("dense_relu_unit", DenseRelu(1, 13, 1));
  const Tensor x = In({5, 7}, "x"), w = In({7, 9}, "w"), wt = In({9, 7}, "wt");
  table.Add("dense", {x, w}, {topi::Dense(x, w)}, true, kSecondIsConstant);
  table.Add("dense_transposed", {x, wt}, {topi::Dense(x, wt, true)}, true, kSecondIsConstant);
  const Tensor a = In({3, 5, 4}, "a"), b = In({3, 4, 7}, "b"), shared = In({1, 4, 3}, "b");
  table.Add("batch_matmul", {a, b}, {topi::BatchMatmul(a, b)});
  table.Add("batch_matmul_broadcast", {a, shared}, {topi::BatchMatmul(a, shared)});
  const Tensor a8 = In({5, 11}, "a", DType::Int(8)), b8 = In({11, 3}, "b", DType::Int(8));
  table.Add("matmul_int8", {a8, b8}, {topi::Matmul(topi::Cast(a8, kInt32, "a32"), topi::Cast(b8, kInt32, "b32"))});
  const Tensor ad = In({3, 7}, "a", DType::Float(64)), bd = In({7, 5}, "b", DType::Float(64));
  table.Add("matmul_float64", {ad, bd}, {topi::Matmul(ad, bd)});
  const Tensor first = topi::Relu(topi::Dense(x, w, false, "first"), "relu"), v = In({9, 3}, "v");
  table.Add("mlp", {x, w, v}, {topi::Dense(first, v, false, "second")}, true,
            {{"constants", std::vector<int64_t>{1, 2}}});
  const Tensor p = In({3, 7, 5}, "p"), q = In({5, 7}, "q");
  table.Add("tensordot", {p, q}, {[&] {
              const ReduceAxis k(7, "k"), l(5, "l");
              return Compute(
                  {Expr(3)},
                  [&](const Indices& i) {
                    return te::Sum(p(i[0], k, l) * q(l, k), {k, l});
                  },
                  "dot");
            }()});
}

void AddConvolutions(Table& table) {
  table.Add("conv_block", ConvBiasResidualRelu({5, 7, 3, 5, 3, 1, 1}));
  table.Add("conv_block_stride", ConvBiasResidualRelu({7, 5, 2, 3, 3, 2, 1}));
  table.Add("conv_block_pointwise", ConvBiasResidualRelu({3, 5, 7, 11, 1, 1, 0}));
  table.Add("conv_block_one_pixel", ConvBiasResidualRelu({1, 1, 3, 5, 3, 1, 1}));
  const Tensor line = In({2, 11, 3}, "x"), line_w = In({3, 3, 5}, "w");
  table.Add("conv1d", {line, line_w}, {topi::Conv(line, line_w, {{2}, {1}, {1}, {2}})}, true, kSecondIsConstant);
  table.Add("conv1d_dilated", {line, line_w}, {topi::Conv(line, line_w, {{1}, {3}, {0}, {0}})}, true,
            kSecondIsConstant);
  const Tensor image = In({1, 5, 7, 6}, "x"), grouped = In({3, 3, 2, 9}, "w"), each = In({3, 3, 6}, "w");
  table.Add("conv2d_groups", {image, grouped}, {topi::Conv2d(image, grouped, {{}, {}, {1, 1}, {1, 1}, 3})}, true,
            kSecondIsConstant);
  table.Add("conv2d_uneven_pads", {image, grouped}, {topi::Conv2d(image, grouped, {{2, 1}, {}, {0, 1}, {2, 0}, 3})});
  table.Add("conv2d_depthwise", {image, each}, {topi::DepthwiseConv2d(image, each, {{1, 2}, {}, {1, 1}, {1, 1}})}, true,
            kSecondIsConstant);
  const Tensor volume = In({1, 3, 4, 5, 2}, "x"), cube = In({2, 3, 2, 2, 3}, "w");
  table.Add("conv3d", {volume, cube}, {topi::Conv(volume, cube, {{}, {}, {0, 1, 0}, {1, 1, 0}})});
  const Tensor small = In({1, 3, 4, 3}, "x"), back = In({3, 3, 3, 2}, "w");
  table.Add("conv2d_transposed", {small, back}, {topi::ConvTranspose(small, back, {{2, 2}, {}, {1, 1}, {1, 1}})});
  table.Add("blur", Blur(13, 3));
  table.Add("blur_one_tap", Blur(7, 1));
  const Tensor separable = topi::DepthwiseConv2d(image, each, {{}, {}, {1, 1}, {1, 1}}, "dw"), point = In({6, 5}, "p");
  table.Add("separable", {image, each, point}, {topi::Dense(topi::Relu(separable, "relu"), point, false, "pw")}, true,
            {{"constants", std::vector<int64_t>{1, 2}}});
}

void AddPools(Table& table) {
  const Tensor x = In({1, 7, 5, 3}, "x");
  table.Add("max_pool", {x}, {topi::MaxPool(x, {{3, 3}, {2, 2}, {}, {1, 1}, {1, 1}})});
  table.Add("max_pool_dilated", {x}, {topi::MaxPool(x, {{2, 2}, {1, 1}, {3, 2}})});
  table.Add("average_pool", {x}, {topi::AveragePool(x, {{3, 2}, {2, 1}, {}, {1, 0}, {1, 1}})}, false);
  table.Add("global_max_pool", {x}, {topi::GlobalMaxPool(x)});
  table.Add("global_average_pool", {x}, {topi::GlobalAveragePool(x)}, false);
}

void AddReductions(Table& table) {
  const Tensor x = In({5, 3, 7}, "x"), short_rows = In({11, 3}, "x"), one = In({1, 13, 1}, "x");
  table.Add("sum_last", {x}, {topi::ReduceSum(x, {2}, false)});
  table.Add("sum_middle_keep", {x}, {topi::ReduceSum(x, {1}, true)});
  table.Add("sum_all", {x}, {topi::ReduceSum(x, {}, false)});
  table.Add("sum_unit", {one}, {topi::ReduceSum(one, {0, 2}, false)});
  table.Add("max_first", {x}, {topi::ReduceMax(x, {0}, false)});
  table.Add("min_two", {x}, {topi::ReduceMin(x, {0, 2}, true)});
  table.Add("product", {short_rows}, {topi::ReduceProd(short_rows, {1}, false)});
  table.Add("l1", {x}, {topi::ReduceL1(x, {1, 2}, false)});
  table.Add("sum_square_then_add", {x}, {topi::AddScalar(topi::ReduceSumSquare(x, {2}, false), 3)});
  table.Add("mean", {x}, {topi::ReduceMean(x, {1}, false)}, false);
  table.Add("l2", {x}, {topi::ReduceL2(x, {2}, false)}, false);
  table.Add("log_sum_exp", {x}, {topi::ReduceLogSumExp(x, {2}, true)}, false);
  table.Add("argmax", {x}, {topi::ArgMax(x, 2, false)});
  table.Add("argmin_last", {x}, {topi::ArgMin(x, 0, true, true)});
  table.Add("cumsum", {short_rows}, {topi::CumSum(short_rows, 0)});
  const Tensor whole = In({3, 17}, "x", kInt32), flags = In({5, 7}, "x", kBool);
  table.Add("sum_int32", {whole}, {topi::ReduceSum(whole, {1}, false)});
  table.Add("max_int32", {whole}, {topi::ReduceMax(whole, {0}, false)});
  const ReduceAxis k(7, "k");
  table.Add("any", {flags},
            {Compute(
                {Expr(5)}, [&](const Indices& i) { return te::Or(flags(i[0], k), {k}); }, "any")});
  const Tensor sum = topi::ReduceSum(short_rows, {1}, false, "sum"),
               most = topi::ReduceMax(short_rows, {1}, false, "most");
  table.Add("two_reductions", {short_rows}, {sum, topi::Add(sum, most, "total")});
}

void AddNorms(Table& table) {
  table.Add("softmax_rows", Softmax(3, 11), false);
  table.Add("softmax_one_column", Softmax(5, 1), false);
  const Tensor x = In({2, 3, 6}, "x"), scale = In({6}, "scale"), bias = In({6}, "bias");
  table.Add("softmax_middle", {x}, {topi::Softmax(x, 1)}, false);
  table.Add("log_softmax", {x}, {topi::LogSoftmax(x, 2)}, false);
  table.Add("layer_norm", {x, scale, bias}, {topi::LayerNorm(x, scale, bias, 2, 1e-5)}, false);
  table.Add("rms_norm", {x, scale}, {topi::RmsNorm(x, scale, 2, 1e-5)}, false);
  table.Add("group_norm", {x, scale, bias}, {topi::GroupNorm(x, scale, bias, 3, 1e-5)}, false);
  table.Add("scale_shift", {x, scale, bias}, {topi::ScaleShift(x, scale, bias, 2)});
  const Tensor q = In({2, 3, 4}, "q"), key = In({2, 5, 4}, "k"), v = In({2, 5, 3}, "v");
  table.Add("attention", {q, key, v}, {topi::Attention(q, key, v)}, false);
}

void AddElementwise(Table& table) {
  table.Add("two_elementwise", TwoElementwise(7, 13));
  table.Add("two_elementwise_unit", TwoElementwise(1, 1));
  table.Add("three_stages", ThreeStages(5, 3));
  table.Add("three_stages_row", ThreeStages(1, 11));
  const Tensor a = In({3, 1, 5}, "a"), b = In({7, 1}, "b"), scalar = In({}, "s");
  table.Add("broadcast", {a, b}, {topi::Maximum(topi::Add(a, b), topi::Multiply(a, b))});
  table.Add("scalar", {a, scalar}, {topi::Subtract(topi::Multiply(a, scalar), scalar)});
  table.Add("scalar_alone", {scalar}, {topi::AddScalar(scalar, 1)});
  table.Add("gelu", {a}, {topi::Gelu(a)}, false);
  table.Add("silu_times", {a, b}, {topi::Multiply(topi::Silu(a), topi::Tanh(b))}, false);
  table.Add("where", {a, b}, {topi::Where(topi::Less(a, b), a, topi::Negative(b))});
  table.Add("two_outputs", {a, b}, {topi::Add(a, b, "plus"), topi::Subtract(a, b, "minus")});
  const Tensor whole = In({5, 7}, "a", kInt32), bytes = In({3, 5}, "a", DType::UInt(8));
  table.Add("integers", {whole},
            {topi::FloorDivide(topi::AddScalar(topi::Abs(whole), 7), topi::AddScalar(topi::Abs(whole), 2))});
  table.Add("bytes", {bytes}, {topi::Add(bytes, bytes)});
}

void AddMoves(Table& table) {
  const Tensor x = In({3, 4, 5}, "x"), image = In({1, 3, 2, 4}, "image");
  table.Add("transpose", {x}, {topi::Transpose(x, {2, 0, 1})});
  table.Add("reshape", {x}, {topi::Reshape(x, {6, 10})});
  const Tensor other = In({3, 2, 5}, "y");
  table.Add("concat", {x, other}, {topi::Concat({x, other}, 1)});
  table.Add("slice", {x}, {topi::StridedSlice(x, {3, 1}, {0, 5}, {-1, 2}, {1, 2})});
  table.Add("pad_edge", {x}, {topi::Pad(x, {1, 0, 2}, {0, 1, 3}, topi::PadMode::kEdge)});
  table.Add("pad_reflect_then_scale", {x},
            {topi::MultiplyScalar(topi::Pad(x, {1, 2, 0}, {1, 0, 2}, topi::PadMode::kReflect), 2)});
  table.Add("tile", {x}, {topi::Tile(x, {1, 2, 3})});
  table.Add("depth_to_space", {image}, {topi::DepthToSpace(image, 2)});
  topi::ResizeAttrs nearest;
  table.Add("resize_nearest", {image}, {topi::Resize(image, {5, 3}, nearest)});
  topi::ResizeAttrs linear;
  linear.mode = topi::ResizeMode::kLinear;
  table.Add("resize_linear", {image}, {topi::Resize(image, {5, 3}, linear)}, false);
  const Tensor rows = In({7}, "rows", kInt32);
  table.Add("gather", {x, rows}, {topi::Gather(x, rows, 0)}, true,
            {{"domains", std::vector<std::string>{"", "int[0,3)", ""}}});
  const Tensor source = In({5, 5}, "x");
  table.Add("triangle", {source}, {topi::Trilu(source, true)});
}

int64_t PickSize(Random& r) {
  static constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 13};
  return kSizes[r.Below(std::size(kSizes))];
}

}  // namespace

const std::vector<SmallWorkload>& SmallWorkloads() {
  static const std::vector<SmallWorkload>& all = *new std::vector<SmallWorkload>([] {
    Table table;
    AddProducts(table);
    AddConvolutions(table);
    AddPools(table);
    AddReductions(table);
    AddNorms(table);
    AddElementwise(table);
    AddMoves(table);
    return table.Take();
  }());
  return all;
}

SmallWorkload PickWorkload(Random& r) {
  const std::vector<SmallWorkload>&table = SmallWorkloads(), &by_hand = HandWrittenWorkloads();
  if (r.Below(5) == 0) return by_hand[r.Below(by_hand.size())];
  if (r.Below(3) != 0) return table[r.Below(table.size())];
  switch (r.Below(7)) {
    case 0: return {"matmul", Matmul(PickSize(r), PickSize(r), PickSize(r))};
    case 1: return {"dense_relu", DenseRelu(PickSize(r), PickSize(r), PickSize(r))};
    case 2: {
      const int64_t kernel = 1 + static_cast<int64_t>(r.Below(3)), padding = static_cast<int64_t>(r.Below(kernel));
      const int64_t size = kernel + static_cast<int64_t>(r.Below(5));
      const ConvShape shape = {size,
                               kernel + static_cast<int64_t>(r.Below(5)),
                               1 + static_cast<int64_t>(r.Below(3)),
                               1 + static_cast<int64_t>(r.Below(9)),
                               kernel,
                               1 + static_cast<int64_t>(r.Below(2)),
                               padding};
      return {"conv_block", ConvBiasResidualRelu(shape)};
    }
    case 3: return {"two_elementwise", TwoElementwise(PickSize(r), PickSize(r))};
    case 4: return {"softmax", Softmax(PickSize(r), PickSize(r)), false};
    case 5: return {"three_stages", ThreeStages(PickSize(r), PickSize(r))};
    default: return {"blur", Blur(PickSize(r), 1 + static_cast<int64_t>(r.Below(4)))};
  }
}

}  // namespace hone::testing
