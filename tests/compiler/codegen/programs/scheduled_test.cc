// Scheduled programs: loops of all kinds, register tiles, tails, masks, scratch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

TEST(Scheduled, ParallelVectorized) {
  ExpectCompiledAgrees(ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((6, 32), "float32"), C: T.Buffer((6, 32), "float32")):
    for i in T.parallel(6):
        for j0 in range(2):
            for j1 in T.vectorized(16):
                with T.block("C"):
                    vi = T.axis.spatial(6, i)
                    vj = T.axis.spatial(32, j0 * 16 + j1)
                    C[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)
)"));
}

TEST(Scheduled, VectorTailIsMasked) {
  for (const int n : {1, 15, 16, 17, 37}) {
    const std::string size = std::to_string(n);
    const std::string pieces = std::to_string((n + 15) / 16);
    ExpectCompiledAgrees(ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((5, )" + size + R"(), "float32"), C: T.Buffer((5, )" +
                                    size + R"(), "float32")):
    for i in T.parallel(5):
        for j0 in range()" + pieces +
                                    R"():
            for j1 in T.vectorized(16):
                with T.block("C"):
                    vi = T.axis.spatial(5, i)
                    vj = T.axis.spatial()" +
                                    size + R"(, j0 * 16 + j1)
                    T.where(j0 * 16 + j1 < )" +
                                    size + R"()
                    C[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)
)"));
  }
}

// The register tile of a matrix product, with rows and columns that do not divide.
PrimFunc TiledProduct(int m, int n, int k, int mr, int nv) {
  const auto s = [](int v) { return std::to_string(v); };
  const int mt = (m + mr - 1) / mr, nr = nv * 16, nt = (n + nr - 1) / nr;
  const std::string where =
      "T.where(i0 * " + s(mr) + " + i1 < " + s(m) + " and j0 * " + s(nr) + " + j1 * 16 + j2 < " + s(n) + ")";
  const std::string rows = s(mr), vi = "vi = T.axis.spatial(" + s(m) + ", i0 * " + s(mr) + " + i1)",
                    vj = "vj = T.axis.spatial(" + s(n) + ", j0 * " + s(nr) + " + j1 * 16 + j2)";
  return ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer(()" +
                    s(m) + ", " + s(k) + R"(), "float32"), B: T.Buffer(()" + s(k) + ", " + s(n) +
                    R"(), "float32"), C: T.Buffer(()" + s(m) + ", " + s(n) + R"(), "float32")):
    D = T.alloc_buffer(()" +
                    s(m) + ", " + s(n) + R"(), "float32", scope="local")
    for i0 in T.parallel()" +
                    s(mt) + R"():
        for j0 in range()" +
                    s(nt) + R"():
            for i1 in T.unroll()" +
                    rows + R"():
                for j1 in T.unroll()" +
                    s(nv) + R"():
                    for j2 in T.vectorized(16):
                        with T.block("D_init"):
                            )" +
                    vi + R"(
                            )" +
                    vj + R"(
                            )" +
                    where + R"(
                            D[vi, vj] = T.float32(0)
            for k0 in range()" +
                    s(k) + R"():
                for i1 in T.unroll()" +
                    rows + R"():
                    for j1 in T.unroll()" +
                    s(nv) + R"():
                        for j2 in T.vectorized(16):
                            with T.block("D_update"):
                                )" +
                    vi + R"(
                                )" +
                    vj + R"(
                                vk = T.axis.reduce()" +
                    s(k) + R"(, k0)
                                )" +
                    where + R"(
                                D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
            for i1 in T.unroll()" +
                    rows + R"():
                for j1 in T.unroll()" +
                    s(nv) + R"():
                    for j2 in T.vectorized(16):
                        with T.block("C"):
                            )" +
                    vi + R"(
                            )" +
                    vj + R"(
                            )" +
                    where + R"(
                            C[vi, vj] = T.max(D[vi, vj], T.float32(0))
)");
}

TEST(Scheduled, RegisterTile) {
  ExpectCompiledAgrees(TiledProduct(28, 64, 20, 14, 2));
  ExpectCompiledAgrees(TiledProduct(30, 64, 20, 14, 2));
  ExpectCompiledAgrees(TiledProduct(5, 37, 9, 4, 2));
  ExpectCompiledAgrees(TiledProduct(3, 10, 9, 6, 1));
}

// Rounded once where fused, else twice, as the interpreter does: then even sums that are not exact have its bits.
TEST(Scheduled, UnfusedMultiplyAddsRoundAsTheInterpreterDoes) {
  const PrimFunc func = ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32"), C: T.Buffer((4096,), "float32")):
    for o in T.parallel(256):
        for i in T.vectorized(16):
            with T.block("C"):
                v = T.axis.spatial(4096, o * 16 + i)
                C[v] = A[v] * B[v] + A[v]
)");
  std::vector<NdArray> want = RandomArguments(func, 3, InputKind::kUniform);
  ASSERT_TRUE(Interpret(func, want).ok());
  for (const bool fuse : {false, true}) {
    std::vector<NdArray> got = RandomArguments(func, 3, InputKind::kUniform);
    const absl::StatusOr<CompiledKernel> kernel =
        CompileKernel(ScheduledProgram{func, {}}, HostTarget(), {.fuse = fuse});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    ASSERT_TRUE(RunCompiled(*kernel, got).ok());
    EXPECT_EQ(got[2].data == want[2].data, !fuse);
  }
}

struct Counts {
  int fma = 0, spills = 0;
};
// What lines of assembly say.
struct Says {
  std::string fma;                      // in every multiply-add,
  std::string by_element;               // and in those that read one element for all lanes
  std::string stack, vector_registers;  // in every load or store of a vector register that was spilled
};
// Instructions of the innermost loop that has the most multiply-adds; of those that read one element, where asked.
Counts InnerLoop(const std::string& assembly, const Says& says) {
  Counts best, current;
  const auto has = [](const std::string& line, const std::string& what) { return line.find(what) != line.npos; };
  size_t at = 0;
  while (at < assembly.size()) {
    const size_t end = std::min(assembly.find('\n', at), assembly.size());
    const std::string line = assembly.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line[0] == '.') current = Counts();  // a label
    if (has(line, says.fma) && has(line, says.by_element)) ++current.fma;
    if (has(line, says.stack) && has(line, says.vector_registers)) ++current.spills;
    if (current.fma > best.fma) best = current;
    if (current.fma == best.fma) best.spills = std::max(best.spills, current.spills);
  }
  return best;
}

struct TileCase {
  const char* target;
  int rows, vectors;  // of 16 lanes
  int fma;            // instructions for a step of k
};
class RegisterTiles : public ::testing::TestWithParam<TileCase> {};
TEST_P(RegisterTiles, StayInRegisters) {
  const TileCase& c = GetParam();
  const absl::StatusOr<Target> target = ParseTarget(c.target);
  ASSERT_TRUE(target.ok()) << target.status();
  const Says x86{"vfmadd", "", "(%rsp", "mm"}, neon{"fmla", ".s[", "[sp", "\tq"},
      riscv{"vfmacc.vf", "", "r.v\t", "\tv"};
  const absl::StatusOr<std::string> assembly = CompileToAssembly(
      ScheduledProgram{TiledProduct(c.rows * 4, c.vectors * 64, 512, c.rows, c.vectors), {}}, *target);
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  const Counts counts = InnerLoop(*assembly, target->arch == "aarch64"   ? neon
                                             : target->arch == "riscv64" ? riscv
                                                                         : x86);
  EXPECT_EQ(counts.fma, c.fma);
  EXPECT_EQ(counts.spills, 0) << *assembly;
}
INSTANTIATE_TEST_SUITE_P(Cases, RegisterTiles,
                         ::testing::Values(TileCase{"cpu:znver5", 14, 2, 28}, TileCase{"cpu:znver5", 12, 2, 24},
                                           TileCase{"cpu:znver5", 6, 4, 24}, TileCase{"cpu:znver5", 8, 3, 24},
                                           TileCase{"cpu:znver5", 28, 1, 28}, TileCase{"cpu:x86-64-v3", 6, 1, 12},
                                           TileCase{"cpu:cortex-a76", 6, 1, 24}, TileCase{"cpu:cortex-a76", 5, 1, 20},
                                           TileCase{"cpu:cortex-a76", 4, 1, 16}, TileCase{"cpu:neoverse-n2", 6, 1, 24},
                                           TileCase{"cpu:generic-rv64", 6, 1, 6},
                                           TileCase{"cpu:spacemit-x60", 6, 2, 12}),
                         [](const auto& info) {
                           std::string name(info.param.target + 4);
                           std::erase(name, '-');
                           return name + "_" + std::to_string(info.param.rows) + "x" +
                                  std::to_string(info.param.vectors);
                         });

}  // namespace
}  // namespace hone
