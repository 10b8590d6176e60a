// What a device runs: the list of launches, their memory, and what is refused.
#include "compiler/lower/threads/device_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"
#include "tests/compiler/lower/check_passes.h"

namespace hone {
namespace {

// One launch hands to the next; between them one thread does what no loop over threads is around.
constexpr char kThreeKernels[] = R"(
@T.prim_func
def main(A: T.Buffer((2, 8), "float32"), B: T.Buffer((8,), "float32"), total: T.Buffer((1,), "float32")):
    T.func_attr({"outputs": 2})
    up = T.alloc_buffer((2, 8), "float32")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(2):
            with T.block("up"):
                vi, vj = T.axis.remap("SS", [i, t])
                up[vi, vj] = A[vi, vj] * T.float32(3)
    for i, j in T.grid(2, 8):
        with T.block("total"):
            vi, vj = T.axis.remap("RR", [i, j])
            with T.init():
                total[0] = T.float32(0)
            total[0] = total[0] + up[vi, vj]
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, b * 4 + t)
                B[vi] = up[1, 7 - vi]
)";

TEST(DeviceProgram, HasALaunchAKernelAndNamesTheirMemory) {
  const absl::StatusOr<DeviceProgram> program = LowerToDevice(ParseOrDie(kThreeKernels));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(ToText(*program),
            "main_0 over 1 x 1 x 1 blocks of 8 x 1 x 1 threads, 0 bytes shared: A, up\n"
            "main_1 over 1 x 1 x 1 blocks of 1 x 1 x 1 threads, 0 bytes shared: total, up\n"
            "main_2 over 2 x 1 x 1 blocks of 4 x 1 x 1 threads, 0 bytes shared: B, up\n");
  EXPECT_EQ(program->params, 3u);
  ASSERT_EQ(program->buffers.size(), 4u);
  EXPECT_EQ(program->buffers[3].bytes, 2 * 8 * 4);
  EXPECT_FALSE(program->kernels[0].arguments[0].written);
  EXPECT_TRUE(program->kernels[0].arguments[1].written);
}

TEST(DeviceProgram, SharedMemoryHasPlacesAndLoopsOverThreadsAreGone) {
  const absl::StatusOr<DeviceProgram> program = LowerToDevice(ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((4, 9), "float32"), B: T.Buffer((4, 9), "float32")):
    S = T.alloc_buffer((4, 9), "float32", scope="shared")
    R = T.alloc_buffer((4, 9), "float32", scope="local")
    half = T.alloc_buffer((4, 9), "float16", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            for v in T.vectorized(9):
                with T.block("S"):
                    vi, vj = T.axis.remap("SS", [t, v])
                    S[vi, vj] = A[vi, vj]
            for v in range(9):
                with T.block("half"):
                    vi, vj = T.axis.remap("SS", [t, v])
                    half[vi, vj] = T.Cast("float16", S[3 - vi, vj])
            for j in range(9):
                with T.block("R"):
                    vi, vj = T.axis.remap("SS", [t, j])
                    R[vi, vj] = T.Cast("float32", half[3 - vi, vj])
            for j in T.unroll(9):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [t, j])
                    B[vi, vj] = R[vi, vj]
)"));
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->kernels.size(), 1u);
  const DeviceKernel& kernel = program->kernels[0];
  ASSERT_EQ(kernel.shared.size(), 2u);
  for (const DeviceKernel::Shared& shared : kernel.shared) EXPECT_EQ(shared.offset % kSharedAlignment, 0);
  EXPECT_NE(kernel.shared[0].offset, kernel.shared[1].offset);
  EXPECT_GE(program->launches[0].shared_bytes, 4 * 9 * 4 + 4 * 9 * 2);
  EXPECT_TRUE(ContainsBarrier(kernel.body));
  ForEachStmt(kernel.body, [&](const Stmt& s) {
    const For* loop = s.As<For>();
    EXPECT_TRUE(loop == nullptr || loop->kind == ForKind::kSerial) << ToText(s);
    const Alloc* alloc = s.As<Alloc>();
    EXPECT_TRUE(alloc == nullptr || alloc->buffer.scope() != Scope::kShared) << ToText(s);
    return true;
  });
  ForEachExpr(kernel.body, [&](const Expr& e) {
    const Load* load = e.As<Load>();
    const bool of_registers = load != nullptr && load->buffer.scope() == Scope::kRegister;
    EXPECT_TRUE(!of_registers || ConstantValue(load->indices[0]).has_value()) << ToText(e);
    return true;
  });
}

// A copy of which each element has a condition of its own is not one of several elements at once.
TEST(DeviceProgram, SaysWhichVectorisedLoopsAreSerial) {
  const auto copied = [](const char* condition) {
    const absl::StatusOr<DeviceProgram> program = LowerToDevice(ParseOrDie(absl::StrCat(R"(
@T.prim_func
def main(A: T.Buffer((14,), "float32"), B: T.Buffer((16,), "float32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        S = T.allocate((16,), "float32", scope="shared")
        for v in T.vectorized(4):
            T.evaluate(T.async_copy(S[t * 4 + v], )",
                                                                                        condition, R"())
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        for v in T.vectorized(4):
            B[t * 4 + v] = S[t * 4 + v]
)")));
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? program->serial_loops : std::vector<std::string>();
  };
  EXPECT_THAT(copied("T.if_then_else(t < 3, A[t * 4 + v], T.float32(0))"), ::testing::IsEmpty());
  EXPECT_THAT(copied("T.if_then_else(t * 4 + v < 14, A[t * 4 + v], T.float32(0))"),
              ::testing::ElementsAre(::testing::HasSubstr("loop v is not vectorised: there is no vector of "
                                                          "T.evaluate(T.async_copy(S[")));
}

// A vector of the program is as wide as the target's.
TEST(DeviceProgram, CutsLoopsIntoVectorsOfTheTarget) {
  const PrimFunc scheduled = ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for t in T.thread_binding(1, thread="threadIdx.x"):
        for v in T.vectorized(256):
            B[v] = A[v]
)");
  for (const int bits : {128, 512}) {
    const absl::StatusOr<DeviceProgram> program = LowerToDevice(scheduled, {.vector_bits = bits});
    ASSERT_TRUE(program.ok()) << program.status();
    ForEachStmt(program->kernels[0].body, [&](const Stmt& s) {
      const Store* store = s.As<Store>();
      EXPECT_TRUE(store == nullptr || store->value.type().lanes == bits / 32) << ToText(s);
      return true;
    });
  }
}

struct Refusal {
  const char* name;
  const char* program;
  const char* says;
};
constexpr Refusal kRefusals[] = {
    {"LoopAroundLaunches", R"(
@T.prim_func
def main(A: T.Buffer((3, 8), "float32"), B: T.Buffer((3, 8), "float32")):
    for i in range(3):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, t])
                B[vi, vj] = A[vi, vj]
)",
     "`for i in range(3):` stands around loops over threads"},
    {"SymbolicSize", R"(
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8), "float32")
    B = T.match_buffer(b, (n, 8), "float32")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, t])
                B[vi, vj] = A[vi, vj]
)",
     "buffer A has a symbolic size; fix the sizes first"},
};
class DeviceProgramRefusals : public ::testing::TestWithParam<Refusal> {};
TEST_P(DeviceProgramRefusals, SayWhy) {
  const absl::StatusOr<DeviceProgram> program = LowerToDevice(ParseOrDie(GetParam().program));
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.status().message().find(GetParam().says), std::string::npos) << program.status();
}
INSTANTIATE_TEST_SUITE_P(All, DeviceProgramRefusals, ::testing::ValuesIn(kRefusals),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
