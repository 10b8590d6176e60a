// What TVM prints beyond loops and blocks: integers of two widths, launches, memory by address, calls by name. Each is
// read with the meaning it has there, or refused by name.
#include "absl/strings/str_cat.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ir/structural.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/text/reads_back.h"

namespace hone {
namespace {

PrimFunc Read(const std::string& text) {
  absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  EXPECT_TRUE(f.ok()) << f.status().ToString() << "\n" << text;
  if (!f.ok()) return PrimFunc{};
  EXPECT_EQ(ReadBackError(*f), "");
  const absl::Status verified = Verify(*f);
  EXPECT_TRUE(verified.ok()) << verified.ToString() << "\n" << ToText(*f);
  return *std::move(f);
}

struct SameProgram {
  const char* name;
  const char* tvm;   // as TVM prints it
  const char* ours;  // as hone prints it
};
class SameProgramTest : public testing::TestWithParam<SameProgram> {};
void PrintTo(const SameProgram& c, std::ostream* out) { *out << c.name; }

TEST_P(SameProgramTest, IsReadAsOurs) {
  const PrimFunc read = Read(GetParam().tvm);
  EXPECT_EQ("\n" + ToText(read), GetParam().ours);
}

constexpr SameProgram kPrograms[] = {
    {"AxisBoundToAWiderConstant", R"(
@T.prim_func
def main(A: T.Buffer((T.int64(1), 8), "float32"), B: T.Buffer((T.int64(1), 8), "float32")):
    for i in range(8):
        with T.block("B"):
            vo = T.axis.spatial(1, T.int64(0))
            vp = T.axis.spatial(T.int64(1), T.int64(0))
            vq = T.axis.spatial(T.int64(1), 0)
            vi = T.axis.spatial(8, i)
            T.reads(A[vo, vi])
            T.writes(B[vp, vi])
            B[vp, vi] = A[vo + vq, vi]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((T.int64(1), 8), "float32"), B: T.Buffer((T.int64(1), 8), "float32")):
    for i in range(8):
        with T.block("B"):
            vo = T.axis.spatial(1, 0)
            vp = T.axis.spatial(T.int64(1), T.int64(0))
            vq = T.axis.spatial(T.int64(1), T.int64(0))
            vi = T.axis.spatial(8, i)
            T.reads(A[vo, vi])
            T.writes(B[vp, vi])
            B[vp, vi] = A[T.Cast("int64", vo) + vq, vi]
)"},
    {"While", R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "int32")):
    with T.block("B"):
        T.reads(A[0:8], B[0])
        T.writes(B[0:1])
        B[T.int64(0)] = 0
        while B[0] < 8 and A[T.min(B[0], 7)] < T.float32(0.5): B[0] = B[0] + 1
        while T.bool(False):
            pass
)",
     R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "int32")):
    with T.block("B"):
        T.reads(A[0:8], B[0])
        T.writes(B[0])
        B[T.int64(0)] = 0
        while B[0] < 8 and A[T.min(B[0], 7)] < T.float32(0.5):
            B[0] = B[0] + 1
        while T.bool(False):
            pass
)"},
    {"NarrowTypes", R"(
@T.prim_func
def main(A: T.Buffer((8,), "e4m3_float8"), B: T.Buffer((8,), "int4"), C: T.Buffer((8,), "e5m2_float8")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = T.Cast("e5m2_float8", A[vi] * T.e4m3_float8(0.1) + T.Cast("float8_e4m3fn", B[vi] * T.int4(-3))) + T.max_value("float8_e5m2")
)",
     R"(
@T.prim_func
def main(A: T.Buffer((8,), "float8_e4m3fn"), B: T.Buffer((8,), "int4"), C: T.Buffer((8,), "float8_e5m2")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi], B[vi])
            T.writes(C[vi])
            C[vi] = T.Cast("float8_e5m2", A[vi] * T.float8_e4m3fn(0.1015625) + T.Cast("float8_e4m3fn", B[vi] * T.int4(-3))) + T.float8_e5m2(57344)
)"},
    {"AxisBoundToAWiderLoop", R"(
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(T.int64(8), 4):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(T.int64(4), j)
            B[vi, vj] = A[vi, vj]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(T.int64(8), 4):
        with T.block("B"):
            vi = T.axis.spatial(T.int64(8), i)
            vj = T.axis.spatial(T.int64(4), T.Cast("int64", j))
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj]
)"},
    {"BoundsOfTwoWidths", R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.serial(T.int64(2), 10):
        B[i] = A[i]
    for j in T.serial(4, dtype="int64"):
        with T.block("B"):
            vj = T.axis.spatial((T.int64(4), 8), j + T.int64(4))
            B[vj] = A[vj]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.serial(T.int64(2), T.int64(10)):
        B[i] = A[i]
    for j in range(T.int64(4)):
        with T.block("B"):
            vj = T.axis.spatial((T.int64(4), T.int64(8)), j + T.int64(4))
            T.reads(A[vj])
            T.writes(B[vj])
            B[vj] = A[vj]
)"},
    {"LaunchesInFlatScopes", R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    blockIdx_x = T.launch_thread("blockIdx.x", 4)
    A_shared = T.allocate([16], "float32", "shared.dyn")
    threadIdx_x = T.launch_thread("threadIdx.x", 16)
    A_shared_1 = T.Buffer((16,), data=A_shared, scope="shared.dyn")
    A_shared_1[threadIdx_x] = A[blockIdx_x * 16 + threadIdx_x]
    T.tvm_storage_sync("shared.dyn")
    B[blockIdx_x * 16 + threadIdx_x] = A_shared_1[15 - threadIdx_x]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for blockIdx_x in T.thread_binding(4, thread="blockIdx.x"):
        A_shared = T.allocate((16,), "float32", scope="shared")
        for threadIdx_x in T.thread_binding(16, thread="threadIdx.x"):
            A_shared[threadIdx_x] = A[blockIdx_x * 16 + threadIdx_x]
            T.tvm_storage_sync("shared")
            B[blockIdx_x * 16 + threadIdx_x] = A_shared[15 - threadIdx_x]
)"},
    {"MemoryOfWarps", R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    threadIdx_x = T.launch_thread("threadIdx.x", 64)
    A_warp = T.allocate([32], "float32", "warp")
    A_warp_1 = T.Buffer((32,), data=A_warp, scope="warp")
    A_warp_1[threadIdx_x % 32] = A[threadIdx_x]
    B[threadIdx_x] = A_warp_1[threadIdx_x % 32]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for threadIdx_x in T.thread_binding(64, thread="threadIdx.x"):
        A_warp = T.allocate((32,), "float32", scope="warp")
        A_warp[threadIdx_x % 32] = A[threadIdx_x]
        B[threadIdx_x] = A_warp[threadIdx_x % 32]
)"},
    {"LaunchesOfOneThreadTwice", R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"outputs": 2})
    threadIdx_x = T.env_thread("threadIdx.x")
    with T.launch_thread(threadIdx_x, 16):
        B[threadIdx_x] = A[threadIdx_x]
    with T.launch_thread(threadIdx_x, 8):
        C[threadIdx_x] = A[threadIdx_x]
    with T.launch_thread("threadIdx.x", 8) as tx:
        C[tx + 8] = A[tx]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"outputs": 2})
    for threadIdx_x in T.thread_binding(16, thread="threadIdx.x"):
        B[threadIdx_x] = A[threadIdx_x]
    for threadIdx_x in T.thread_binding(8, thread="threadIdx.x"):
        C[threadIdx_x] = A[threadIdx_x]
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        C[tx + 8] = A[tx]
)"},
    {"HintsArePassedOver", R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.attr(0, "pragma_unroll_explicit", 1)
    with T.attr(T.target({"kind": "llvm", "keys": ["cpu"]}), "target", 0):
        with T.attr("default", "device_id", 0):
            for i in range(16):
                B[i] = A[i]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = A[i]
)"},
    {"FlatViewsOfBuffers", R"(
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    A_1 = T.Buffer((32,), data=A.data)
    B_1 = T.decl_buffer((4, 8), data=B.data)
    t = T.decl_buffer((32,), "float32", scope="local")
    for i in range(32):
        t[i] = A_1[i]
    for i, j in T.grid(4, 8):
        B_1[i, j] = t[i * 8 + j]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    t = T.allocate((32,), "float32", scope="local")
    for i in range(32):
        t[i] = A[i // 8, i % 8]
    for i, j in T.grid(4, 8):
        B[i, j] = t[i * 8 + j]
)"},
    {"ViewsWithStridesAndOffsets", R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 8), "float32")):
    columns = T.decl_buffer((4, 8), data=A.data, strides=(1, 4), elem_offset=32)
    for i, j in T.grid(4, 8):
        B[i, j] = columns[i, j]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        B[i, j] = A[32 + i + j * 4]
)"},
    {"ContiguousStridesSayNothing", R"(
@T.prim_func
def main(a: T.handle, B: T.Buffer((4, 1, 8), "float32", strides=(8, 100, 1), elem_offset=0)):
    s0 = T.int32()
    s1 = T.int32()
    off = T.int32()
    A = T.match_buffer(a, (4, 8), "float32", strides=(s0, s1), elem_offset=off, offset_factor=1)
    for i, j in T.grid(4, 8):
        B[i, 0, j] = A[i, j] * T.Cast("float32", s0 + s1 + off)
)",
     R"(
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 1, 8), "float32")):
    for i, j in T.grid(4, 8):
        B[i, 0, j] = A[i, j] * T.Cast("float32", 8 + 1 + 0)
)"},
    {"StridesWithGapsAreLongerRows", R"(
@T.prim_func
def main(A: T.Buffer((2, 4, 6), "float32"), B: T.Buffer((2, 4, 6), "float32")):
    with T.block("root"):
        t = T.alloc_buffer((2, 4, 6), "float32", strides=(40, 8, 1))
        for i, j, k in T.grid(2, 4, 6):
            t[i, j, k] = A[i, j, k]
        for i, j, k in T.grid(2, 4, 6):
            B[i, j, k] = t[i, j, k]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((2, 4, 6), "float32"), B: T.Buffer((2, 4, 6), "float32")):
    t = T.alloc_buffer((2, 5, 8), "float32")
    for i, j, k in T.grid(2, 4, 6):
        t[i, j, k] = A[i, j, k]
    for i, j, k in T.grid(2, 4, 6):
        B[i, j, k] = t[i, j, k]
)"},
    {"ParametersWithStridesAreMemory", R"(
@T.prim_func
def main(a: T.handle, B: T.Buffer((4, 8), "float32", strides=(1, 5)), C: T.Buffer((4, 8), "float32", strides=(12, 1))):
    A = T.match_buffer(a, (4, 8), "float32", strides=(8, 1), elem_offset=16)
    for i, j in T.grid(4, 8):
        with T.block("x"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj], B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = A[vi, vj] + B[vi, vj]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((48,), "float32"), B: T.Buffer((39,), "float32"), C: T.Buffer((4, 12), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("x"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[16 + vi * 8 + vj], B[vi + vj * 5])
            T.writes(C[vi, vj])
            C[vi, vj] = A[16 + vi * 8 + vj] + B[vi + vj * 5]
)"},
    {"AsynchronousCopiesAreMadeAtOnce", R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    t = T.allocate((8,), "float32", scope="shared")
    with T.attr(0, "async_commit_queue_scope", 0):
        T.attr(0, "async_scope", 1)
        for i in range(8):
            t[i] = A[i]
    with T.attr(0, "async_wait_queue_scope", 0):
        T.attr(0, "async_wait_inflight_count", 0)
        for i in range(8):
            B[i] = t[i]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    t = T.allocate((8,), "float32", scope="shared")
    for i in range(8):
        t[i] = A[i]
    for i in range(8):
        B[i] = t[i]
)"},
    {"StridesOfAMatchedPart", R"(
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i in range(4):
        with T.block("tile"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi * 4:vi * 4 + 4, 0:16])
            T.writes(B[vi * 4:vi * 4 + 4, 0:16])
            A_1 = T.match_buffer(A[vi * 4:vi * 4 + 4, 0:16], (4, 16), "float32", strides=("s0", "s1"), elem_offset=vi * 64)
            for j, k in T.grid(4, 16):
                B[vi * 4 + j, k] = A_1[j, k]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i in range(4):
        with T.block("tile"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi * 4:vi * 4 + 4, 0:16])
            T.writes(B[vi * 4:vi * 4 + 4, 0:16])
            A_1 = T.match_buffer(A[vi * 4:vi * 4 + 4, 0:16], (4, 16), "float32")
            for j, k in T.grid(4, 16):
                B[vi * 4 + j, k] = A_1[j, k]
)"},
    {"ScalarsAreBuffersOfOneElement", R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), alpha: T.float32, n: T.int64):
    for i in range(n):
        B[i] = A[i] * alpha
)",
     R"(
@T.prim_func
def main(n: T.int64, alpha: T.Buffer((), "float32"), A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(n):
        B[i] = A[i] * alpha[()]
)"},
    {"CallsOfTheLibrary", R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = T.call_extern("float32", "expf", A[i]) + T.call_pure_extern("float32", "fabsf", A[i]) + T.call_intrin("float32", "tir.tanh", A[i])
)",
     R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = T.exp(A[i]) + T.abs(A[i]) + T.tanh(A[i])
)"},
};
INSTANTIATE_TEST_SUITE_P(Programs, SameProgramTest, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

// A view of another shape computes what the buffer's own indices compute.
TEST(TextLoweredTest, ViewsComputeTheSame) {
  const PrimFunc view = Read(R"(
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
    A_1 = T.Buffer((24,), data=A.data)
    A_2 = T.decl_buffer((6, 4), data=A_1, strides=(1, 6))
    for i, j in T.grid(6, 4):
        B[i, j] = A_2[i, j] + A_1[i * 4 + j]
)");
  std::vector<NdArray> args = {NdArray(kFloat32, {4, 6}), NdArray(kFloat32, {6, 4})};
  for (int i = 0; i < 24; ++i) args[0].Set(i, i);
  const absl::Status ran = Interpret(view, args);
  ASSERT_TRUE(ran.ok()) << ran.ToString();
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 4; ++j) EXPECT_EQ(args[1].Get(i * 4 + j), (i + j * 6) + (i * 4 + j)) << i << ", " << j;
  }
}

struct Refusal {
  const char* name;
  const char* body;  // of a function with A, B: (4, 8) float32
  const char* message;
};
class RefusalTest : public testing::TestWithParam<Refusal> {};
void PrintTo(const Refusal& c, std::ostream* out) { *out << c.name; }

TEST_P(RefusalTest, IsNamedWithItsPlace) {
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(
      absl::StrCat("@T.prim_func\ndef main(A: T.Buffer((4, 8), \"float32\"), B: T.Buffer((4, 8), \"float32\")):\n",
                   GetParam().body));
  ASSERT_FALSE(f.ok()) << ToText(*f);
  EXPECT_EQ(std::string(f.status().message()), GetParam().message);
}

constexpr Refusal kRefusals[] = {
    {"WhileOfANumber", "    while A[0, 0]:\n        B[0, 0] = A[0, 0]\n",
     "line 3, column 11: found a condition of type float32; expected bool, a comparison"},
    {"Break", "    while A[0, 0] < T.float32(1):\n        break\n",
     "line 4, column 9: `break` is not supported: only its condition ends a loop; put the reason in the condition of a "
     "`while`, or write an `if`"},
    {"Assert", "    assert True, \"of course\"\n",
     "line 3, column 5: `assert` is not supported: sizes are checked when a kernel is called; leave it out"},
    {"AttributeWithMeaning", "    with T.attr(0, \"extern_scope\", 0):\n        B[0, 0] = A[0, 0]\n",
     "line 3, column 20: the attribute \"extern_scope\" of a statement is not supported; expected a hint "
     "such as \"pragma_auto_unroll_max_step\", which is passed over"},
    {"AttributesWithMeaning", "    T.attr({\"pragma_scope\": \"seq\", \"extern_scope\": 1})\n",
     "line 3, column 12: the attribute \"extern_scope\" of a statement is not supported; expected a hint such as "
     "\"pragma_auto_unroll_max_step\", which is passed over"},
    {"NamesOfOneValue", "    x, y = A[0, 0], A[0, 1]\n",
     "line 3, column 5: found several names; expected one, except for sizes and T.axis.remap"},
    {"SizesOfOneType", "    n, m = T.int64()\n", "line 3, column 21: found the end of the line; expected `,`"},
    {"AttributeWithoutName", "    T.attr(0, 1, 2)\n",
     "line 3, column 20: found the end of the line; expected T.attr(what it is about, \"its name\", its value)"},
    {"ScopeOfNoFragment", "    t = T.alloc_buffer((4,), \"float16\", scope=\"m16n8k8.matrixA\")\n",
     "line 3, column 47: \"m16n8k8.matrixA\" is no scope; expected \"global\", \"local\", \"local.thread\", "
     "\"shared\" or \"warp\""},
    {"StridesBelowARow", "    t = T.alloc_buffer((4, 8), \"float32\", strides=[4, 1])\n",
     "line 3, column 52: found a stride 4; expected 8: buffers are row-major and contiguous"},
    {"StridesOfNothing", "    t = T.alloc_buffer((4, 8), \"float32\", strides=[0, 1])\n",
     "line 3, column 52: found a stride 0; expected 8: buffers are row-major and contiguous"},
    {"StridesCount", "    t = T.alloc_buffer((4, 8), \"float32\", strides=[1])\n",
     "line 3, column 51: found 1 strides for 2 dimensions; expected one for each, after the shape"},
    {"Offset", "    t = T.alloc_buffer((4, 8), \"float32\", elem_offset=-4)\n",
     "line 3, column 55: found an offset -4; expected 0: buffers are row-major and contiguous"},
    {"RegionOfStridedRows",
     "    t = T.alloc_buffer((4, 8), \"float32\", strides=[1, 4])\n    with T.block(\"x\"):\n        T.reads(t[0:4, "
     "0])\n",
     "line 5, column 17: a region of `t`, a view of `t` in another shape; expected one element, or a region of that "
     "buffer"},
    {"ViewOfAnotherType", "    t = T.Buffer((32,), \"int32\", data=A.data)\n",
     "line 3, column 9: a view of int32 elements of `A`, which holds float32; expected the same type"},
    {"ViewOfNothing", "    t = T.Buffer((32,), \"float32\")\n",
     "line 3, column 9: a T.Buffer of no memory; expected data=, such as T.Buffer((16,), data=A.data)"},
    {"RegionOfAView",
     "    t = T.Buffer((32,), data=A.data)\n    with T.block(\"x\"):\n        T.reads(t[0:4])\n        B[0, 0] = "
     "t[0]\n",
     "line 5, column 17: a region of `t`, a view of `A` in another shape; expected one element, or a region of that "
     "buffer"},
    {"ThreadThatIsNotLaunched", "    tx = T.env_thread(\"threadIdx.x\")\n    B[0, tx] = T.float32(0)\n",
     "line 4, column 10: thread `tx` is not launched here; expected T.launch_thread of it before"},
    {"LaunchOfNoThread", "    with T.launch_thread(B, 4):\n        B[0, 0] = A[0, 0]\n",
     "line 3, column 26: `B` is no thread; expected one such as \"threadIdx.x\", or a T.env_thread"},
    {"FloatOfAnotherFormat", "    t = T.alloc_buffer((4,), \"float8_e4m3fnuz\")\n",
     "line 3, column 30: \"float8_e4m3fnuz\" is not supported: below 16 bits there are \"float8_e4m3fn\" and "
     "\"float8_e5m2\"; convert such values to one"},
    {"Int2", "    t = T.alloc_buffer((4,), \"int2x8\")\n",
     "line 3, column 30: \"int2x8\" is not supported: integers have 4 bits or more; use \"int4\" or \"uint4\""},
};
INSTANTIATE_TEST_SUITE_P(Texts, RefusalTest, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TextLoweredTest, UnknownFunctionsAreCarriedToTheVerifier) {
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(
      "@T.prim_func\ndef main(A: T.Buffer((4,), \"float32\")):\n"
      "    A[0] = T.call_extern(\"float32\", \"my_kernel\", A[1], 3)\n"
      "    T.call_extern(\"int32\", \"notify\")\n");
  ASSERT_TRUE(f.ok()) << f.status().ToString();
  EXPECT_EQ(ReadBackError(*f), "");
  EXPECT_THAT(ToText(*f), testing::HasSubstr("    T.evaluate(T.call_extern(\"int32\", \"notify\"))\n"));
  EXPECT_EQ(Verify(*f).message(), "intrinsic: function main: no function is called my_kernel");
}

}  // namespace
}  // namespace hone
