#include "tests/compiler/lower/thread_schedules.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/storage_align.h"
#include "compiler/schedule/primitives/transform_layout.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

int64_t Between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.Below(static_cast<uint64_t>(high - low + 1)));
}
std::vector<LoopRef> SplitBy(Schedule& s, LoopRef loop, std::vector<std::optional<int64_t>> factors) {
  std::vector<Value> values;
  for (const std::optional<int64_t>& factor : factors) values.push_back(factor ? Value(*factor) : Value());
  return Get(Split(s, loop, values));
}

// The loops of a copy below `under` others are shared among the threads of the axes, or left to the first thread; where
// each warp has a copy of its own, among those of threadIdx.x, with `ty` of 1.
void FetchTogether(Schedule& s, Random& random, BlockRef copy, size_t under, int64_t ty, int64_t tx,
                   bool of_warps = false) {
  if (random.Chance(0.1)) return;
  const std::vector<LoopRef> loops = Get(GetLoops(s, copy));
  const std::vector<LoopRef> own(loops.begin() + static_cast<ptrdiff_t>(under), loops.end());
  if (own.empty()) return;
  const LoopRef fused = own.size() == 1 ? own[0] : Get(Fuse(s, own));
  const int64_t width = Between(random, 1, 3);
  const std::vector<LoopRef> parts = SplitBy(s, fused, {std::nullopt, ty, tx, width});
  if (!of_warps) Do(Bind(s, parts[1], "threadIdx.y"));
  Do(Bind(s, parts[2], "threadIdx.x"));
  if (width > 1 && random.Chance(0.5)) Do(Vectorize(s, parts[3]));
}

// The stages of the two fetches and of the product, between one and three apart; what comes first of a round. Returns
// whether the copies are asynchronous.
bool DrawPipeline(Schedule& s, Random& random, LoopRef loop) {
  const int64_t a = Between(random, 0, 1), b = Between(random, 0, 1);
  const int64_t last = std::max(a, b) + Between(random, 0, 2);
  Do(Annotate(s, loop, kPipelineStage, std::vector<int64_t>{a, b, last}));
  // The product may come first where it runs for an earlier iteration than the fetches.
  if (last > std::max(a, b) && random.Chance(0.4)) Do(Annotate(s, loop, kPipelineOrder, std::vector<int64_t>{1, 2, 0}));
  if (random.Chance(0.3)) return false;
  std::vector<int64_t> stages = {a};
  if (b != a && random.Chance(0.7)) stages.push_back(b);
  if (stages.size() == 1 && a == last) return false;
  if (std::ranges::find(stages, last) != stages.end()) return false;
  Do(Annotate(s, loop, kPipelineAsyncStages, stages));
  return true;
}

Schedule Product(const PrimFunc& workload, Random& random, std::string& shape) {
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C"));
  const bool cached = random.Chance(0.7);
  const Scope a_scope = random.Chance(0.3) ? Scope::kWarp : Scope::kShared;
  const Scope b_scope = random.Chance(0.3) ? Scope::kWarp : Scope::kShared;
  const BlockRef a_shared = Get(CacheRead(s, c, 0, a_scope));
  const BlockRef b_shared = Get(CacheRead(s, c, 1, b_scope));
  const BlockRef out = cached ? Get(CacheWrite(s, c, 0, Scope::kRegister)) : c;
  const bool warps = random.Chance(0.2);  // of threads with neighbouring threadIdx.x, along threadIdx.y
  const int64_t ty = Between(random, warps ? 2 : 1, 4), tx = warps ? kWarpThreads : Between(random, 1, 5);
  const std::vector<LoopRef> loops = Get(GetLoops(s, c));
  const auto i = SplitBy(s, loops[0], {std::nullopt, ty, Between(random, 1, 3)});
  const auto j = SplitBy(s, loops[1], {std::nullopt, tx, Between(random, 1, 3)});
  const auto k = SplitBy(s, loops[2], {std::nullopt, Between(random, 1, 5)});
  Do(Reorder(s, {i[0], j[0], i[1], j[1], k[0], k[1], i[2], j[2]}));
  Do(Bind(s, i[0], "blockIdx.y"));
  Do(Bind(s, j[0], "blockIdx.x"));
  Do(Bind(s, i[1], "threadIdx.y"));
  Do(Bind(s, j[1], "threadIdx.x"));
  if (cached) Do(ReverseComputeAt(s, out, j[1]));
  const bool whole = random.Chance(0.2);  // the tiles of all steps at once
  for (const BlockRef copy : {a_shared, b_shared}) {
    Do(ComputeAt(s, copy, whole ? j[1] : k[0]));
    const bool of_warps = warps && (copy == a_shared ? a_scope : b_scope) == Scope::kWarp;
    FetchTogether(s, random, copy, whole ? 4 : 5, of_warps ? 1 : ty, tx, of_warps);
    const double layout = random.Uniform();
    if (layout < 0.3) Do(StorageAlign(s, copy, 0, 0, 4, 1));
    if (layout > 0.7)
      Do(TransformLayout(s, copy, 0, BufferKind::kWrite,
                         Get(ParseIndexMap("lambda i, j: (i, j // 4, j % 4 ^ i % 4)"))));
  }
  if (random.Chance(0.5)) Get(DecomposeReduction(s, c, k[0]));
  shape = "product";
  if (!whole && random.Chance(0.6))
    shape = DrawPipeline(s, random, k[0]) ? "asynchronous product" : "pipelined product";
  if (random.Chance(0.3)) Do(Unroll(s, i[2]));
  if (random.Chance(0.3)) Do(Vectorize(s, j[2]));
  return s;
}

Schedule RowReduction(const PrimFunc& workload, const std::string& block, Random& random) {
  Schedule s(workload);
  const BlockRef b = Get(GetBlock(s, block));
  const std::vector<LoopRef> loops = Get(GetLoops(s, b));
  const int64_t rows = Between(random, 1, 3), threads = Between(random, 1, 9);
  const auto i = SplitBy(s, loops[0], {std::nullopt, rows});
  Do(Bind(s, i[0], "blockIdx.x"));
  Do(Bind(s, i[1], "threadIdx.y"));
  const bool strided = random.Chance(0.5);  // thread t takes t, t + threads, .. or a piece of its own
  const auto k =
      strided ? SplitBy(s, loops[1], {std::nullopt, threads}) : SplitBy(s, loops[1], {threads, std::nullopt});
  if (strided && random.Chance(0.5)) Do(Reorder(s, {k[1], k[0]}));
  Do(Bind(s, k[strided ? 1 : 0], "threadIdx.x"));
  return s;
}

// Every row a block of threads: each stage under the block's loop, maximum and sum by all threads together.
Schedule SoftmaxRows(const PrimFunc& workload, Random& random) {
  Schedule s(workload);
  const int64_t threads = Between(random, 1, 9);
  const BlockRef last = Get(GetBlock(s, "softmax"));
  const LoopRef row = Get(GetLoops(s, last))[0];
  Do(Bind(s, row, "blockIdx.x"));
  const auto bind = [&](BlockRef block) {
    const LoopRef columns = Get(GetLoops(s, block)).back();
    const auto parts = SplitBy(s, columns, {std::nullopt, threads});
    Do(Bind(s, parts[1], "threadIdx.x"));
  };
  bind(last);
  for (const char* name : {"sum", "exp", "max"}) {
    const BlockRef block = Get(GetBlock(s, name));
    Do(ComputeAt(s, block, row));
    Do(SetScope(s, block, 0, random.Chance(0.3) ? Scope::kWarp : Scope::kShared));
    if (random.Chance(0.85)) bind(block);  // else the first thread does it alone
  }
  return s;
}

}  // namespace

ThreadSchedule DrawThreadSchedule(Random& random) {
  switch (random.Below(4)) {
    case 0:
    case 1: {
      const int64_t m = Between(random, 2, 17), n = Between(random, 2, 17), k = Between(random, 2, 11);
      const PrimFunc f = Matmul(m, n, k);
      std::string shape;
      Schedule s = Product(f, random, shape);
      return {{absl::StrCat("product ", m, " ", n, " ", k), f}, shape, std::move(s)};
    }
    case 2: {
      const bool greatest = random.Chance(0.5);
      const int64_t n = Between(random, 1, 9), m = Between(random, 2, 23);
      const PrimFunc f = Get(ParsePrimFunc(
          absl::StrCat("@T.prim_func\ndef main(A: T.Buffer((", n, ", ", m, "), \"float32\"), B: T.Buffer((", n,
                       ",), \"float32\")):\n    for i, k in T.grid(", n, ", ", m,
                       "):\n        with T.block(\"B\"):\n            vi, vk = T.axis.remap(\"SR\", [i, k])\n"
                       "            with T.init():\n                B[vi] = ",
                       greatest ? "T.float32(-3)" : "T.float32(0)",
                       "\n            B[vi] = ", greatest ? "T.max(B[vi], A[vi, vk])" : "B[vi] + A[vi, vk]", "\n")));
      return {{absl::StrCat(greatest ? "maxima " : "sums ", n, " ", m), f}, "reduction", RowReduction(f, "B", random)};
    }
    default: {
      const int64_t n = Between(random, 2, 6), m = Between(random, 2, 19);
      const PrimFunc f = Softmax(n, m);
      return {
          {.name = absl::StrCat("softmax ", n, " ", m), .func = f, .exact = false}, "softmax", SoftmaxRows(f, random)};
    }
  }
}

ThreadSchedule DrawStagedProduct(Random& random) {
  const int64_t rows = 32 * Between(random, 1, 3), columns = 32 * Between(random, 2, 3), step = Between(random, 16, 40);
  const PrimFunc f = Matmul(2 * rows, 2 * columns, 4 * step);
  Schedule s(f);
  const BlockRef c = Get(GetBlock(s, "C"));
  const BlockRef a_shared = Get(CacheRead(s, c, 0, Scope::kShared));
  const BlockRef b_shared = Get(CacheRead(s, c, 1, Scope::kShared));
  const BlockRef staged = Get(CacheWrite(s, c, 0, Scope::kRegister));
  const BlockRef out = Get(CacheWrite(s, staged, 0, Scope::kShared));
  const int64_t ty = 4, tx = 8;
  const std::vector<LoopRef> loops = Get(GetLoops(s, c));
  const auto i = SplitBy(s, loops[0], {std::nullopt, ty, rows / ty});
  const auto j = SplitBy(s, loops[1], {std::nullopt, tx, columns / tx});
  const auto k = SplitBy(s, loops[2], {std::nullopt, step});
  Do(Reorder(s, {i[0], j[0], i[1], j[1], k[0], k[1], i[2], j[2]}));
  Do(Bind(s, i[0], "blockIdx.y"));
  Do(Bind(s, j[0], "blockIdx.x"));
  Do(Bind(s, i[1], "threadIdx.y"));
  Do(Bind(s, j[1], "threadIdx.x"));
  Do(ReverseComputeAt(s, staged, j[1]));
  Do(ReverseComputeAt(s, out, j[0]));
  FetchTogether(s, random, out, 2, ty, tx);
  for (const BlockRef copy : {a_shared, b_shared}) {
    Do(ComputeAt(s, copy, k[0]));
    FetchTogether(s, random, copy, 5, ty, tx);
  }
  Get(DecomposeReduction(s, c, k[0]));
  std::string shape = "product";
  if (random.Chance(0.5)) shape = DrawPipeline(s, random, k[0]) ? "asynchronous product" : "pipelined product";
  return {{absl::StrCat("staged product ", rows, " ", columns, " ", step), f}, shape, std::move(s)};
}

WarpProgram DrawWarpProduct(Random& random) {
  const int64_t m = Between(random, 1, 40), n = Between(random, 1, 20), k = Between(random, 1, 40);
  const int64_t warps = Between(random, 1, 2), columns = Between(random, 1, 2), step = random.Chance(0.5) ? 8 : 16;
  const int64_t stage = Between(random, 0, 2);
  const std::string reduce = random.Chance(0.5) ? "bfloat16" : "float16";
  const std::string type = step == 8 ? "float16" : reduce;
  std::string pipeline;
  if (stage > 0) {
    pipeline = absl::StrCat(", annotations={\"", kPipelineStage, "\": [0, 0, ", stage, "]");
    if (random.Chance(0.7)) absl::StrAppend(&pipeline, ", \"", kPipelineAsyncStages, "\": [0]");
    pipeline += "}";
  }
  const auto number = [](int64_t x) { return absl::StrCat(x); };
  const auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t rows = 16 * warps, width = 8 * columns, threads = 32 * warps;
  const std::vector<std::pair<absl::string_view, std::string>> values = {
      {"{M}", number(m)},
      {"{N}", number(n)},
      {"{K}", number(k)},
      {"{BLOCKS_M}", number(up(m, rows))},
      {"{BLOCKS_N}", number(up(n, width))},
      {"{STEPS}", number(up(k, step))},
      {"{WARPS}", number(warps)},
      {"{THREADS}", number(threads)},
      {"{ROWS}", number(rows)},
      {"{WIDTH}", number(width)},
      {"{COLUMNS}", number(columns)},
      {"{STEP}", number(step)},
      {"{A_REGS}", number(step / 2)},
      {"{B_REGS}", number(step / 4)},
      {"{FETCH_A}", number(up(rows * step, threads))},
      {"{FETCH_B}", number(up(step * width, threads))},
      {"{PIPELINE}", pipeline},
      {"{NAME}", absl::StrCat("mma_m16n8k", step, type == "float16" ? "_f16f16_f32" : "_bf16bf16_f32")},
      {"{TYPE}", type}};
  const std::string workload = absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer(({M}, {K}), "{TYPE}"), B: T.Buffer(({K}, {N}), "{TYPE}"), C: T.Buffer(({M}, {N}), "float32")):
    for i, j, k in T.grid({M}, {N}, {K}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])
)",
                                                   values);
  const std::string program = absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer(({M}, {K}), "{TYPE}"), B: T.Buffer(({K}, {N}), "{TYPE}"), C: T.Buffer(({M}, {N}), "float32")):
    for by in T.thread_binding({BLOCKS_M}, thread="blockIdx.y"):
        for bx in T.thread_binding({BLOCKS_N}, thread="blockIdx.x"):
            for w in T.thread_binding({WARPS}, thread="threadIdx.y"):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    c = T.allocate(({COLUMNS}, 4), "float32", scope="local")
                    for j, r in T.grid({COLUMNS}, 4):
                        c[j, r] = T.float32(0)
                    for ko in T.serial({STEPS}{PIPELINE}):
                        As = T.allocate(({ROWS}, {STEP}), "{TYPE}", scope="shared")
                        Bs = T.allocate(({STEP}, {WIDTH}), "{TYPE}", scope="shared")
                        for e in range({FETCH_A}):
                            if e * {THREADS} + w * 32 + t < {ROWS} * {STEP}:
                                As[(e * {THREADS} + w * 32 + t) // {STEP}, (e * {THREADS} + w * 32 + t) % {STEP}] = T.if_then_else(by * {ROWS} + (e * {THREADS} + w * 32 + t) // {STEP} < {M} and ko * {STEP} + (e * {THREADS} + w * 32 + t) % {STEP} < {K}, A[by * {ROWS} + (e * {THREADS} + w * 32 + t) // {STEP}, ko * {STEP} + (e * {THREADS} + w * 32 + t) % {STEP}], T.{TYPE}(0))
                        for e in range({FETCH_B}):
                            if e * {THREADS} + w * 32 + t < {STEP} * {WIDTH}:
                                Bs[(e * {THREADS} + w * 32 + t) // {WIDTH}, (e * {THREADS} + w * 32 + t) % {WIDTH}] = T.if_then_else(ko * {STEP} + (e * {THREADS} + w * 32 + t) // {WIDTH} < {K} and bx * {WIDTH} + (e * {THREADS} + w * 32 + t) % {WIDTH} < {N}, B[ko * {STEP} + (e * {THREADS} + w * 32 + t) // {WIDTH}, bx * {WIDTH} + (e * {THREADS} + w * 32 + t) % {WIDTH}], T.{TYPE}(0))
                        for j in range({COLUMNS}):
                            a = T.allocate(({A_REGS},), "{TYPE}", scope="local")
                            b = T.allocate(({B_REGS},), "{TYPE}", scope="local")
                            for r in range({A_REGS}):
                                a[r] = As[w * 16 + t // 4 + r // 2 % 2 * 8, t % 4 * 2 + r % 2 + r // 4 * 8]
                            for r in range({B_REGS}):
                                b[r] = Bs[t % 4 * 2 + r % 2 + r // 2 * 8, j * 8 + t // 4]
                            T.tile_op("{NAME}", c[j, 0:4], a[0:{A_REGS}], b[0:{B_REGS}])
                    for j, r in T.grid({COLUMNS}, 4):
                        if by * {ROWS} + w * 16 + t // 4 + r // 2 * 8 < {M} and bx * {WIDTH} + j * 8 + t % 4 * 2 + r % 2 < {N}:
                            C[by * {ROWS} + w * 16 + t // 4 + r // 2 * 8, bx * {WIDTH} + j * 8 + t % 4 * 2 + r % 2] = c[j, r]
)",
                                                  values);
  return {{absl::StrCat("warp product ", m, " ", n, " ", k), Get(ParsePrimFunc(workload))},
          Get(ParsePrimFunc(program))};
}

}  // namespace hone::testing
