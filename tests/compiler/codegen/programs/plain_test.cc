#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

TEST(Plain, ElementWise) {
  ExpectPlainAgrees(ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((13, 7), "float32"), B: T.Buffer((13, 7), "float32"), C: T.Buffer((13, 7), "float32")):
    for i, j in T.grid(13, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(A[vi, vj] * B[vi, vj] + T.float32(1), T.float32(0))
)"));
}

TEST(Plain, MatrixProduct) {
  ExpectPlainAgrees(ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((9, 11), "float32"), B: T.Buffer((11, 5), "float32"), C: T.Buffer((9, 5), "float32")):
    D = T.alloc_buffer((9, 5), "float32")
    for i, j, k in T.grid(9, 5, 11):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(9, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(D[vi, vj], T.float32(0))
)"));
}

}  // namespace
}  // namespace hone
