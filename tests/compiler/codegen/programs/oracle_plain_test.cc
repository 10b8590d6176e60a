// What a worker's verification rests on: the oracle of every kind of operator compiles plainly, gives what the
// interpreter gives, and accepts the compiled workload at the strict level.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/oracle/oracle.h"
#include "compiler/te/te.h"
#include "compiler/topi/attention.h"
#include "compiler/topi/conv.h"
#include "compiler/topi/dense.h"
#include "compiler/topi/elementwise.h"
#include "compiler/topi/norm.h"
#include "compiler/topi/pool.h"
#include "compiler/topi/reduce.h"
#include "compiler/verify/verify.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

using te::Placeholder;
using te::Tensor;

struct Workload {
  std::string name;
  PrimFunc func;
};

void PrintTo(const Workload& w, std::ostream* out) { *out << w.name; }

std::vector<Workload> Workloads() {
  std::vector<Workload> all;
  const auto add = [&](const std::string& name, const std::vector<Tensor>& inputs, const Tensor& output,
                       const Attrs& attrs = {}) {
    all.push_back({name, te::CreatePrimFunc(inputs, {output}, name, attrs)});
  };
  const Tensor x = Placeholder({1, 9, 9, 8}, kFloat32, "x"), w = Placeholder({3, 3, 8, 16}, kFloat32, "w");
  const Tensor bias = Placeholder({16}, kFloat32, "bias"), d = Placeholder({3, 3, 8}, kFloat32, "d");
  const topi::ConvAttrs same = {.pads_before = {1, 1}, .pads_after = {1, 1}};
  const Tensor conv = topi::Conv2d(x, w, same);
  const auto relu = [](const Tensor& t) {
    return topi::Unary(
        t, [](Expr e) { return Max(e, FloatConst(0)); }, "relu");
  };
  add("conv", {x, w}, conv);
  add("conv_bias_relu", {x, w, bias}, relu(topi::Add(conv, bias)));
  add("conv_of_constant", {x, w, bias}, relu(topi::Add(conv, bias)), {{"constants", std::vector<int64_t>{1}}});
  add("depthwise", {x, d}, topi::DepthwiseConv2d(x, d, same));
  add("conv_transpose", {x, w}, topi::ConvTranspose(x, w, {.strides = {2, 2}}));
  add("max_pool", {x},
      topi::MaxPool(x, {.kernel = {3, 3}, .strides = {2, 2}, .pads_before = {1, 1}, .pads_after = {1, 1}}));
  add("avg_pool", {x},
      topi::AveragePool(x, {.kernel = {3, 3}, .strides = {2, 2}, .pads_before = {1, 1}, .pads_after = {1, 1}}));
  add("global_pool", {x}, topi::GlobalAveragePool(x));
  const Tensor m = Placeholder({12, 64}, kFloat32, "m"), k = Placeholder({64, 24}, kFloat32, "k");
  const Tensor scale = Placeholder({64}, kFloat32, "scale"), shift = Placeholder({64}, kFloat32, "shift");
  const Tensor dense = topi::Dense(m, k);
  const auto gelu = [](const Tensor& t) {
    return topi::Unary(
        t,
        [](Expr e) {
          return e * FloatConst(0.5) * (FloatConst(1) + MakeCall("erf", {e * FloatConst(0.7071067811865476)}));
        },
        "gelu");
  };
  add("dense", {m, k}, dense);
  add("dense_gelu", {m, k}, gelu(dense));
  add("softmax", {m}, topi::Softmax(m, 1));
  add("log_softmax", {m}, topi::LogSoftmax(m, 1));
  add("layer_norm", {m, scale, shift}, topi::LayerNorm(m, scale, shift, 1, 1e-5));
  add("rms_norm", {m, scale}, topi::RmsNorm(m, scale, 1, 1e-5));
  add("arg_max", {m}, topi::ArgMax(m, 1, false));
  add("cum_sum", {m}, topi::CumSum(m, 1));
  add("l2", {m}, topi::ReduceL2(m, {1}, false));
  add("prod", {k}, topi::ReduceProd(k, {1}, false));
  add("logsumexp", {m}, topi::ReduceLogSumExp(m, {1}, false));
  add("tanh", {m}, topi::Tanh(m));
  const Tensor q = Placeholder({2, 8, 16}, kFloat32, "q"), kk = Placeholder({2, 8, 16}, kFloat32, "kk"),
               v = Placeholder({2, 8, 16}, kFloat32, "v");
  add("attention", {q, kk, v}, topi::Attention(q, kk, v));
  const Tensor a8 = Placeholder({8, 32}, DType::Int(8), "a8");
  add("int8_sum", {a8},
      topi::ReduceSum(topi::Unary(
                          a8, [](Expr e) { return MakeCast(kInt32, e); }, "wide"),
                      {1}, false));
  return all;
}

class OraclePlain : public ::testing::TestWithParam<Workload> {};

TEST_P(OraclePlain, AcceptsTheCompiledWorkload) {
  const PrimFunc& func = GetParam().func;
  const absl::StatusOr<PrimFunc> oracle = MakeOracle(func);
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  const absl::Status verified = Verify(*oracle);
  ASSERT_TRUE(verified.ok()) << verified << ToText(*oracle);
  const absl::StatusOr<CompiledKernel> kernel = CompilePlain(func, HostTarget());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const absl::StatusOr<CompiledKernel> oracle_kernel = CompilePlain(*oracle, HostTarget());
  ASSERT_TRUE(oracle_kernel.ok()) << oracle_kernel.status() << ToText(*oracle);
  const size_t outputs = static_cast<size_t>(func.num_outputs()), inputs = func.params.size() - outputs;
  for (const InputKind kind : {InputKind::kUniform, InputKind::kInteger, InputKind::kPatterned}) {
    std::vector<NdArray> args = RandomArguments(func, 3, kind);
    const std::vector<NdArray> given(args.begin(), args.begin() + static_cast<ptrdiff_t>(inputs));
    std::vector<NdArray> interpreted = given, compiled;
    // A value and a scale for each output, and another scale where levels have different ones.
    for (size_t o = inputs; o < oracle->params.size(); ++o) {
      const size_t output = o - inputs < 2 * outputs ? (o - inputs) / 2 : o - inputs - 2 * outputs;
      interpreted.emplace_back(DType::Float(64), args[inputs + output].shape);
    }
    compiled = interpreted;
    absl::Status status = Interpret(*oracle, interpreted);
    ASSERT_TRUE(status.ok()) << status;
    status = RunCompiled(*oracle_kernel, compiled, 1);
    ASSERT_TRUE(status.ok()) << status;
    status = RunCompiled(*kernel, args, 1);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t o = inputs + 2 * outputs; o < compiled.size(); ++o) {
      for (int64_t i = 0; i < compiled[o].NumElements(); ++i) {
        ASSERT_NEAR(compiled[o].Get(i), interpreted[o].Get(i), 1e-6 * (1e-9 + interpreted[o].Get(i))) << i;
      }
    }
    for (size_t o = inputs; o < args.size(); ++o) {
      const NdArray &value = compiled[inputs + 2 * (o - inputs)], &scale = compiled[inputs + 2 * (o - inputs) + 1];
      const NdArray &value2 = interpreted[inputs + 2 * (o - inputs)],
                    &scale2 = interpreted[inputs + 2 * (o - inputs) + 1];
      double worst = 0;
      int unlimited = 0;
      for (int64_t i = 0; i < value.NumElements(); ++i) {
        ASSERT_NEAR(value.Get(i), value2.Get(i), 1e-11 * (1 + std::abs(value2.Get(i)))) << i;
        if (std::isfinite(scale2.Get(i))) {
          ASSERT_NEAR(scale.Get(i), scale2.Get(i), 1e-6 * (1e-9 + scale2.Get(i))) << i;
        } else {
          ++unlimited;
        }
        worst = std::max(
            worst, ErrorOverBound(args[o].Get(i), value.Get(i), scale.Get(i), args[o].dtype, NumericLevel::kStrict));
      }
      EXPECT_LE(worst, 1) << "inputs of kind " << static_cast<int>(kind) << "\n" << ToText(*oracle);
      EXPECT_TRUE(kind != InputKind::kUniform || unlimited == 0) << ToText(*oracle);
    }
    // The elements that the worker checks the reference by.
    std::vector<std::vector<int64_t>> where;
    std::vector<int64_t> index;
    const NdArray& out = args[inputs];
    for (const int64_t extent : out.shape) index.push_back(extent / 2);
    where.push_back(index);
    const absl::StatusOr<std::vector<double>> elements =
        InterpretElements(func, given, 0, where, {.double_accumulation = true});
    ASSERT_TRUE(elements.ok()) << elements.status();
    int64_t flat = 0;
    for (size_t d = 0; d < index.size(); ++d) flat = flat * out.shape[d] + index[d];
    const double error = ErrorOverBound((*elements)[0], compiled[inputs].Get(flat), compiled[inputs + 1].Get(flat),
                                        out.dtype, NumericLevel::kStrict);
    EXPECT_LE(error, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, OraclePlain, ::testing::ValuesIn(Workloads()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
