// Printing and reading: what is printed reads back as the same program, and the spellings of all releases are
// understood.
#include "compiler/text/text.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/text/reads_back.h"

namespace hone {
namespace {

PrimFunc ParseOk(const std::string& text) {
  absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  EXPECT_TRUE(f.ok()) << f.status().ToString() << "\n" << text;
  return f.ok() ? *std::move(f) : PrimFunc{};
}

// The text is exactly what the printer makes of it.
void ExpectCanonical(const std::string& text) {
  const PrimFunc f = ParseOk(text);
  if (!f.body) return;
  EXPECT_EQ(ToText(f), text);
  EXPECT_EQ(ReadBackError(f), "");
}

constexpr char kMatmul[] = R"(@T.prim_func
def main(A: T.Buffer((128, 64), "float32"), B: T.Buffer((64, 32), "float32"), C: T.Buffer((128, 32), "float32")):
    T.func_attr({"constants": [1], "outputs": 1})
    for i, j, k in T.grid(128, 32, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

TEST(TextTest, MatmulIsCanonical) { ExpectCanonical(kMatmul); }

TEST(TextTest, MatmulHasTheStructureItShows) {
  const PrimFunc f = ParseOk(kMatmul);
  EXPECT_EQ(f.name, "main");
  ASSERT_EQ(f.params.size(), 3u);
  EXPECT_TRUE(f.IsConstant(1));
  const BlockRealize* root = f.body.As<BlockRealize>();
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root->block.name, "root");
  const For* i = root->block.body.As<For>();
  ASSERT_NE(i, nullptr);
  EXPECT_EQ(ConstantValue(i->extent), 128);
  const For* k = i->body.As<For>()->body.As<For>();
  const BlockRealize* c = k->body.As<BlockRealize>();
  ASSERT_NE(c, nullptr);
  ASSERT_EQ(c->block.iters.size(), 3u);
  EXPECT_EQ(c->block.iters[2].kind, IterKind::kReduce);
  EXPECT_EQ(ConstantValue(c->block.iters[2].domain.extent), 64);
  EXPECT_TRUE(c->block.init);
}

TEST(TextTest, ScheduledProgramIsCanonical) {
  ExpectCanonical(R"(@T.prim_func
def main(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    C = T.alloc_buffer((4, 16), "float32", scope="local")
    for o in T.parallel(7, annotations={"grain": 2, "name": "x\"y"}):
        for i in T.vectorized(16):
            with T.block("C"):
                v = T.axis.spatial(100, o * 16 + i)
                T.where(o * 16 + i < 100)
                T.reads(A[v])
                T.writes(C[v // 16, v % 16])
                C[v // 16, v % 16] = A[v] + T.float32(1)
        for i in T.unroll(16):
            with T.block("B"):
                v = T.axis.spatial((2, 100), o * 16 + i)
                T.where(o * 16 + i < 100)
                T.reads(C[v // 16, v % 16])
                T.writes(B[v])
                T.block_attr({"mode": "fast", "sizes": [1, 2]})
                B[v] = T.max(C[v // 16, v % 16], T.float32("-inf"))
)");
}

TEST(TextTest, LoweredProgramIsCanonical) {
  ExpectCanonical(R"(@T.prim_func
def main(n: T.int32, A: T.Buffer((n, 64), "float32"), B: T.Buffer((n, 64), "float32")):
    for i in T.parallel(n):
        with T.allocate((64,), "float32", scope="local.thread") as t:
            for j in range(4):
                t[T.Ramp(j * 16, 1, 16)] = A[i, T.Ramp(j * 16, 1, 16)] * T.Broadcast(T.float32(2), 16)
            B.vstore([i, T.Ramp(0, 1, 16)], t[T.Ramp(0, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(n, 16))
        x: T.int32 = i * 2
        u = T.allocate((), "int64", scope="local")
        u[()] = T.Cast("int64", x)
        B[i, T.Ramp(0, 1, 4)] = A.vload([0, T.Ramp(0, 1, 4)], predicate=T.Broadcast(T.bool(True), 4))
        if x < 5:
            T.evaluate(0)
        else:
            T.tile_op("mma", B[i, 0:16], A[x:x + 4, 0:n], params={"k": 1})
        for thread in T.thread_binding(32, thread="threadIdx.x"):
            B[i, thread] = T.if_then_else(thread < 3, A[i, thread], T.float32(0))
)");
}

}  // namespace
}  // namespace hone
