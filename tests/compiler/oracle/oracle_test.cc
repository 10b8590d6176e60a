// The oracle accepts every right way to compute a workload and refuses wrong ones.
#include "compiler/oracle/oracle.h"

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/structural.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

PrimFunc Program(const std::string& text) {
  absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  EXPECT_TRUE(f.ok()) << f.status().ToString() << "\n" << text;
  return f.ok() ? *std::move(f) : PrimFunc{};
}

struct Verdict {
  double worst = 0;    // of error over bound, over all elements and outputs
  double refused = 0;  // the share of elements beyond the bound
};

// Runs `candidate` in its declared types and judges it by the oracle of `workload`.
Verdict Judge(const PrimFunc& workload, const PrimFunc& candidate, InputKind kind, NumericLevel level,
              uint64_t seed = 11) {
  absl::StatusOr<PrimFunc> oracle = MakeOracle(workload);
  EXPECT_TRUE(oracle.ok()) << oracle.status().ToString();
  if (!oracle.ok()) return {1e300, 1};
  const absl::Status verified = Verify(*oracle);
  EXPECT_TRUE(verified.ok()) << verified.ToString() << ToText(*oracle);
  std::vector<NdArray> args = RandomArguments(workload, seed, kind);
  const size_t inputs = workload.params.size() - static_cast<size_t>(workload.num_outputs());
  std::vector<NdArray> judged(args.begin(), args.begin() + static_cast<ptrdiff_t>(inputs));
  for (size_t i = inputs; i < args.size(); ++i) {
    judged.emplace_back(DType::Float(64), args[i].shape);
    judged.emplace_back(DType::Float(64), args[i].shape);
  }
  absl::Status status = Interpret(*oracle, judged);
  EXPECT_TRUE(status.ok()) << status.ToString() << ToText(*oracle);
  status = Interpret(candidate, args);
  EXPECT_TRUE(status.ok()) << status.ToString();
  Verdict verdict;
  int64_t elements = 0;
  for (size_t o = inputs; o < args.size(); ++o) {
    const NdArray& value = judged[inputs + 2 * (o - inputs)];
    const NdArray& scale = judged[inputs + 2 * (o - inputs) + 1];
    for (int64_t i = 0; i < value.NumElements(); ++i, ++elements) {
      const double error = ErrorOverBound(args[o].Get(i), value.Get(i), scale.Get(i), args[o].dtype, level);
      verdict.worst = std::max(verdict.worst, error);
      verdict.refused += error > 1;
    }
  }
  verdict.refused /= static_cast<double>(std::max<int64_t>(1, elements));
  return verdict;
}

std::string Matmul(int k, const std::string& type = "float32", int m = 8, int n = 8) {
  return absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((M, K), "TYPE"), B: T.Buffer((K, N), "TYPE"), C: T.Buffer((M, N), "TYPE")):
    for i, j, k in T.grid(M, N, K):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.TYPE(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
                             {{"M", absl::StrCat(m)}, {"N", absl::StrCat(n)}, {"K", absl::StrCat(k)}, {"TYPE", type}});
}

// Sixteen partial sums with fused multiply-add, added up at the end; the sum leaves out the last `dropped` terms.
std::string VectorMatmul(int k, int dropped) {
  return absl::StrReplaceAll(
      R"(
@T.prim_func
def main(A: T.Buffer((8, K), "float32"), B: T.Buffer((K, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    p = T.alloc_buffer((16,), "float32")
    for i, j in T.grid(8, 8):
        with T.block("row"):
            vi, vj = T.axis.remap("SS", [i, j])
            for l in range(16):
                p[l] = T.float32(0)
            for ko, l in T.grid(KO, 16):
                if ko * 16 + l < LIMIT:
                    p[l] = T.fma(A[vi, ko * 16 + l], B[ko * 16 + l, vj], p[l])
            C[vi, vj] = T.float32(0)
            for l in range(16):
                C[vi, vj] = C[vi, vj] + p[15 - l]
)",
      {{"KO", absl::StrCat((k + 15) / 16)}, {"K", absl::StrCat(k)}, {"LIMIT", absl::StrCat(k - dropped)}});
}

TEST(OracleTest, AcceptsSumsInAnyOrder) {
  for (const int k : {1, 7, 64, 1000, 4096}) {
    const PrimFunc workload = Program(Matmul(k));
    for (const InputKind kind : {InputKind::kUniform, InputKind::kInteger, InputKind::kPatterned}) {
      EXPECT_LT(Judge(workload, workload, kind, NumericLevel::kStrict).worst, 0.6) << k;
      EXPECT_LT(Judge(workload, Program(VectorMatmul(k, 0)), kind, NumericLevel::kStrict).worst, 0.6) << k;
    }
  }
}

TEST(OracleTest, RefusesADroppedTerm) {
  for (const int k : {16, 256, 1000, 2304, 4608}) {
    const PrimFunc workload = Program(Matmul(k));
    const PrimFunc wrong = Program(VectorMatmul(k, 1));
    EXPECT_GT(Judge(workload, wrong, InputKind::kUniform, NumericLevel::kStrict).refused, 0.6) << k;
    EXPECT_GT(Judge(workload, wrong, InputKind::kUniform, NumericLevel::kDefault).refused, 0.5) << k;
    EXPECT_GT(Judge(workload, wrong, InputKind::kInteger, NumericLevel::kDefault).refused, 0.5) << k;
  }
}

TEST(OracleTest, IntegersAreExact) {
  const PrimFunc workload = Program(Matmul(100, "int32"));
  EXPECT_EQ(Judge(workload, workload, InputKind::kUniform, NumericLevel::kDefault).worst, 0);
  const PrimFunc off_by_one = Program(absl::StrReplaceAll(Matmul(100, "int32"), {{"T.int32(0)", "T.int32(1)"}}));
  EXPECT_EQ(Judge(workload, off_by_one, InputKind::kUniform, NumericLevel::kDefault).refused, 1);
}

TEST(OracleTest, SixteenBitTypes) {
  for (const char* type : {"float16", "bfloat16"}) {
    const PrimFunc workload = Program(Matmul(64, type));
    EXPECT_LT(Judge(workload, workload, InputKind::kUniform, NumericLevel::kStrict).worst, 1) << type;
    const PrimFunc twice =
        Program(absl::StrReplaceAll(Matmul(64, type), {{"B[vk, vj]", absl::StrCat("B[vk, vj] * T.", type, "(2)")}}));
    EXPECT_GT(Judge(workload, twice, InputKind::kUniform, NumericLevel::kStrict).refused, 0.3) << type;
  }
}

// What is exact is rounded as the workload says: the sum of what was not rounded is beyond the bound of a float32 sum.
TEST(OracleTest, OperandsThatAreRounded) {
  const auto product = [](const char* a) { return absl::StrReplaceAll(Matmul(256), {{"A[vi, vk]", a}}); };
  const PrimFunc workload = Program(product(R"(T.Cast("float32", T.Cast("bfloat16", A[vi, vk])))"));
  const PrimFunc unrounded = Program(product("T.fma(A[vi, vk], T.float32(1), T.float32(0))"));
  EXPECT_LT(Judge(workload, workload, InputKind::kUniform, NumericLevel::kStrict).worst, 0.6);
  EXPECT_GT(Judge(workload, unrounded, InputKind::kUniform, NumericLevel::kBf16).refused, 0.5);
  // Rounded after a sum, whose own errors may put it on the other side.
  const PrimFunc sum = Program(product(R"(T.Cast("float32", T.Cast("bfloat16", A[vi, vk] + T.float32(0.3))))"));
  const PrimFunc other = Program(product(R"(T.Cast("float32", T.Cast("bfloat16", A[vi, vk] + T.float32(0.3000001))))"));
  EXPECT_LT(Judge(sum, other, InputKind::kUniform, NumericLevel::kBf16).worst, 1);
}

std::string Softmax(const std::string& exponent) {
  return absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((16, 100), "float32"), B: T.Buffer((16, 100), "float32")):
    m = T.alloc_buffer((16,), "float32")
    e = T.alloc_buffer((16, 100), "float32")
    s = T.alloc_buffer((16,), "float32")
    for i, k in T.grid(16, 100):
        with T.block("m"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                m[vi] = T.min_value("float32")
            m[vi] = T.max(m[vi], A[vi, vk])
    for i, k in T.grid(16, 100):
        with T.block("e"):
            vi, vk = T.axis.remap("SS", [i, k])
            e[vi, vk] = EXP
    for i, k in T.grid(16, 100):
        with T.block("s"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                s[vi] = T.float32(0)
            s[vi] = s[vi] + e[vi, vk]
    for i, k in T.grid(16, 100):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = e[vi, vk] / s[vi]
)",
                             {{"EXP", exponent}});
}

TEST(OracleTest, SoftmaxWithFewUlpExponentials) {
  const PrimFunc workload = Program(Softmax("T.exp(A[vi, vk] - m[vi])"));
  for (const InputKind kind : {InputKind::kUniform, InputKind::kPatterned}) {
    EXPECT_LT(Judge(workload, workload, kind, NumericLevel::kStrict).worst, 1);
  }
  // Four units in the last place too large.
  const PrimFunc loose = Program(Softmax("T.exp(A[vi, vk] - m[vi]) * T.float32(1.0000005)"));
  EXPECT_LT(Judge(workload, loose, InputKind::kUniform, NumericLevel::kDefault).worst, 1);
  // exp2 with a constant of 16 bits.
  const PrimFunc wrong = Program(Softmax("T.exp2((A[vi, vk] - m[vi]) * T.float32(1.4426))"));
  EXPECT_GT(Judge(workload, wrong, InputKind::kUniform, NumericLevel::kDefault).refused, 0.5);
  // The maximum forgotten: right for such inputs, and accepted.
  const PrimFunc no_max = Program(Softmax("T.exp(A[vi, vk])"));
  EXPECT_LT(Judge(workload, no_max, InputKind::kUniform, NumericLevel::kDefault).worst, 1);
}

struct ElementCase {
  const char* name;
  const char* workload;  // of x and y
  const char* right;     // another way to compute it
  const char* wrong;
  NumericLevel level = NumericLevel::kDefault;
  InputKind kind = InputKind::kUniform;
  double refused = 0.5;
};

void PrintTo(const ElementCase& c, std::ostream* out) { *out << c.name; }

class ElementTest : public ::testing::TestWithParam<ElementCase> {};

std::string Elementwise(const std::string& value, const std::string& out = "float32") {
  return absl::StrReplaceAll(
      R"(
@T.prim_func
def main(A: T.Buffer((500,), "float32"), B: T.Buffer((500,), "float32"), C: T.Buffer((500,), "OUT")):
    T.func_attr({"domains": ["", "positive", ""]})
    for i in range(500):
        with T.block("C"):
            vi = T.axis.spatial(500, i)
            C[vi] = VALUE
)",
      {{"VALUE", absl::StrReplaceAll(value, {{"x", "A[vi]"}, {"y", "B[vi]"}, {"EXP", "exp"}, {"MAX", "max"}})},
       {"OUT", out}});
}

TEST_P(ElementTest, TellsRightFromWrong) {
  const ElementCase& c = GetParam();
  const PrimFunc workload = Program(Elementwise(c.workload));
  EXPECT_LT(Judge(workload, workload, c.kind, c.level).worst, 1);
  EXPECT_LT(Judge(workload, Program(Elementwise(c.right)), c.kind, c.level).worst, 1);
  EXPECT_GT(Judge(workload, Program(Elementwise(c.wrong)), c.kind, c.level).refused, c.refused);
}

constexpr ElementCase kElementCases[] = {
    {"Copy", "x", "x * T.float32(1)", "x + T.float32(1e-6)", NumericLevel::kStrict},
    {"Relu", "T.MAX(x, T.float32(0))", "T.Select(x > T.float32(0), x, T.float32(0))", "T.abs(x)", NumericLevel::kStrict,
     InputKind::kUniform, 0.4},
    {"Divide", "x / y", "x * (T.float32(1) / y)", "x / (y + T.float32(0.00001))"},
    {"Sqrt", "T.sqrt(y)", "y * T.rsqrt(y)", "T.sqrt(y + T.float32(0.00001))"},
    {"Gelu", "x * T.float32(0.5) * (T.float32(1) + T.erf(x * T.float32(0.70710678)))",
     "T.float32(0.5) * (x + x * T.erf(x / T.float32(1.41421356)))",
     "x * T.float32(0.5) * (T.float32(1) + T.tanh(T.float32(0.79788456) * (x + T.float32(0.044715) * x * x * x)))"},
    {"Silu", "x * T.sigmoid(x)", "x / (T.float32(1) + T.EXP(T.float32(0) - x))",
     "x * T.sigmoid(x * T.float32(1.00001))"},
    {"Tanh", "T.tanh(x)",
     "(T.float32(1) - T.EXP(x * T.float32(-2))) / (T.float32(1) + T.EXP(x * T.float32(-2))) * T.float32(0) + T.tanh(x)",
     "x"},
    {"Power", "T.pow(y, T.float32(3))", "y * y * y", "T.pow(y, T.float32(3.0001))", NumericLevel::kDefault,
     InputKind::kUniform, 0.4},
    {"Log", "T.log(y)", "T.log2(y) * T.float32(0.6931471805599453)", "T.log(y + T.float32(0.00001))"},
    {"Asin", "T.asin((x * y + x) * T.float32(0.3))", "T.asin(x * (y + T.float32(1)) * T.float32(0.3))",
     "T.asin(x * (y + T.float32(1.0001)) * T.float32(0.3))"},
    {"Acos", "T.acos((x * y + x) * T.float32(0.3))", "T.acos(x * (y + T.float32(1)) * T.float32(0.3))",
     "T.acos(x * (y + T.float32(1.0001)) * T.float32(0.3))"},
    {"Atanh", "T.atanh((x * y + x) * T.float32(0.3))", "T.atanh(x * (y + T.float32(1)) * T.float32(0.3))",
     "T.atanh(x * (y + T.float32(1.0001)) * T.float32(0.3))"},
    {"Sinh", "T.sinh(x * y + x)", "T.sinh(x * (y + T.float32(1)))", "T.sinh(x * (y + T.float32(1.0001)))"},
    {"Cosh", "T.cosh(x * y + x)", "T.cosh(x * (y + T.float32(1)))", "T.cosh(x * (y + T.float32(1.0001)))"},
    {"Asinh", "T.asinh((x * y + x) * T.float32(50))", "T.asinh(x * (y + T.float32(1)) * T.float32(50))",
     "T.asinh(x * (y + T.float32(1.0001)) * T.float32(50))"},
    {"Acosh", "T.acosh(T.abs(x * y + x) + T.float32(1))", "T.acosh(T.abs(x * (y + T.float32(1))) + T.float32(1))",
     "T.acosh(T.abs(x * (y + T.float32(1.0001))) + T.float32(1))"},
    {"Atan2", "T.atan2(x * y + x, y)", "T.atan2(x * (y + T.float32(1)), y)", "T.atan2(x * (y + T.float32(1.0001)), y)"},
    {"Step", "T.floor(x * T.float32(8))", "T.floor(x * T.float32(16) * T.float32(0.5))", "T.ceil(x * T.float32(8))"},
    {"Cast", "T.Cast(\"float32\", T.Cast(\"int32\", x * T.float32(100)))",
     "T.Cast(\"float32\", T.Cast(\"int32\", (x + x) * T.float32(50)))",
     "T.Cast(\"float32\", T.Cast(\"int32\", x * T.float32(101)))", NumericLevel::kDefault, InputKind::kUniform, 0.3},
    {"Patterned", "x * y + x", "x * (y + T.float32(1))", "x * y", NumericLevel::kDefault, InputKind::kPatterned, 0.5},
    // What is surely infinite or no number must be so: not a number there, nor the one for the other.
    {"LogOfNegative", "T.log(x * y)", "T.log(y * x)", "T.log(T.abs(x * y))", NumericLevel::kDefault,
     InputKind::kUniform, 0.4},
    {"RootOfNegative", "T.sqrt(x * y) * (x + y)", "T.sqrt(y * x) * (y + x)",
     "T.Select(x > T.float32(0), T.sqrt(x * y) * (x + y), T.float32(0))", NumericLevel::kDefault, InputKind::kUniform,
     0.4},
    {"QuotientOfZero", "(x + y * T.float32(0.1)) / T.floor(y) * T.EXP(x)",
     "(x + y * T.float32(0.1)) * T.EXP(x) / T.floor(y)", "T.MAX(x, y) / T.float32(0) * T.float32(0)",
     NumericLevel::kDefault, InputKind::kUniform, 0.7},
    {"InfinityOfTheOtherSign", "(x + y) / T.float32(0)", "(y + x) / T.float32(0)",
     "(T.float32(0) - x - y) / T.float32(0)"},
    {"PowerOfNegative", "T.pow(x * T.float32(1.5), T.float32(0.5))", "T.pow(T.float32(1.5) * x, T.float32(0.5))",
     "T.pow(T.abs(x) * T.float32(1.5), T.float32(0.5))", NumericLevel::kDefault, InputKind::kUniform, 0.4},
    {"ExponentialThatRunsOver", "T.EXP(x * T.float32(5)) * (y + T.float32(1))",
     "T.EXP(T.float32(5) * x) * (T.float32(1) + y)",
     "T.EXP(T.min(x * T.float32(5), T.float32(80))) * (y + T.float32(1))", NumericLevel::kDefault, InputKind::kLarge,
     0.3},
    {"Cancellation", "(x + y) - y", "x + (y - y)", "T.float32(0) * y", NumericLevel::kDefault},
};
INSTANTIATE_TEST_SUITE_P(Functions, ElementTest, ::testing::ValuesIn(kElementCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OracleTest, AComparisonNearATieMayGoEitherWay) {
  const PrimFunc workload = Program(Elementwise("T.Select(x * y > x * y, T.float32(1), T.float32(0))"));
  const PrimFunc other = Program(Elementwise("T.float32(1)"));
  EXPECT_LT(Judge(workload, other, InputKind::kUniform, NumericLevel::kStrict).worst, 1.01);
  const PrimFunc apart = Program(Elementwise("T.Select(x * y > x * y + T.float32(0.01), T.float32(1), T.float32(0))"));
  EXPECT_EQ(Judge(apart, other, InputKind::kUniform, NumericLevel::kDefault).refused, 1);
}

TEST(OracleTest, ArgmaxIsExactWhereValuesAreApart) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((8, 50), "float32"), I: T.Buffer((8,), "int64")):
    best = T.alloc_buffer((8,), "float32")
    for i, k in T.grid(8, 50):
        with T.block("best"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                best[vi] = T.min_value("float32")
            best[vi] = T.max(best[vi], A[vi, vk])
    for i, k in T.grid(8, 50):
        with T.block("I"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = T.int64(1000)
            I[vi] = T.Select(A[vi, vk] == best[vi], T.min(I[vi], T.Cast("int64", vk)), I[vi])
)";
  const PrimFunc workload = Program(text);
  EXPECT_EQ(Judge(workload, workload, InputKind::kUniform, NumericLevel::kStrict).worst, 0);
  EXPECT_EQ(Judge(workload, workload, InputKind::kInteger, NumericLevel::kStrict).worst, 0);
  const PrimFunc last = Program(absl::StrReplaceAll(text, {{"T.min(I[vi]", "T.max(I[vi] % T.int64(1000)"}}));
  EXPECT_GT(Judge(workload, last, InputKind::kInteger, NumericLevel::kDefault).refused, 0.5);
}

TEST(OracleTest, LayerNormInOneOrTwoPasses) {
  const auto norm = [](const std::string& variance) {
    return absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((4, 300), "float32"), B: T.Buffer((4, 300), "float32")):
    s = T.alloc_buffer((4,), "float32")
    q = T.alloc_buffer((4,), "float32")
    for i, k in T.grid(4, 300):
        with T.block("s"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                s[vi] = T.float32(0)
            s[vi] = s[vi] + A[vi, vk]
    for i, k in T.grid(4, 300):
        with T.block("q"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                q[vi] = T.float32(0)
            q[vi] = q[vi] + (A[vi, vk] - s[vi] / T.float32(300)) * (A[vi, vk] - s[vi] / T.float32(300))
    for i, k in T.grid(4, 300):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = (A[vi, vk] - s[vi] / T.float32(300)) * T.rsqrt(VARIANCE)
)",
                               {{"VARIANCE", variance}});
  };
  const PrimFunc workload = Program(norm("q[vi] / T.float32(300) + T.float32(0.00001)"));
  EXPECT_LT(Judge(workload, workload, InputKind::kUniform, NumericLevel::kStrict).worst, 1);
  EXPECT_LT(Judge(workload, Program(norm("q[vi] * T.float32(0.0033333334) + T.float32(0.00001)")), InputKind::kUniform,
                  NumericLevel::kDefault)
                .worst,
            1);
  EXPECT_GT(Judge(workload, Program(norm("q[vi] / T.float32(299) + T.float32(0.00001)")), InputKind::kUniform,
                  NumericLevel::kDefault)
                .refused,
            0.9);
  EXPECT_GT(Judge(workload, Program(norm("q[vi] / T.float32(300) + T.float32(0.0001)")), InputKind::kUniform,
                  NumericLevel::kDefault)
                .refused,
            0.5);
}

TEST(OracleTest, PaddingStaysGuardedAndExact) {
  const PrimFunc workload = Program(R"(
@T.prim_func
def main(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
    p = T.alloc_buffer((12,), "float32")
    for i in range(12):
        with T.block("pad"):
            vi = T.axis.spatial(12, i)
            p[vi] = T.if_then_else(1 <= vi and vi < 11, A[vi - 1] * A[vi - 1], T.float32(0))
    for i, k in T.grid(10, 3):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + p[vi + vk]
)");
  EXPECT_LT(Judge(workload, workload, InputKind::kUniform, NumericLevel::kStrict).worst, 1);
}

TEST(OracleTest, InfinitiesOfMasksAreExact) {
  const PrimFunc workload = Program(Elementwise("T.EXP(T.Select(x > T.float32(0), x * y, T.float32(\"-inf\")))"));
  EXPECT_LT(Judge(workload, workload, InputKind::kUniform, NumericLevel::kStrict).worst, 1);
  const PrimFunc wrong = Program(Elementwise("T.EXP(T.Select(x > T.float32(0), x * y, T.float32(-10)))"));
  EXPECT_GT(Judge(workload, wrong, InputKind::kUniform, NumericLevel::kDefault).refused, 0.3);
}

TEST(OracleTest, BoundsOfSpecialValues) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto error = [](double value, double oracle, double scale) {
    return ErrorOverBound(value, oracle, scale, kFloat32, NumericLevel::kStrict);
  };
  EXPECT_EQ(error(inf, inf, 0), 0);
  EXPECT_EQ(error(nan, nan, 0), 0);
  EXPECT_EQ(error(nan, 1, 1), inf);
  EXPECT_EQ(error(1, nan, 1), inf);
  EXPECT_EQ(error(inf, 1e39, 1), 0);  // beyond float32
  EXPECT_EQ(error(inf, -1e39, 1), inf);
  EXPECT_EQ(error(inf, 1e38, 1), inf);
  EXPECT_EQ(error(0, -0.0, 0), 0);
  EXPECT_EQ(error(1, 1 + 1e-9, 0), inf);
  EXPECT_EQ(error(5, 7, inf), 0);  // an error without limit
  EXPECT_NEAR(error(1 + 0x1p-23, 1, 1), 1, 1e-6);
  EXPECT_TRUE(WithinBound(1 + 0x1p-21, 1, 1, kFloat32, NumericLevel::kDefault));
  EXPECT_FALSE(WithinBound(1 + 0x1p-20, 1, 1, kFloat32, NumericLevel::kDefault));
  EXPECT_EQ(ErrorOverBound(3, 2, 1, kInt32, NumericLevel::kDefault), 1);
  // A sum in a wider type may go over or not where its error reaches what float16 no longer holds, 65520.
  const auto half = [](double value, double oracle, double scale) {
    return ErrorOverBound(value, oracle, scale, DType::Float(16), NumericLevel::kStrict);
  };
  EXPECT_EQ(half(-inf, -65530, 64), 0);
  EXPECT_EQ(half(-inf, -65519.2, 64), inf);
  EXPECT_NEAR(half(-inf, -65519.2, 1024), 0.8, 1e-3);
  EXPECT_LT(half(-inf, -65519.2, 1000), 1);
  EXPECT_GT(half(inf, -65519.2, 1000), 1);
  EXPECT_GT(half(-inf, -60000, 1000), 1);
}

TEST(OracleTest, SaysWhatItCannotJudge) {
  const PrimFunc vectors = Program(R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0:16] = A[0:16]
)");
  EXPECT_EQ(MakeOracle(vectors).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace hone
