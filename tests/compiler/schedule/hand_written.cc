#include "tests/compiler/schedule/hand_written.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"

namespace hone::testing {
namespace {

struct Program {
  const char* name;
  const char* params;  // between the parentheses of the function
  const char* body;
};

const Program kPrograms[] = {
    {"let", R"(A: T.Buffer((7, 5), "float32"), B: T.Buffer((7, 5), "float32"))", R"(
    for i, j in T.grid(7, 5):
        with T.block("twice"):
            vi, vj = T.axis.remap("SS", [i, j])
            k: T.int32 = 4 - vj
            x: T.float32 = A[vi, k] * T.float32(2)
            B[vi, vj] = x + x * A[vi, vj]
)"},
    {"two_buffers_in_a_block", R"(A: T.Buffer((6, 9), "float32"), C: T.Buffer((6, 9), "float32"))", R"(
    P = T.alloc_buffer((6, 9), "float32")
    Q = T.alloc_buffer((6, 9), "float32")
    for i, j in T.grid(6, 9):
        with T.block("both"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = A[vi, vj] + T.float32(1)
            Q[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(6, 9):
        with T.block("product"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = P[vi, vj] * Q[vi, 8 - vj]
)"},
    {"two_elements_in_a_block", R"(A: T.Buffer((5, 4), "float32"), C: T.Buffer((5, 8), "float32"))", R"(
    pairs = T.alloc_buffer((5, 8), "float32")
    for i, j in T.grid(5, 4):
        with T.block("pairs"):
            vi, vj = T.axis.remap("SS", [i, j])
            pairs[vi, vj * 2] = A[vi, vj]
            pairs[vi, vj * 2 + 1] = A[vi, vj] * T.float32(3)
    for i, j in T.grid(5, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = pairs[vi, vj] + T.float32(1)
)"},
    {"two_stores_apart", R"(A: T.Buffer((5, 4), "float32"), C: T.Buffer((5, 4), "float32"))", R"(
    both = T.alloc_buffer((5, 8), "float32")
    for i, j in T.grid(5, 4):
        with T.block("both"):
            vi, vj = T.axis.remap("SS", [i, j])
            both[vi, vj] = A[vi, vj]
            both[vi, vj + 4] = A[vi, vj] * T.float32(3)
    for i, j in T.grid(5, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = both[vi, vj + 1] + both[vi, vj + 3]
)"},
    {"every_other_element", R"(A: T.Buffer((5, 4), "float32"), C: T.Buffer((5, 4), "float32"))", R"(
    spread = T.alloc_buffer((5, 8), "float32")
    for i, j in T.grid(5, 8):
        with T.block("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            spread[vi, vj] = T.float32(1)
    for i in range(5):
        with T.block("spread"):
            vi = T.axis.spatial(5, i)
            for j in range(4):
                spread[vi, j * 2] = A[vi, j]
    for i, j in T.grid(5, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = spread[vi, vj] + spread[vi, vj + 1]
)"},
    {"if_else", R"(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6,), "float32"))", R"(
    chosen = T.alloc_buffer((6, 7), "float32")
    for i, j in T.grid(6, 7):
        with T.block("chosen"):
            vi, vj = T.axis.remap("SS", [i, j])
            if vj < 3:
                chosen[vi, vj] = A[vi, vj] * T.float32(2)
            else:
                chosen[vi, vj] = A[vi, 9 - vj] + T.float32(1)
    for i, k in T.grid(6, 7):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + chosen[vi, vk]
)"},
    {"matched_rows", R"(A: T.Buffer((6, 4), "float32"), C: T.Buffer((6, 4), "float32"))", R"(
    rows = T.alloc_buffer((6, 4), "float32")
    for i in range(6):
        with T.block("rows"):
            vi = T.axis.spatial(6, i)
            source = T.match_buffer(A[vi, 0:4], (4,), "float32")
            target = T.match_buffer(rows[vi, 0:4], (4,), "float32")
            for j in range(4):
                target[j] = source[3 - j] * T.float32(2)
    for i, j in T.grid(6, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = rows[vi, vj] + A[vi, vj]
)"},
    // The data decide how often they run: the first large element of a row, and how often its place can be halved.
    {"while", R"(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6, 7), "float32"))", R"(
    place = T.alloc_buffer((6,), "int32")
    for i in range(6):
        with T.block("place"):
            vi = T.axis.spatial(6, i)
            at = T.alloc_buffer((1,), "int32", scope="local")
            at[0] = 0
            while at[0] < 7 and A[vi, T.min(at[0], 6)] < T.float32(0.5):
                at[0] = at[0] + 1
            place[vi] = at[0]
    for i, j in T.grid(6, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            left = T.alloc_buffer((2,), "int32", scope="local")
            left[0] = place[vi] * vj
            left[1] = 0
            while left[0] > 1:
                left[0] = left[0] // 2
                if left[0] > 1:
                    left[1] = left[1] + 1
            C[vi, vj] = A[vi, vj] * T.Cast("float32", left[1])
)"},
    {"loop_in_a_block", R"(A: T.Buffer((7, 5), "float32"), C: T.Buffer((7,), "float32"))", R"(
    total = T.alloc_buffer((7,), "float32")
    for i in range(7):
        with T.block("total"):
            vi = T.axis.spatial(7, i)
            total[vi] = T.float32(0)
            for k in range(5):
                total[vi] = total[vi] + A[vi, k]
    for i in range(7):
        with T.block("C"):
            vi = T.axis.spatial(7, i)
            C[vi] = total[vi] * T.float32(2)
)"},
    {"block_in_a_block", R"(A: T.Buffer((8, 6), "float32"), C: T.Buffer((8, 6), "float32"))", R"(
    up = T.alloc_buffer((8, 6), "float32")
    for i in range(2):
        with T.block("tile"):
            vi = T.axis.spatial(2, i)
            for m, j in T.grid(4, 6):
                with T.block("up"):
                    vm = T.axis.spatial(4, m)
                    vj = T.axis.spatial(6, j)
                    up[vi * 4 + vm, vj] = A[vi * 4 + vm, vj] + T.float32(3)
    for i, j in T.grid(8, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = up[vi, vj] * up[vi, 5 - vj]
)"},
    {"two_writers", R"(A: T.Buffer((6, 6), "float32"), C: T.Buffer((6, 6), "float32"))", R"(
    lower = T.alloc_buffer((6, 6), "float32")
    for i, j in T.grid(6, 6):
        with T.block("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            lower[vi, vj] = T.float32(0)
    for i, j in T.grid(6, 6):
        with T.block("triangle"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(j <= i)
            lower[vi, vj] = A[vi, vj]
    for i, j in T.grid(6, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = lower[vi, vj] + lower[vj, vi]
)"},
    {"reduction_without_init",
     R"(A: T.Buffer((5, 7), "float32"), B: T.Buffer((7, 3), "float32"), C: T.Buffer((5, 3), "float32"))", R"(
    for i, j in T.grid(5, 3):
        with T.block("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
    for i, j, k in T.grid(5, 3, 7):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)"},
    {"domain_from_two", R"(A: T.Buffer((9, 4), "float32"), C: T.Buffer((7, 4), "float32"))", R"(
    inner = T.alloc_buffer((9, 4), "float32")
    for i, j in T.grid(9, 4):
        with T.block("inner"):
            vi, vj = T.axis.remap("SS", [i, j])
            inner[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(7, 4):
        with T.block("C"):
            vi = T.axis.spatial((2, 9), i + 2)
            vj = T.axis.spatial(4, j)
            C[vi - 2, vj] = inner[vi, vj] - inner[vi - 2, vj]
)"},
    {"neighbours_where_there_are", R"(A: T.Buffer((7, 3), "float32"), C: T.Buffer((7, 3), "float32"))", R"(
    up = T.alloc_buffer((7, 3), "float32")
    for i, j in T.grid(7, 3):
        with T.block("up"):
            vi, vj = T.axis.remap("SS", [i, j])
            up[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(7, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(vi > 0, up[vi - 1, vj], T.float32(0)) + T.if_then_else(vi < 6, up[vi + 1, vj], T.float32(5))
)"},
    {"moments", R"(A: T.Buffer((5, 6), "float32"), sum: T.Buffer((5,), "float32"), squares: T.Buffer((5,), "float32"))",
     R"(
    T.func_attr({"outputs": 2})
    for i, k in T.grid(5, 6):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                sum[vi] = T.float32(0)
                squares[vi] = T.float32(0)
            x: T.float32 = A[vi, vk]
            sum[vi] = sum[vi] + x
            squares[vi] = squares[vi] + x * x
)"},
    {"argmin_of_sums",
     R"(A: T.Buffer((4, 6), "float32"), place: T.Buffer((4,), "int32"), least: T.Buffer((4,), "float32"))", R"(
    T.func_attr({"outputs": 2})
    more = T.alloc_buffer((4, 6), "float32")
    for i, k in T.grid(4, 6):
        with T.block("more"):
            vi, vk = T.axis.remap("SS", [i, k])
            more[vi, vk] = A[vi, vk] + T.float32(1)
    for i, k in T.grid(4, 6):
        with T.block("place"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                place[vi] = -1
                least[vi] = T.float32("inf")
            p: T.int32 = T.Select(least[vi] < more[vi, vk] or least[vi] == more[vi, vk] and place[vi] > vk, place[vi], vk)
            m: T.float32 = T.Select(least[vi] < more[vi, vk] or least[vi] == more[vi, vk] and place[vi] > vk, least[vi], more[vi, vk])
            place[vi] = p
            least[vi] = m
)"},
    {"sum_of_mirrored", R"(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6,), "float32"))", R"(
    mirrored = T.alloc_buffer((6, 7), "float32")
    for i, k in T.grid(6, 7):
        with T.block("mirrored"):
            vi, vk = T.axis.remap("SS", [i, k])
            mirrored[vi, 6 - vk] = A[vi, vk] * T.float32(2)
    for i, k in T.grid(6, 7):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + mirrored[vi, vk]
)"},
    {"let_in_an_expression", R"(A: T.Buffer((4, 9), "float32"), C: T.Buffer((4,), "float32"))", R"(
    for i, k in T.grid(4, 9):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(-1000)
            C[vi] = T.max(C[vi], T.let(x, A[vi, vk] * T.float32(2), x * x - x))
)"},
};

}  // namespace

const std::vector<SmallWorkload>& HandWrittenWorkloads() {
  static const auto& all = *new std::vector<SmallWorkload>([] {
    std::vector<SmallWorkload> made;
    for (const Program& program : kPrograms) {
      const std::string text = absl::StrCat("@T.prim_func\ndef main(", program.params, "):", program.body);
      absl::StatusOr<PrimFunc> func = ParsePrimFunc(text);
      HONE_CHECK(func.ok()) << program.name << ": " << func.status() << "\n" << text;
      made.push_back({absl::StrCat("by_hand_", program.name), *std::move(func)});
    }
    return made;
  }());
  return all;
}

}  // namespace hone::testing
