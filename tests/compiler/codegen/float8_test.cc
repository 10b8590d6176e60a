// Conversions to floats of 8 bits at every number where the result changes, and from all of their values.
#include <limits>

#include "absl/strings/str_replace.h"
#include "compiler/ir/float_format.h"
#include "compiler/ir/scalar_arith.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

// The middle between every two neighbours of the type and the float32 values beside it, both signs; what is beyond the
// largest; and what is no number.
std::vector<float> Edges(DType type) {
  std::vector<float> edges = {0, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max(), INFINITY,
                              NAN};
  const uint16_t largest = FloatToBits(FormatOf(type).largest, type);
  for (uint16_t bits = 0; bits <= largest; ++bits) {
    const double low = BitsToFloat(bits, type), below = BitsToFloat(static_cast<uint16_t>(bits - 1), type);
    const double high = bits < largest ? BitsToFloat(static_cast<uint16_t>(bits + 1), type) : low + (low - below);
    const float middle = static_cast<float>((low + high) / 2);
    edges.insert(edges.end(),
                 {static_cast<float>(low), std::nextafterf(middle, 0), middle, std::nextafterf(middle, INFINITY)});
  }
  const size_t positive = edges.size();
  for (size_t i = 0; i < positive; ++i) edges.push_back(-edges[i]);
  return edges;
}

class Float8 : public ::testing::TestWithParam<DType> {};

TEST_P(Float8, ConversionsRoundOnceAndBackIsExact) {
  const DType type = GetParam();
  const std::vector<float> edges = Edges(type);
  const int64_t n = static_cast<int64_t>(edges.size());
  const std::string text = absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "TYPE"), C: T.Buffer((N,), "float32")):
    T.func_attr({"outputs": 2})
    for i0 in T.parallel(2):
        for i1 in range((N + 31) // 32):
            for i2 in T.vectorized(16):
                with T.block("B"):
                    v = T.axis.spatial(N, i0 * ((N + 31) // 32 * 16) + i1 * 16 + i2)
                    T.where(i0 * ((N + 31) // 32 * 16) + i1 * 16 + i2 < N)
                    B[v] = T.Cast("TYPE", A[v])
    for i in range(N):
        with T.block("C"):
            v = T.axis.spatial(N, i)
            C[v] = T.Cast("float32", B[v])
)",
                                               {{"N", std::to_string(n)}, {"TYPE", ToText(type)}});
  const PrimFunc func = ParseOrDie(text);
  for (const char* name : {"cpu:native", "cpu:x86-64-v3"}) {
    std::vector<NdArray> args = {NdArray::Of<float>(kFloat32, {n}, edges), NdArray(type, {n}), NdArray(kFloat32, {n})};
    const absl::StatusOr<CompiledKernel> kernel = CompileKernel(ScheduledProgram{func, {}}, *ParseTarget(name));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const absl::Status ran = RunCompiled(*kernel, args);
    ASSERT_TRUE(ran.ok()) << ran;
    for (int64_t i = 0; i < n; ++i) {
      const double want = RoundToType(static_cast<double>(edges[static_cast<size_t>(i)]), type);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(args[1].Get(i)) && std::isnan(args[2].Get(i))) << edges[static_cast<size_t>(i)];
        continue;
      }
      EXPECT_EQ(args[1].As<uint8_t>()[i], FloatToBits(want, type)) << edges[static_cast<size_t>(i)] << ", " << name;
      EXPECT_EQ(args[2].Get(i), want) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Float8, ::testing::Values(DType::Float8E4M3(), DType::Float8E5M2()),
                         [](const auto& info) { return ToText(info.param); });

}  // namespace
}  // namespace hone
