// Right programs, and what is planted in them: a piece of the text becomes another, and one check is the first to find
// it (planted_faults_test.cc).
#pragma once

namespace hone::testing {

inline constexpr char kTiledProduct[] = R"(
@T.prim_func
def main(A: T.Buffer((6, 5), "float32"), B: T.Buffer((5, 8), "float32"), C: T.Buffer((6, 8), "float32")):
    acc = T.alloc_buffer((6, 8), "float32")
    for io, jo in T.grid(2, 2):
        for ii, ji in T.grid(3, 4):
            with T.block("zero"):
                vi = T.axis.spatial(6, io * 3 + ii)
                vj = T.axis.spatial(8, jo * 4 + ji)
                acc[vi, vj] = T.float32(0)
        for k, ii, ji in T.grid(5, 3, 4):
            with T.block("update"):
                vi = T.axis.spatial(6, io * 3 + ii)
                vj = T.axis.spatial(8, jo * 4 + ji)
                vk = T.axis.reduce(5, k)
                acc[vi, vj] = acc[vi, vj] + A[vi, vk] * B[vk, vj]
        for ic, jc in T.grid(3, 4):
            with T.block("copy"):
                vi = T.axis.spatial(6, io * 3 + ic)
                vj = T.axis.spatial(8, jo * 4 + jc)
                T.reads(acc[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = acc[vi, vj]
)";

inline constexpr char kTail[] = R"(
@T.prim_func
def main(A: T.Buffer((10, 6), "float32"), C: T.Buffer((10,), "float32")):
    for io in T.parallel(3):
        for ii, k in T.grid(4, 6):
            with T.block("C"):
                vi = T.axis.spatial(10, io * 4 + ii)
                vk = T.axis.reduce(6, k)
                T.where(io * 4 + ii < 10)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
)";

inline constexpr char kPadded[] = R"(
@T.prim_func
def main(A: T.Buffer((9,), "float32"), C: T.Buffer((9,), "float32")):
    pad = T.alloc_buffer((11,), "float32")
    for i in range(11):
        with T.block("pad"):
            vi = T.axis.spatial(11, i)
            pad[vi] = T.if_then_else(vi >= 1 and vi < 10, A[vi - 1], T.float32(0))
    for i, r in T.grid(9, 3):
        with T.block("C"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + pad[vi + vr] * T.Cast("float32", vr + 1)
)";

inline constexpr char kVectors[] = R"(
@T.prim_func
def main(A: T.Buffer((19,), "float32"), C: T.Buffer((19,), "float32")):
    for i in range(3):
        C.vstore([T.Ramp(i * 8, 1, 8)], A.vload([T.Ramp(i * 8, 1, 8)], predicate=T.Ramp(i * 8, 1, 8) < T.Broadcast(19, 8)) * T.Broadcast(T.float32(3), 8), predicate=T.Ramp(i * 8, 1, 8) < T.Broadcast(19, 8))
)";

inline constexpr char kMatched[] = R"(
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), C: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 2):
        with T.block("half_row"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj * 4:vj * 4 + 4])
            T.writes(C[vi, vj * 4:vj * 4 + 4])
            source = T.match_buffer(A[vi, vj * 4:vj * 4 + 4], (4,), "float32")
            target = T.match_buffer(C[vi, vj * 4:vj * 4 + 4], (4,), "float32")
            for k in range(4):
                last: T.int32 = 3 - k
                target[k] = source[last] + source[k] * T.float32(2)
)";

inline constexpr char kSwizzled[] = R"(
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(16, thread="threadIdx.x"):
            with T.allocate((16,), "float32", scope="shared") as S:
                S[t // 4 * 4 + T.bitwise_xor(t % 4, t // 4)] = A[b * 4 + t // 4, t % 4]
                T.tvm_storage_sync("shared")
                C[b * 4 + t // 4, t % 4] = S[t % 4 * 4 + T.bitwise_xor(t // 4, t % 4)]
)";

inline constexpr char kPipelined[] = R"(
@T.prim_func
def main(A: T.Buffer((5, 4), "float32"), C: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        with T.allocate((2, 4), "float32", scope="shared") as S:
            C[t] = T.float32(0)
            S[0, t] = A[0, t]
            for k in range(5):
                T.tvm_storage_sync("shared")
                if k < 4:
                    S[(k + 1) % 2, t] = A[k + 1, t]
                C[t] = C[t] * T.float32(2) + S[k % 2, 3 - t]
)";

inline constexpr char kTwoStages[] = R"(
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), total: T.Buffer((8,), "float32"), most: T.Buffer((8,), "float32")):
    T.func_attr({"outputs": 2})
    up = T.alloc_buffer((8, 4), "float32")
    for i in T.parallel(8):
        for j in T.vectorized(4):
            with T.block("up"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(up[vi, vj])
                up[vi, vj] = A[vi, vj] - T.float32(50)
        for k in range(4):
            with T.block("both"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    total[vi] = T.float32(0)
                    most[vi] = T.min_value("float32")
                total[vi] = total[vi] + up[vi, vk]
                most[vi] = T.max(most[vi], up[vi, vk])
)";

inline constexpr char kTakingTurns[] = R"(
@T.prim_func
def main(A: T.Buffer((3, 4), "float32"), C: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        with T.allocate((4,), "float32", scope="shared") as S:
            C[t] = T.float32(0)
            for k in range(3):
                S[t] = A[k, t]
                T.tvm_storage_sync("shared")
                C[t] = C[t] * T.float32(2) + S[t // 2]
                T.evaluate(0)
                T.tvm_storage_sync("shared")
)";

inline constexpr char kAsyncPipeline[] = R"(
@T.prim_func
def main(A: T.Buffer((5, 4), "float32"), C: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        with T.allocate((3, 4), "float32", scope="shared") as S:
            C[t] = T.float32(0)
            T.evaluate(T.async_copy(S[0, t], A[0, t]))
            T.ptx_commit_group()
            T.evaluate(T.async_copy(S[1, t], A[1, t]))
            T.ptx_commit_group()
            for k in range(5):
                T.ptx_wait_group(1)
                T.tvm_storage_sync("shared")
                if k < 3:
                    T.evaluate(T.async_copy(S[(k + 2) % 3, t], A[k + 2, t]))
                T.ptx_commit_group()
                C[t] = C[t] * T.float32(2) + S[k % 3, 3 - t]
)";

inline constexpr char kWarpProduct[] = R"(
@T.prim_func
def main(A: T.Buffer((16, 8), "float16"), B: T.Buffer((8, 8), "float16"), C: T.Buffer((16, 8), "float32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        a = T.allocate((4,), "float16", scope="local")
        b = T.allocate((2,), "float16", scope="local")
        c = T.allocate((4,), "float32", scope="local")
        for i in range(4):
            a[i] = A[t // 4 + i // 2 * 8, t % 4 * 2 + i % 2]
        for i in range(2):
            b[i] = B[t % 4 * 2 + i, t // 4]
        for i in range(4):
            c[i] = T.float32(0)
        T.tile_op("mma_m16n8k8_f16f16_f32", c[0:4], a[0:4], b[0:2])
        for i in range(4):
            C[t // 4 + i // 2 * 8, t % 4 * 2 + i % 2] = c[i]
)";

// Tiles of 3 vectors, of which the second column is cut off.
inline constexpr char kTileOperations[] = R"(
@T.prim_func
def main(A: T.Buffer((6, 5), "float32"), B: T.Buffer((5, 7), "float32"), C: T.Buffer((6, 7), "float32")):
    with T.block("root"):
        acc = T.alloc_buffer((6, 7), "float32", scope="local")
        for io, jo in T.grid(2, 2):
            for ii, ji in T.grid(3, 4):
                with T.block("zero"):
                    vi = T.axis.spatial(6, io * 3 + ii)
                    vj = T.axis.spatial(7, jo * 4 + ji)
                    T.where(jo * 4 + ji < 7)
                    acc[vi, vj] = T.float32(0)
            for k in range(5):
                for ii in T.unroll(3):
                    with T.block("acc"):
                        vi = T.axis.spatial(6, io * 3 + ii)
                        vo = T.axis.spatial(2, jo)
                        vk = T.axis.reduce(5, k)
                        T.reads(A[vi, vk], B[vk, vo * 4:vo * 4 + T.min(7 - vo * 4, 4)], acc[vi, vo * 4:vo * 4 + T.min(7 - vo * 4, 4)])
                        T.writes(acc[vi, vo * 4:vo * 4 + T.min(7 - vo * 4, 4)])
                        T.tile_op("axpy_f32", acc[vi, vo * 4:vo * 4 + T.min(7 - vo * 4, 4)], A[vi, vk], B[vk, vo * 4:vo * 4 + T.min(7 - vo * 4, 4)], params={"n": 4})
            for ii, ji in T.grid(3, 4):
                with T.block("C"):
                    vi = T.axis.spatial(6, io * 3 + ii)
                    vj = T.axis.spatial(7, jo * 4 + ji)
                    T.where(jo * 4 + ji < 7)
                    C[vi, vj] = acc[vi, vj]
)";

struct Plant {
  const char* what;
  const char* program;
  const char* from;
  const char* to;
  const char* found_by;
};

// clang-format off
inline constexpr Plant kPlants[] = {
    {"a lost zero", kTiledProduct,
     "acc[vi, vj] = T.float32(0)",
     "T.evaluate(0)", "initialisation"},
    {"the zero of another tile", kTiledProduct,
     "acc[vi, vj] = T.float32(0)",
     "acc[vi, 7 - vj] = T.float32(0)", "interpreter"},
    {"a start that is not zero", kTiledProduct,
     "acc[vi, vj] = T.float32(0)",
     "acc[vi, vj] = T.float32(1)", "numbers"},
    {"a zero for a part of the tile", kTiledProduct,
     "for ii, ji in T.grid(3, 4)",
     "for ii, ji in T.grid(3, 3)", "initialisation"},
    {"a reduction that ends early", kTiledProduct,
     "T.grid(5, 3, 4)",
     "T.grid(4, 3, 4)", "numbers"},
    {"a reduction that runs on", kTiledProduct,
     "T.grid(5, 3, 4)",
     "T.grid(6, 3, 4)", "verifier"},
    {"swapped axes of a read", kTiledProduct,
     "A[vi, vk]",
     "A[vk, vi]", "bounds"},
    {"a result that is not copied whole", kTiledProduct,
     "for ic, jc in T.grid(3, 4)",
     "for ic, jc in T.grid(3, 3)", "interpreter"},
    {"another element copied than declared", kTiledProduct,
     "C[vi, vj] = acc[vi, vj]",
     "C[vi, vj] = acc[vi, 7 - vj]", "verifier"},
    {"a copy to another place than declared", kTiledProduct,
     "C[vi, vj] = acc",
     "C[5 - vi, vj] = acc", "verifier"},
    {"a tile that does not move", kTiledProduct,
     "jo * 4 + jc",
     "jc", "interpreter"},
    {"an accumulation that forgets", kTiledProduct,
     "acc[vi, vj] = acc[vi, vj] + A",
     "acc[vi, vj] = A", "numbers"},
    {"a buffer one row short", kTiledProduct,
     "T.alloc_buffer((6, 8)",
     "T.alloc_buffer((5, 8)", "bounds"},
    {"a lost zero under tile operations", kTileOperations,
     "acc[vi, vj] = T.float32(0)",
     "T.evaluate(0)", "initialisation"},
    {"a zero for a part of what tile operations add to", kTileOperations,
     "for ii, ji in T.grid(3, 4):\n                with T.block(\"zero\")",
     "for ii, ji in T.grid(2, 4):\n                with T.block(\"zero\")", "initialisation"},
    {"a tile operation on another row than declared", kTileOperations,
     "\"axpy_f32\", acc[vi,",
     "\"axpy_f32\", acc[5 - vi,", "verifier"},
    {"an element of another row", kTileOperations,
     "A[vi, vk]",
     "A[5 - vi, vk]", "numbers"},
    {"a missing predicate", kTail,
     "                T.where(io * 4 + ii < 10)\n",
     "", "verifier"},
    {"a predicate that lets one more in", kTail,
     "< 10)",
     "< 11)", "bounds"},
    {"a predicate that keeps one out", kTail,
     "< 10)",
     "< 9)", "interpreter"},
    {"a predicate of other tiles", kTail,
     "T.where(io * 4 + ii",
     "T.where(io * 3 + ii", "verifier"},
    {"too few tiles", kTail,
     "T.parallel(3)",
     "T.parallel(2)", "interpreter"},
    {"two tasks that write one element", kTail,
     "T.axis.spatial(10, io * 4 + ii)",
     "T.axis.spatial(10, (io * 4 + ii) // 2)", "interpreter"},
    {"a start in the middle of the reduction", kTail,
     "with T.init():",
     "if vk == 3:", "interpreter"},
    {"a lost init", kTail,
     "                with T.init():\n                    C[vi] = T.float32(0)\n",
     "", "initialisation"},
    {"padding one too narrow at the front", kPadded,
     "vi >= 1",
     "vi >= 0", "bounds"},
    {"padding one too wide at the front", kPadded,
     "vi >= 1",
     "vi >= 2", "numbers"},
    {"padding one too narrow at the end", kPadded,
     "vi < 10",
     "vi < 11", "bounds"},
    {"padding that is not zero", kPadded,
     "A[vi - 1], T.float32(0)",
     "A[vi - 1], T.float32(1)", "numbers"},
    {"an unguarded read of the padded input", kPadded,
     "T.if_then_else(vi >= 1 and vi < 10, A[vi - 1], T.float32(0))",
     "A[vi - 1]", "bounds"},
    {"a guard whose sides changed places", kPadded,
     "A[vi - 1], T.float32(0))",
     "T.float32(0), A[vi - 1])", "bounds"},
    {"a window that is shifted", kPadded,
     "pad[vi + vr]",
     "pad[vi + vr + 1]", "bounds"},
    {"a window that runs backwards", kPadded,
     "pad[vi + vr]",
     "pad[vi + 2 - vr]", "numbers"},
    {"a mask that lets one lane more load", kVectors,
     "A.vload([T.Ramp(i * 8, 1, 8)], predicate=T.Ramp(i * 8, 1, 8) < T.Broadcast(19, 8))",
     "A.vload([T.Ramp(i * 8, 1, 8)], predicate=T.Ramp(i * 8, 1, 8) < T.Broadcast(20, 8))", "bounds"},
    {"no mask on a load", kVectors,
     "A.vload([T.Ramp(i * 8, 1, 8)], predicate=T.Ramp(i * 8, 1, 8) < T.Broadcast(19, 8))",
     "A.vload([T.Ramp(i * 8, 1, 8)])", "bounds"},
    {"masks that switch a lane off", kVectors,
     "T.Broadcast(19, 8)",
     "T.Broadcast(18, 8)", "interpreter"},
    {"a task that writes where the next one starts", kTwoStages,
     "                    total[vi] = T.float32(0)\n",
     "                    total[vi] = T.float32(0)\n                    if vi < 7:\n                        total[vi + 1] = T.float32(9)\n", "order"},
    {"a stride in a load", kVectors,
     "A.vload([T.Ramp(i * 8, 1, 8)]",
     "A.vload([T.Ramp(i * 2, 2, 8)]", "numbers"},
    {"the part of another block", kMatched,
     "T.match_buffer(A[vi, vj * 4:vj * 4 + 4]",
     "T.match_buffer(A[vi, 4 - vj * 4:8 - vj * 4]", "verifier"},
    {"a row above", kMatched,
     "T.match_buffer(A[vi, vj",
     "T.match_buffer(A[vi - 1, vj", "verifier"},
    {"a let that is one off", kMatched,
     "T.int32 = 3 - k",
     "T.int32 = 4 - k", "verifier"},
    {"a let of another variable", kMatched,
     "T.int32 = 3 - k",
     "T.int32 = 3 - vj", "numbers"},
    {"a write beyond the declared half", kMatched,
     "target[k] = source",
     "target[k + 1] = source", "verifier"},
    {"a read that is not declared", kMatched,
     "T.reads(A[vi, vj * 4:vj * 4 + 4])",
     "T.reads()", "verifier"},
    {"a swizzle on one side alone", kSwizzled,
     "S[t % 4 * 4 + T.bitwise_xor(t // 4, t % 4)]",
     "S[t % 4 * 4 + t // 4]", "numbers"},
    {"a swizzle by the wrong row", kSwizzled,
     "T.bitwise_xor(t // 4, t % 4)]",
     "T.bitwise_xor(t // 4, t // 4)]", "numbers"},
    {"a swizzle that is no permutation", kSwizzled,
     "T.bitwise_xor(t % 4, t // 4)]",
     "T.bitwise_and(t % 4, t // 4)]", "initialisation"},
    {"a dropped barrier", kSwizzled,
     "                T.tvm_storage_sync(\"shared\")\n",
     "", "interpreter"},
    {"a barrier that some threads skip", kSwizzled,
     "                T.tvm_storage_sync(\"shared\")\n",
     "                if t < 8:\n                    T.tvm_storage_sync(\"shared\")\n", "interpreter"},
    {"shared memory that is too small", kSwizzled,
     "T.allocate((16,)",
     "T.allocate((12,)", "bounds"},
    {"two threads that write one element of the result", kSwizzled,
     "C[b * 4 + t // 4, t % 4] =",
     "C[b * 4 + t // 4, t % 2] =", "interpreter"},
    {"two threads that write one element of shared memory", kSwizzled,
     "S[t // 4 * 4 + T.bitwise_xor(t % 4, t // 4)] =",
     "S[t // 8 * 8 + T.bitwise_xor(t % 4, t // 4)] =", "initialisation"},
    {"a stage that is read before it has landed", kPipelined,
     "S[k % 2, 3 - t]",
     "S[(k + 1) % 2, 3 - t]", "interpreter"},
    {"a barrier dropped from a pipeline", kPipelined,
     "                T.tvm_storage_sync(\"shared\")\n",
     "", "interpreter"},
    {"a stage that overwrites the one in use", kPipelined,
     "S[(k + 1) % 2, t] = A[k + 1, t]",
     "S[k % 2, t] = A[k + 1, t]", "interpreter"},
    {"a copy of the wrong step", kPipelined,
     "A[k + 1, t]",
     "A[k, t]", "numbers"},
    {"a pipeline that copies one step more", kPipelined,
     "if k < 4:",
     "if k < 5:", "bounds"},
    {"no barrier before the next step overwrites", kTakingTurns,
     "                T.evaluate(0)\n                T.tvm_storage_sync(\"shared\")\n",
     "", "interpreter"},
    {"a barrier in front of what it is to follow", kTakingTurns,
     "                S[t] = A[k, t]\n                T.tvm_storage_sync(\"shared\")\n",
     "                T.tvm_storage_sync(\"shared\")\n                S[t] = A[k, t]\n", "interpreter"},
    {"all threads write one element, each the same", kTakingTurns,
     "                T.evaluate(0)\n",
     "                S[3] = A[0, 0]\n", "interpreter"},
    {"a result that is read where another thread writes it", kTakingTurns,
     "T.float32(2) + S[t // 2]",
     "T.float32(2) + S[t // 2] + C[t // 2] * T.float32(0)", "interpreter"},
    {"an asynchronous copy that nothing waits for", kAsyncPipeline,
     "                T.ptx_wait_group(1)\n",
     "", "interpreter"},
    {"a wait that leaves one group too many", kAsyncPipeline,
     "T.ptx_wait_group(1)",
     "T.ptx_wait_group(2)", "interpreter"},
    {"a tile that is read before its copy has landed", kAsyncPipeline,
     "S[k % 3, 3 - t]",
     "S[(k + 1) % 3, 3 - t]", "interpreter"},
    {"a tile of the step before", kAsyncPipeline,
     "S[k % 3, 3 - t]",
     "S[(k + 2) % 3, 3 - t]", "interpreter"},
    {"copies that are never committed", kAsyncPipeline,
     "                T.ptx_commit_group()\n                C",
     "                C", "interpreter"},
    {"a barrier dropped between wait and read", kAsyncPipeline,
     "                T.tvm_storage_sync(\"shared\")\n",
     "", "interpreter"},
    {"a barrier in front of the wait", kAsyncPipeline,
     "                T.ptx_wait_group(1)\n                T.tvm_storage_sync(\"shared\")\n",
     "                T.tvm_storage_sync(\"shared\")\n                T.ptx_wait_group(1)\n", "interpreter"},
    {"two versions of a tile where three are in use", kAsyncPipeline,
     "S[(k + 2) % 3, t]",
     "S[(k + 2) % 2, t]", "initialisation"},
    {"two threads that copy to one element", kAsyncPipeline,
     "S[(k + 2) % 3, t]",
     "S[(k + 2) % 3, t // 2]", "interpreter"},
    {"an asynchronous copy of the wrong step", kAsyncPipeline,
     "A[k + 2, t]",
     "A[k + 1, t]", "numbers"},
    {"an asynchronous copy into registers", kAsyncPipeline,
     "scope=\"shared\"",
     "scope=\"local\"", "verifier"},
    {"a lane map with two elements exchanged", kWarpProduct,
     "a[i] = A[t // 4 + i // 2 * 8, t % 4 * 2 + i % 2]",
     "a[i] = A[t // 4 + i // 2 * 8, t % 4 * 2 + 1 - i % 2]", "numbers"},
    {"a result with two lanes exchanged", kWarpProduct,
     "C[t // 4 + i // 2 * 8, t % 4 * 2 + i % 2]",
     "C[T.bitwise_xor(t // 4, 1) + i // 2 * 8, t % 4 * 2 + i % 2]", "numbers"},
    {"two lanes that write one element", kWarpProduct,
     "C[t // 4 + i // 2 * 8, t % 4 * 2 + i % 2]",
     "C[t // 4 + i // 2 * 8, t % 2 * 4 + i % 2]", "interpreter"},
    {"a lane that leaves out the operation of its warp", kWarpProduct,
     "        T.tile_op(",
     "        if t < 31:\n            T.tile_op(", "interpreter"},
    {"a register of a fragment that is not loaded", kWarpProduct,
     "for i in range(2)",
     "for i in range(1)", "interpreter"},
    {"an operation of another size than its fragments", kWarpProduct,
     "a[0:4], b[0:2]",
     "a[0:2], b[0:2]", "verifier"},
    {"a lost init of one of two results", kTwoStages,
     "                    most[vi] = T.min_value(\"float32\")\n",
     "", "initialisation"},
    {"a maximum that starts at zero", kTwoStages,
     "T.min_value(\"float32\")",
     "T.float32(0)", "numbers"},
    {"results that changed places", kTwoStages,
     "T.max(most[vi], up[vi, vk])",
     "T.max(total[vi], up[vi, vk])", "numbers"},
    {"lanes that all write one element", kTwoStages,
     "up[vi, vj] = A",
     "up[vi, 0] = A", "verifier"},
    {"tasks that read what another writes", kTwoStages,
     "most[vi] = T.max(most[vi], up[vi, vk])",
     "most[vi] = T.max(most[vi], up[7 - vi, vk])", "interpreter"},
};
// clang-format on

}  // namespace hone::testing
