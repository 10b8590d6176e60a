#include "tests/tuner/space/gpu/memory_bound_workloads.h"

#include "compiler/te/te.h"
#include "compiler/topi/elementwise.h"
#include "compiler/topi/norm.h"
#include "compiler/topi/reduce.h"
#include "compiler/topi/shape_ops.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

te::Tensor In(const std::vector<int64_t>& shape, const char* name, DType type = kFloat32) {
  return te::Placeholder(te::Shape(shape), type, name);
}

// Two operands, of which one is transposed.
SmallWorkload SumWithTransposed() {
  const te::Tensor x = In({70, 33}, "x"), y = In({33, 70}, "y");
  return {"sum_with_transposed",
          te::CreatePrimFunc({x, y}, {topi::Relu(topi::Add(topi::Transpose(x, {1, 0}), y))}, "main")};
}

SmallWorkload Mean(const char* name, const std::vector<int64_t>& shape, int64_t axis, DType type = kFloat32) {
  const te::Tensor x = In(shape, "x", type);
  return {name, te::CreatePrimFunc({x}, {topi::ReduceMean(x, {axis}, false)}, "main"), false};
}

SmallWorkload Normalised(const char* name, int64_t rows, int64_t columns, DType type = kFloat32) {
  const te::Tensor x = In({rows, columns}, "x", type), scale = In({columns}, "scale", type);
  const te::Tensor bias = In({columns}, "bias", type);
  return {name, te::CreatePrimFunc({x, scale, bias}, {topi::LayerNorm(x, scale, bias, 1, 1e-5)}, "main"), false};
}

SmallWorkload Chain(const char* name, int64_t rows, int64_t columns, DType type = kFloat32) {
  const te::Tensor x = In({rows, columns}, "x", type), y = In({rows, columns}, "y", type);
  return {name, te::CreatePrimFunc({x, y}, {topi::Relu(topi::Add(topi::Multiply(x, y), x))}, "main")};
}

}  // namespace

PrimFunc Transposed(const std::vector<int64_t>& shape, const std::vector<int64_t>& order, DType type) {
  const te::Tensor x = In(shape, "x", type);
  return te::CreatePrimFunc({x}, {topi::Transpose(x, order)}, "main");
}

std::vector<SmallWorkload> MemoryBoundWorkloads() {
  const DType half = DType::Float(16), bfloat = DType::BFloat16(), byte = DType::Int(8);
  const te::Tensor all = In({9, 4100}, "x"), planes = In({2, 6, 5, 12}, "x"), scale = In({12}, "scale");
  std::vector<SmallWorkload> list = {
      {"transpose", Transposed({33, 70}, {1, 0})},
      {"transpose_of_tiles", Transposed({64, 128}, {1, 0})},
      {"transpose_of_batches", Transposed({3, 33, 70}, {0, 2, 1})},
      {"transpose_reversed", Transposed({9, 5, 34}, {2, 1, 0})},
      {"transpose_to_channels_last", Transposed({2, 5, 6, 11}, {0, 2, 3, 1})},
      {"transpose_of_halves", Transposed({40, 66}, {1, 0}, half)},
      {"transpose_of_bytes", Transposed({130, 36}, {1, 0}, byte)},
      SumWithTransposed(),
      {"rows_of_7", Softmax(12, 7), false},
      {"rows_of_130", Softmax(6, 130), false},
      {"rows_of_1000", Softmax(4, 1000), false},
      {"rows_of_2052", Softmax(2, 2052), false},
      Normalised("normalised_halves", 3, 264, half),
      {"normalised_groups",
       te::CreatePrimFunc({planes, scale}, {topi::GroupNorm(planes, scale, scale, 3, 1e-5)}, "main"), false},
      Mean("mean_of_rows", {5, 1000}, 1),
      Mean("mean_of_rows_of_halves", {5, 1032}, 1, half),
      Mean("mean_of_columns", {1000, 37}, 0),
      Mean("mean_of_few_columns", {4096, 3}, 0),
      Mean("mean_of_columns_of_bfloats", {515, 66}, 0, bfloat),
      Mean("mean_between", {3, 130, 18}, 1),
      {"sum_of_all", te::CreatePrimFunc({all}, {topi::ReduceSum(all, {}, false)}, "main"), false},
      {"row_times_matrix", Matmul(1, 68, 1024)},
      Chain("chain", 13, 100),
      Chain("chain_of_tiles", 64, 256),
      Chain("chain_of_halves", 9, 72, half),
  };
  return list;
}

}  // namespace hone::testing
