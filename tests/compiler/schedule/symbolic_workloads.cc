#include "tests/compiler/schedule/symbolic_workloads.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/te/te.h"

namespace hone::testing {
namespace {

using te::Compute;
using te::CreatePrimFunc;
using te::Indices;
using te::Placeholder;
using te::ReduceAxis;
using te::Shape;
using te::Tensor;

const Attrs kSecondIsConstant = {{"constants", std::vector<int64_t>{1}}};

Var Size(const char* name, int64_t most) { return Var(name, kInt32, {1, most}); }
Tensor In(const Shape& shape, const char* name) { return Placeholder(shape, kFloat32, name); }

Tensor Product(const Tensor& a, const Tensor& b, const char* name) {
  const ReduceAxis k(a.shape()[1], "k");
  return Compute(
      {a.shape()[0], b.shape()[1]}, [&](const Indices& i) { return te::Sum(a(i[0], k) * b(k, i[1]), {k}); }, name);
}

PrimFunc DenseLayer() {
  const Var n = Size("n", 37);
  const Tensor x = In({n, 7}, "x"), w = In({7, 9}, "w"), bias = In({9}, "bias");
  const Tensor product = Product(x, w, "product");
  const Tensor sum = Compute(
      product.shape(), [&](const Indices& i) { return product(i) + bias(i[1]); }, "sum");
  const Tensor relu = Compute(
      sum.shape(), [&](const Indices& i) { return Max(sum(i), FloatConst(0)); }, "relu");
  return CreatePrimFunc({x, w, bias}, {relu}, "main", kSecondIsConstant);
}

// Rows of x through exp(x - max) / sum.
Tensor Softmax(const Tensor& x) {
  const ReduceAxis k(x.shape()[1], "k"), l(x.shape()[1], "l");
  const Tensor most = Compute(
      {x.shape()[0]}, [&](const Indices& i) { return te::Max(x(i[0], k), {k}); }, "most");
  const Tensor e = Compute(
      x.shape(), [&](const Indices& i) { return MakeCall("exp", {x(i) - most(i[0])}); }, "e");
  const Tensor sum = Compute(
      {x.shape()[0]}, [&](const Indices& i) { return te::Sum(e(i[0], l), {l}); }, "total");
  return Compute(
      x.shape(), [&](const Indices& i) { return e(i) / sum(i[0]); }, "share");
}

PrimFunc Scores() {
  const Var n = Size("n", 21);
  const Tensor q = In({n, 4}, "q"), key = In({n, 4}, "key");
  const ReduceAxis k(4, "k");
  const Tensor scores = Compute(
      {n, n}, [&](const Indices& i) { return te::Sum(q(i[0], k) * key(i[1], k), {k}); }, "scores");
  return CreatePrimFunc({q, key}, {Softmax(scores)}, "main");
}

PrimFunc LayerNorm() {
  const Var n = Size("n", 29);
  const Tensor x = In({n, 11}, "x"), scale = In({11}, "scale");
  const ReduceAxis k(11, "k"), l(11, "l");
  const Tensor mean = Compute(
      {n}, [&](const Indices& i) { return te::Sum(x(i[0], k) * FloatConst(1.0 / 11), {k}); }, "mean");
  const Tensor centred = Compute(
      x.shape(), [&](const Indices& i) { return x(i) - mean(i[0]); }, "centred");
  const Tensor variance = Compute(
      {n}, [&](const Indices& i) { return te::Sum(centred(i[0], l) * centred(i[0], l) * FloatConst(1.0 / 11), {l}); },
      "variance");
  const Tensor y = Compute(
      x.shape(),
      [&](const Indices& i) {
        return centred(i) / MakeCall("sqrt", {variance(i[0]) + FloatConst(1e-3)}) * scale(i[1]);
      },
      "y");
  return CreatePrimFunc({x, scale}, {y}, "main");
}

PrimFunc Chain() {
  const Var n = Size("n", 23), m = Size("m", 19);
  const Tensor x = In({n, m}, "x"), y = In({n, m}, "y");
  const Tensor a = Compute(
      x.shape(), [&](const Indices& i) { return x(i) * FloatConst(2) + y(i); }, "a");
  const Tensor b = Compute(
      x.shape(), [&](const Indices& i) { return Max(a(i), x(i)); }, "b");
  const Tensor c = Compute(
      x.shape(), [&](const Indices& i) { return b(i) + a(i); }, "c");
  return CreatePrimFunc({x, y}, {c}, "main");
}

PrimFunc ColumnSum() {
  const Var n = Size("n", 41);
  const Tensor x = In({n, 6}, "x");
  const ReduceAxis k(n, "k");
  const Tensor doubled = Compute(
      x.shape(), [&](const Indices& i) { return x(i) * FloatConst(2); }, "doubled");
  return CreatePrimFunc({x},
                        {Compute(
                            {Expr(6)}, [&](const Indices& i) { return te::Sum(doubled(k, i[0]), {k}); }, "sum")},
                        "main");
}

PrimFunc Convolution() {
  const Var n = Size("n", 33);
  const Tensor x = In({n, 3}, "x"), w = In({3, 3, 5}, "w");
  const Tensor padded = Compute(
      {Expr(n) + 2, 3},
      [&](const Indices& i) {
        const Expr inside = And(Expr(i[0]) >= 1, Expr(i[0]) < Expr(n) + 1);
        return IfThenElse(inside, x(Expr(i[0]) - 1, i[1]), FloatConst(0));
      },
      "padded");
  const ReduceAxis k(3, "k"), c(3, "c");
  const Tensor conv = Compute(
      {n, 5},
      [&](const Indices& i) {
        return te::Sum(padded(Expr(i[0]) + k, c) * w(k, c, i[1]), {k, c});
      },
      "conv");
  const Tensor relu = Compute(
      conv.shape(), [&](const Indices& i) { return Max(conv(i), FloatConst(0)); }, "relu");
  return CreatePrimFunc({x, w}, {relu}, "main", kSecondIsConstant);
}

PrimFunc Pool() {
  const Var n = Size("n", 17);
  const Tensor x = In({Expr(n) * 2 + 1, 3}, "x");
  const ReduceAxis k(3, "k");
  const Tensor pool = Compute(
      {n, 3}, [&](const Indices& i) { return te::Max(x(Expr(i[0]) * 2 + k, i[1]), {k}); }, "pool");
  return CreatePrimFunc({x}, {pool}, "main");
}

// The rows are a multiple of 8, which shows in the shape.
PrimFunc Multiples() {
  const Var n = Size("n", 7);
  const Tensor x = In({Expr(n) * 8, 5}, "x"), w = In({5, 3}, "w");
  return CreatePrimFunc({x, w}, {Product(x, w, "product")}, "main", kSecondIsConstant);
}

std::vector<SymbolicWorkload> Make() {
  const Var n = Size("n", 37), m = Size("m", 19);
  const Tensor a = In({n, 7}, "a"), b = In({7, 9}, "b"), c = In({n, m}, "c"), d = In({m, 5}, "d");
  return {
      {"product", CreatePrimFunc({a, b}, {Product(a, b, "product")}, "main")},
      {"product_of_two_sizes", CreatePrimFunc({c, d}, {Product(c, d, "product")}, "main")},
      {"dense_layer", DenseLayer()},
      {"softmax", CreatePrimFunc({c}, {Softmax(c)}, "main"), false},
      {"scores", Scores(), false},
      {"layer_norm", LayerNorm(), false},
      {"chain", Chain()},
      {"column_sum", ColumnSum()},
      {"convolution", Convolution()},
      {"pool", Pool()},
      {"multiples", Multiples()},
  };
}

}  // namespace

const std::vector<SymbolicWorkload>& SymbolicWorkloads() {
  static const auto& all = *new std::vector<SymbolicWorkload>(Make());
  return all;
}

std::vector<std::vector<int64_t>> SomeSizes(const PrimFunc& func, int more, Random& random) {
  std::vector<std::vector<int64_t>> found(static_cast<size_t>(2 + more));
  for (const Var& dim : func.dims) {
    const SizeRange range = *dim.range();
    found[0].push_back(range.min);
    found[1].push_back(range.max);
    for (size_t i = 2; i < found.size(); ++i)
      found[i].push_back(range.min + static_cast<int64_t>(random.Below(range.max - range.min + 1)));
  }
  return found;
}

SmallWorkload AtSizes(const SymbolicWorkload& workload, const std::vector<int64_t>& sizes) {
  return {absl::StrCat(workload.name, " at ", absl::StrJoin(sizes, " x ")), WithSizes(workload.func, sizes),
          workload.exact};
}

}  // namespace hone::testing
