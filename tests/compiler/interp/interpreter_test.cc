#include "compiler/interp/interpreter.h"

#include <cmath>
#include <cstdio>
#include <ctime>

#include "compiler/interp/random_input.h"
#include "compiler/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PrimFunc Program(const std::string& text) {
  absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  EXPECT_TRUE(f.ok()) << f.status().ToString();
  return f.ok() ? *std::move(f) : PrimFunc{};
}

NdArray Floats(std::vector<int64_t> shape, std::vector<float> values) {
  return NdArray::Of<float>(kFloat32, std::move(shape), values);
}
std::vector<double> Values(const NdArray& a) {
  std::vector<double> values;
  for (int64_t i = 0; i < a.NumElements(); ++i) values.push_back(a.Get(i));
  return values;
}

constexpr char kMatmul[] = R"(
@T.prim_func
def main(A: T.Buffer((64, 96), "float32"), B: T.Buffer((96, 80), "float32"), C: T.Buffer((64, 80), "float32")):
    for i, j, k in T.grid(64, 80, 96):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

// The same product with tiles, a register tile, a predicate and explicit vectors.
constexpr char kTiledMatmul[] = R"(
@T.prim_func
def main(A: T.Buffer((64, 96), "float32"), B: T.Buffer((96, 80), "float32"), C: T.Buffer((64, 80), "float32")):
    for io in T.parallel(11):
        with T.block("tile"):
            vo = T.axis.spatial(11, io)
            T.reads(A[0:64, 0:96], B[0:96, 0:80])
            T.writes(C[0:64, 0:80])
            acc = T.alloc_buffer((6, 80), "float32", scope="local")
            for ii in T.unroll(6):
                for jo in range(5):
                    acc[ii, T.Ramp(jo * 16, 1, 16)] = T.Broadcast(T.float32(0), 16)
            for k, ii in T.grid(96, 6):
                if vo * 6 + ii < 64:
                    for jo in range(5):
                        acc[ii, jo * 16:jo * 16 + 16] = acc[ii, jo * 16:jo * 16 + 16] + T.Broadcast(A[vo * 6 + ii, k], 16) * B[k, jo * 16:jo * 16 + 16]
            for ii, j in T.grid(6, 80):
                with T.block("store"):
                    vi = T.axis.spatial(64, vo * 6 + ii)
                    vj = T.axis.spatial(80, j)
                    T.where(vo * 6 + ii < 64)
                    C[vi, vj] = acc[vi - vo * 6, vj]
)";

TEST(InterpreterTest, ScheduledAndUnscheduledProductsAgree) {
  const PrimFunc plain = Program(kMatmul), tiled = Program(kTiledMatmul);
  std::vector<NdArray> args = RandomArguments(plain, 7, InputKind::kInteger);
  std::vector<NdArray> tiled_args = args;
  ASSERT_TRUE(Interpret(plain, args).ok());
  const absl::Status status = Interpret(tiled, tiled_args);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Values(args[2]), Values(tiled_args[2]));
  double expected = 0;
  for (int k = 0; k < 96; ++k) expected += args[0].Get(5 * 96 + k) * args[1].Get(k * 80 + 9);
  EXPECT_EQ(args[2].Get(5 * 80 + 9), expected);
}

TEST(InterpreterTest, ElementsEqualTheWholeRun) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16, 32), "float32")):
    m = T.alloc_buffer((16,), "float32")
    e = T.alloc_buffer((16, 32), "float32")
    s = T.alloc_buffer((16,), "float32")
    for i, k in T.grid(16, 32):
        with T.block("m"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                m[vi] = T.min_value("float32")
            m[vi] = T.max(m[vi], A[vi, vk])
    for i, k in T.grid(16, 32):
        with T.block("e"):
            vi, vk = T.axis.remap("SS", [i, k])
            e[vi, vk] = T.exp(A[vi, vk] - m[vi])
    for i, k in T.grid(16, 32):
        with T.block("s"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                s[vi] = T.float32(0)
            s[vi] = s[vi] + e[vi, vk]
    for i, k in T.grid(16, 32):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = e[vi, vk] / s[vi]
)");
  std::vector<NdArray> args = RandomArguments(f, 3, InputKind::kUniform);
  const std::vector<std::vector<int64_t>> where = {{0, 0}, {15, 31}, {7, 8}, {7, 9}};
  const absl::StatusOr<std::vector<double>> values = InterpretElements(f, std::span(args).first(1), 0, where);
  ASSERT_TRUE(values.ok()) << values.status().ToString();
  ASSERT_TRUE(Interpret(f, args).ok());
  for (size_t i = 0; i < where.size(); ++i) {
    EXPECT_EQ((*values)[i], args[1].Get(where[i][0] * 32 + where[i][1]));
    EXPECT_GT((*values)[i], 0);
  }
  EXPECT_FALSE(InterpretElements(f, std::span(args).first(1), 0, std::vector<std::vector<int64_t>>{{16, 0}}).ok());
  // A row of sums at least, of 32 terms each: together the two rows' are too many.
  EXPECT_EQ(InterpretElements(f, std::span(args).first(1), 0, where, {.max_steps = 100}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

// One and 999 terms of half an ulp of it less a little: a sum of floats takes none of them.
TEST(InterpreterTest, ElementsInDoubleKeepSmallTerms) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(A: T.Buffer((1000,), "float32"), B: T.Buffer((1,), "float32")):
    for i, k in T.grid(1, 1000):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vk]
)");
  NdArray a(kFloat32, {1000});
  a.Set(0, 1);
  for (int64_t i = 1; i < 1000; ++i) a.Set(i, 0x1p-25);
  const std::vector<std::vector<int64_t>> where = {{0}};
  EXPECT_EQ(*InterpretElements(f, std::span(&a, 1), 0, where), std::vector<double>{1});
  EXPECT_EQ(*InterpretElements(f, std::span(&a, 1), 0, where, {.double_accumulation = true}),
            std::vector<double>{1 + 999 * 0x1p-25});
}

// In double, arithmetic rounds nothing; a cast to a narrower type rounds, as the program says.
TEST(InterpreterTest, CastsRoundInDoubleToo) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(A: T.Buffer((1,), "float32"), B: T.Buffer((3,), "float32")):
    B[0] = T.Cast("float32", T.Cast("bfloat16", A[0]))
    B[1] = T.Cast("float32", T.Cast("bfloat16", A[0]) * T.Cast("bfloat16", A[0]))
    B[2] = T.Cast("float32", T.Cast("float64", A[0]))
)");
  const float a = 1 + 0x1p-7F + 0x1p-20F, rounded = 1 + 0x1p-7F;
  std::vector<NdArray> args = {Floats({1}, {a}), NdArray(kFloat32, {3})};
  ASSERT_TRUE(Interpret(f, args, {.double_accumulation = true}).ok());
  EXPECT_EQ(args[1].Get(0), rounded);
  EXPECT_EQ(args[1].Get(1), rounded * rounded) << "a product of bfloat16s is not rounded to one";
  EXPECT_EQ(args[1].Get(2), a);
}

TEST(InterpreterTest, GuardsProtectLoadsAndMasksGiveZero) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(A: T.Buffer((6,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    T.func_attr({"outputs": 2})
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.if_then_else(1 <= vi and vi < 7, A[vi - 1], T.float32(-1))
    C[0:8] = A.vload([T.Ramp(0, 1, 8)], predicate=T.Ramp(0, 1, 8) < T.Broadcast(6, 8)) + T.if_then_else(T.Ramp(0, 1, 8) < T.Broadcast(3, 8), A[T.Ramp(0, 2, 8)], T.Broadcast(T.float32(100), 8))
)");
  std::vector<NdArray> args = {Floats({6}, {1, 2, 3, 4, 5, 6}), NdArray(kFloat32, {8}), NdArray(kFloat32, {8})};
  const absl::Status status = Interpret(f, args);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(Values(args[1]), ElementsAre(-1, 1, 2, 3, 4, 5, 6, -1));
  EXPECT_THAT(Values(args[2]), ElementsAre(2, 5, 8, 104, 105, 106, 100, 100));
}

TEST(InterpreterTest, SaysWhereAnIndexLeavesItsBuffer) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("copy"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi, vi]
)");
  std::vector<NdArray> args = RandomArguments(f, 1, InputKind::kUniform);
  const absl::Status status = Interpret(f, args);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(status.message(), "interpreting main, block copy: index 1 of A is 3, outside of [0, 3)");
}

TEST(InterpreterTest, FindsReadsBeforeWritesAndForgottenOutputs) {
  const PrimFunc lost_init = Program(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((2,), "float32")):
    for i, k in T.grid(2, 2):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            B[vi] = B[vi] + A[vi * 2 + vk]
)");
  std::vector<NdArray> args = RandomArguments(lost_init, 1, InputKind::kUniform);
  EXPECT_THAT(std::string(Interpret(lost_init, args).message()),
              HasSubstr("block sum: B[0] is read before it is written"));
  EXPECT_TRUE(Interpret(lost_init, args, {.check_uninitialised = false}).ok());

  const PrimFunc dropped_tail = Program(R"(
@T.prim_func
def main(A: T.Buffer((5, 4), "float32"), B: T.Buffer((5, 4), "float32")):
    for i, j in T.grid(5, 3):
        B[i, j] = A[i, j]
)");
  args = RandomArguments(dropped_tail, 1, InputKind::kUniform);
  EXPECT_THAT(std::string(Interpret(dropped_tail, args).message()), HasSubstr("output B[0, 3] is never written"));
}

TEST(InterpreterTest, BlockVariablesStayInTheirDomains) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("copy"):
            vi = T.axis.spatial(7, i)
            B[vi] = A[vi]
)");
  std::vector<NdArray> args = RandomArguments(f, 1, InputKind::kUniform);
  EXPECT_EQ(Interpret(f, args).message(), "interpreting main, block copy: vi is 7, outside of its domain [0, 7)");
}

TEST(InterpreterTest, RoundsToTheDeclaredTypeAfterEveryOperation) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(A: T.Buffer((1,), "float16"), B: T.Buffer((1,), "bfloat16"), C: T.Buffer((1,), "float32"), x: T.Buffer((1,), "float16"), y: T.Buffer((1,), "bfloat16"), z: T.Buffer((1,), "float32")):
    T.func_attr({"outputs": 3})
    x[0] = A[0] + T.float16(1)
    y[0] = B[0] * B[0]
    z[0] = C[0] + T.float32(1) - C[0]
)");
  std::vector<NdArray> args = {NdArray(DType::Float(16), {1}), NdArray(DType::BFloat16(), {1}), Floats({1}, {0x1p24f}),
                               NdArray(DType::Float(16), {1}), NdArray(DType::BFloat16(), {1}), NdArray(kFloat32, {1})};
  args[0].Set(0, 2048);  // float16 counts in twos from 2048 on
  args[1].Set(0, 1.0078125);
  ASSERT_TRUE(Interpret(f, args).ok());
  EXPECT_EQ(args[3].Get(0), 2048);
  EXPECT_EQ(args[4].Get(0), 1.015625);
  EXPECT_EQ(args[5].Get(0), 0);
  std::vector<NdArray> again = args;
  ASSERT_TRUE(Interpret(f, again, {.double_accumulation = true}).ok());
  EXPECT_EQ(again[5].Get(0), 1);
}

TEST(InterpreterTest, IntegersWrapAndDivideAsDeclared) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(A: T.Buffer((1,), "int8"), B: T.Buffer((7,), "int32")):
    B[0] = T.Cast("int32", A[0] + T.int8(100))
    B[1] = T.Cast("int32", A[0]) // -7
    B[2] = T.Cast("int32", A[0]) % -7
    B[3] = T.Div(T.Cast("int32", A[0]), -7)
    B[4] = T.truncmod(T.Cast("int32", A[0]), -7)
    B[5] = T.Cast("int32", T.Cast("uint8", A[0] - T.int8(101)))
    B[6] = T.Cast("int32", T.float32(-2.75))
)");
  std::vector<NdArray> args = {NdArray(DType::Int(8), {1}), NdArray(kInt32, {7})};
  args[0].SetInt(0, 100);
  const absl::Status status = Interpret(f, args);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(Values(args[1]), ElementsAre(-56, -15, -5, -14, 2, 255, -2));
}

TEST(InterpreterTest, SymbolicSizesComeFromTheArguments) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(n: T.int32, A: T.Buffer((n, 2), "float32"), B: T.Buffer((n,), "float32")):
    t = T.alloc_buffer((n + 1,), "float32")
    for i in range(n):
        with T.block("t"):
            vi = T.axis.spatial(n, i)
            t[vi + 1] = A[vi, 0] + A[vi, 1]
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = t[vi + 1] * T.Cast("float32", n)
)");
  std::vector<NdArray> args = {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), NdArray(kFloat32, {3})};
  const absl::Status status = Interpret(f, args);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(Values(args[1]), ElementsAre(9, 21, 33));
  args[1] = NdArray(kFloat32, {4});
  EXPECT_EQ(Interpret(f, args).message(), "interpreting main: argument 1 (B) has size 4 in dimension 0, expected 3");
}

TEST(InterpreterTest, MatchedBuffersAreParts) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i in range(4):
        with T.block("row"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi, 0:4])
            T.writes(B[vi, 0:4])
            a = T.match_buffer(A[vi, 0:4], (4,), "float32")
            b = T.match_buffer(B[vi, 0:4], (1, 4), "float32")
            for j in range(4):
                b[0, j] = a[3 - j]
)");
  std::vector<NdArray> args = RandomArguments(f, 1, InputKind::kInteger);
  const absl::Status status = Interpret(f, args);
  ASSERT_TRUE(status.ok()) << status.ToString();
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) EXPECT_EQ(args[1].Get(i * 4 + j), args[0].Get(i * 4 + 3 - j));
  }
}

TEST(InterpreterTest, StopsAfterTooManySteps) {
  const PrimFunc f = Program(kMatmul);
  std::vector<NdArray> args = RandomArguments(f, 7, InputKind::kInteger);
  EXPECT_EQ(Interpret(f, args, {.max_steps = 1000}).code(), absl::StatusCode::kDeadlineExceeded);
}

constexpr char kHalvings[] = R"(
@T.prim_func
def main(A: T.Buffer((5,), "int32"), B: T.Buffer((5,), "int32")):
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial(5, i)
            left = T.alloc_buffer((1,), "int32")
            left[0] = A[vi]
            B[vi] = 0
            while left[0] > 1:
                left[0] = left[0] // 2
                B[vi] = B[vi] + 1
)";

TEST(InterpreterTest, AWhileRunsAsLongAsItsConditionHolds) {
  std::vector<NdArray> args = {NdArray::Of<int32_t>(kInt32, {5}, std::vector<int32_t>{0, 1, 2, 7, 1024}),
                               NdArray(kInt32, {5})};
  const absl::Status ran = Interpret(Program(kHalvings), args);
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_THAT(Values(args[1]), ElementsAre(0, 0, 1, 2, 10));
}

TEST(InterpreterTest, AWhileThatNothingEndsIsGivenUp) {
  std::string endless = kHalvings;
  const size_t at = endless.find("left[0] // 2");
  endless.replace(at, 12, "left[0] // 1");
  std::vector<NdArray> args = {NdArray::Of<int32_t>(kInt32, {5}, std::vector<int32_t>{0, 1, 1, 1, 2}),
                               NdArray(kInt32, {5})};
  const absl::Status status = Interpret(Program(endless), args, {.max_rounds = 1000});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(
      status.message(),
      "interpreting main, block B: a while was left by nothing in 1000 rounds; see that its body changes what its "
      "condition reads");
}

TEST(InterpreterTest, DividingByZeroIsAnError) {
  const PrimFunc f = Program(R"(
@T.prim_func
def main(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
    B[0] = 5 // A[0]
)");
  std::vector<NdArray> args = {NdArray(kInt32, {1}), NdArray(kInt32, {1})};
  EXPECT_EQ(Interpret(f, args).code(), absl::StatusCode::kInvalidArgument);
}

// The interpreter is the oracle of every test: it must not be what tests wait for.
TEST(InterpreterTest, RunsMillionsOfBlockInstancesASecond) {
  const PrimFunc f = Program(kMatmul);
  std::vector<NdArray> args = RandomArguments(f, 7, InputKind::kUniform);
  const std::clock_t start = std::clock();  // processor time: the machine may be busy
  ASSERT_TRUE(Interpret(f, args).ok());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("%.1f million block instances a second\n", 64 * 80 * 96 / seconds / 1e6);
  EXPECT_LT(seconds, 2);  // sanitizers are slow
}

}  // namespace
}  // namespace hone
