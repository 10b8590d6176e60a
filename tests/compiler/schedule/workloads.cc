#include "tests/compiler/schedule/workloads.h"

#include "compiler/te/te.h"

namespace hone::testing {

using te::Compute;
using te::CreatePrimFunc;
using te::Indices;
using te::Placeholder;
using te::ReduceAxis;
using te::Sum;
using te::Tensor;

namespace {
Expr Zero() { return FloatConst(0.0); }
}  // namespace

PrimFunc Matmul(int64_t m, int64_t n, int64_t k) {
  const Tensor a = Placeholder({m, k}, kFloat32, "A"), b = Placeholder({k, n}, kFloat32, "B");
  const ReduceAxis r(k, "k");
  const Tensor c =
      Compute({m, n}, [&](const Indices& i) { return Sum(a(i[0], r) * b(r, i[1]), {r}); }, "C", {.axes = {"i", "j"}});
  return CreatePrimFunc({a, b}, {c}, "main");
}

PrimFunc DenseRelu(int64_t m, int64_t n, int64_t k) {
  const Tensor a = Placeholder({m, k}, kFloat32, "A"), b = Placeholder({k, n}, kFloat32, "B"),
               bias = Placeholder({n}, kFloat32, "bias");
  const ReduceAxis r(k, "k");
  const Tensor c =
      Compute({m, n}, [&](const Indices& i) { return Sum(a(i[0], r) * b(r, i[1]), {r}); }, "C", {.axes = {"i", "j"}});
  const Tensor d = Compute({m, n}, [&](const Indices& i) { return Max(c(i[0], i[1]) + bias(i[1]), Zero()); }, "D",
                           {.axes = {"i", "j"}});
  return CreatePrimFunc({a, b, bias}, {d}, "main", {{"constants", std::vector<int64_t>{1, 2}}});
}

PrimFunc ConvBiasResidualRelu(const ConvShape& s) {
  const int64_t p = s.padding, oh = (s.height + 2 * p - s.kernel) / s.stride + 1,
                ow = (s.width + 2 * p - s.kernel) / s.stride + 1;
  const Tensor data = Placeholder({1, s.height, s.width, s.in}, kFloat32, "data");
  const Tensor weight = Placeholder({s.kernel, s.kernel, s.in, s.out}, kFloat32, "weight");
  const Tensor bias = Placeholder({s.out}, kFloat32, "bias");
  const Tensor residual = Placeholder({1, oh, ow, s.out}, kFloat32, "residual");
  const Tensor pad = Compute({1, s.height + 2 * p, s.width + 2 * p, s.in},
                             [&](const Indices& i) {
                               const Expr h = Expr(i[1]) - p, w = Expr(i[2]) - p;
                               const Expr inside = And(And(h >= 0, h < s.height), And(w >= 0, w < s.width));
                               return IfThenElse(inside, data(Expr(i[0]), h, w, Expr(i[3])), Zero());
                             },
                             "pad", {.axes = {"n", "h", "w", "c"}});
  const ReduceAxis kh(s.kernel, "kh"), kw(s.kernel, "kw"), ic(s.in, "ic");
  const Tensor conv =
      Compute({1, oh, ow, s.out},
              [&](const Indices& i) {
                return Sum(pad(Expr(i[0]), Expr(i[1]) * s.stride + kh, Expr(i[2]) * s.stride + kw, Expr(ic)) *
                               weight(kh, kw, ic, i[3]),
                           {kh, kw, ic});
              },
              "conv", {.axes = {"n", "oh", "ow", "oc"}});
  const Tensor out =
      Compute({1, oh, ow, s.out}, [&](const Indices& i) { return Max(conv(i) + bias(i[3]) + residual(i), Zero()); },
              "out", {.axes = {"n", "oh", "ow", "oc"}});
  return CreatePrimFunc({data, weight, bias, residual}, {out}, "main", {{"constants", std::vector<int64_t>{1, 2}}});
}

PrimFunc TwoElementwise(int64_t n, int64_t m) {
  const Tensor a = Placeholder({n, m}, kFloat32, "A");
  const Tensor b = Compute({n, m}, [&](const Indices& i) { return a(i) * FloatConst(2.0); }, "B", {.axes = {"i", "j"}});
  const Tensor c = Compute({n, m}, [&](const Indices& i) { return b(i) + FloatConst(1.0); }, "C", {.axes = {"i", "j"}});
  return CreatePrimFunc({a}, {c}, "main");
}

PrimFunc ThreeStages(int64_t n, int64_t m) {
  const Tensor a = Placeholder({n, m}, kFloat32, "A"), b = Placeholder({m, n}, kFloat32, "B");
  const Tensor up =
      Compute({n, m}, [&](const Indices& i) { return a(i) * FloatConst(2.0); }, "up", {.axes = {"i", "j"}});
  const Tensor t = Compute({m, n}, [&](const Indices& i) { return up(i[1], i[0]) + b(i); }, "t", {.axes = {"i", "j"}});
  const Tensor out = Compute({n, m}, [&](const Indices& i) { return t(i[1], i[0]) * t(i[1], i[0]) - up(i); }, "out",
                             {.axes = {"i", "j"}});
  return CreatePrimFunc({a, b}, {out}, "main");
}

PrimFunc Softmax(int64_t n, int64_t m) {
  const Tensor a = Placeholder({n, m}, kFloat32, "A");
  const ReduceAxis k(m, "k"), r(m, "r");
  const Tensor top = Compute({n}, [&](const Indices& i) { return te::Max(a(i[0], k), {k}); }, "max", {.axes = {"i"}});
  const Tensor e = Compute({n, m}, [&](const Indices& i) { return MakeCall("exp", {a(i) - top(i[0])}); }, "exp",
                           {.axes = {"i", "j"}});
  const Tensor sum = Compute({n}, [&](const Indices& i) { return Sum(e(i[0], r), {r}); }, "sum", {.axes = {"i"}});
  const Tensor out =
      Compute({n, m}, [&](const Indices& i) { return e(i) / sum(i[0]); }, "softmax", {.axes = {"i", "j"}});
  return CreatePrimFunc({a}, {out}, "main");
}

PrimFunc Blur(int64_t n, int64_t taps) {
  const Tensor a = Placeholder({n + taps - 1}, kFloat32, "A");
  const Tensor up =
      Compute({n + taps - 1}, [&](const Indices& i) { return a(i) * FloatConst(3.0); }, "up", {.axes = {"i"}});
  const ReduceAxis k(taps, "k");
  const Tensor blur =
      Compute({n}, [&](const Indices& i) { return Sum(up(Expr(i[0]) + k), {k}); }, "blur", {.axes = {"i"}});
  const Tensor out = Compute({n}, [&](const Indices& i) { return blur(i) - a(i); }, "out", {.axes = {"i"}});
  return CreatePrimFunc({a}, {out}, "main");
}

}  // namespace hone::testing
