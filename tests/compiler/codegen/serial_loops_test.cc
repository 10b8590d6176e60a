// What a compiled kernel says of loops that its schedule vectorises and that have no vector form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

CompiledKernel CompiledLoopOver(const char* inner_extent) {
  const PrimFunc func = ParseOrDie(absl::StrCat(R"(
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        B[i] = T.float32(0)
        for j in range()",
                                                inner_extent, R"():
            B[i] = B[i] + A[j, i]
)"));
  absl::StatusOr<CompiledKernel> kernel = CompileKernel({func, {}}, HostTarget());
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? *std::move(kernel) : CompiledKernel();
}

TEST(SerialLoops, AreSaidWithTheCompiledKernel) {
  EXPECT_THAT(CompiledLoopOver("8").serial_loops, ::testing::IsEmpty());
  EXPECT_THAT(CompiledLoopOver("i + 1").serial_loops,
              ::testing::ElementsAre(
                  ::testing::HasSubstr("loop i is not vectorised: the bounds of loop j inside depend on it")));
}

}  // namespace
}  // namespace hone
