// Masked accesses to arrays in registers whose lanes that are switched off lie outside of the array.
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

// The first row has no neighbour above it: its lane would be R[-1], and that of the last row's below R[3].
TEST(MaskedRegisters, LanesThatAreOffMayLieInFront) {
  ExpectCompiledAgrees(ParseOrDie(R"py(
@T.prim_func
def main(A: T.Buffer((9,), "float32"), C: T.Buffer((3,), "float32")):
    for j in range(3):
        R = T.allocate((3,), "float32", scope="local")
        R.vstore([T.Ramp(-1, 1, 3)], A.vload([T.Ramp(j - 3, 3, 3)], predicate=T.Ramp(1, -1, 3) <= T.Broadcast(0, 3)) + T.Broadcast(T.float32(1), 3), predicate=T.Ramp(1, -1, 3) <= T.Broadcast(0, 3))
        C[j] = R[0] * T.float32(2) + R[1]
)py"));
}

TEST(MaskedRegisters, LanesThatAreOffMayLieBehind) {
  ExpectCompiledAgrees(ParseOrDie(R"py(
@T.prim_func
def main(A: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
    R = T.allocate((6,), "float32", scope="local")
    for i in range(2):
        R.vstore([T.Ramp(i * 4, 1, 4)], A.vload([T.Ramp(i * 4, 1, 4)], predicate=T.Ramp(i * 4, 1, 4) < T.Broadcast(6, 4)), predicate=T.Ramp(i * 4, 1, 4) < T.Broadcast(6, 4))
    for i in range(2):
        C.vstore([T.Ramp(i * 4, 1, 4)], R.vload([T.Ramp(i * 4, 1, 4)], predicate=T.Ramp(i * 4, 1, 4) < T.Broadcast(6, 4)) * T.Broadcast(T.float32(3), 4), predicate=T.Ramp(i * 4, 1, 4) < T.Broadcast(6, 4))
)py"));
}

}  // namespace
}  // namespace hone
