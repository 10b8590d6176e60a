// Figures of the compiler's core, each the best of several rounds, comparisons interleaved:
//   hone-core-bench            the interpreter, replay of tuned traces, the prefix cache, the simplifier
//   hone-core-bench --quick    one round of each, to see that it runs
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/schedule/trace/replay_cache.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/schedule/trace/trace_edit.h"
#include "compiler/support/check.h"
#include "compiler/target/target.h"
#include "compiler/verify/verify.h"
#include "tests/compiler/schedule/workloads.h"
#include "tuner/space/default_schedule.h"

namespace hone {
namespace {

using testing::ConvBiasResidualRelu;
using testing::Matmul;
using testing::TwoElementwise;

int rounds = 15;

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
double BestSeconds(const std::function<void()>& work) {
  double best = Seconds(work);
  for (int i = 1; i < rounds; ++i) best = std::min(best, Seconds(work));
  return best;
}

void Interpreter(const char* name, const PrimFunc& func, double instances) {
  std::vector<NdArray> args = RandomArguments(func, 1, InputKind::kUniform);
  const double seconds = BestSeconds([&] {
    const absl::Status ran = Interpret(func, args);
    HONE_CHECK(ran.ok()) << ran;
  });
  std::printf("interpreter  %-28s %8.2f million block instances/s (at least 5 wanted)\n", name,
              instances / seconds / 1e6);
}

void ReplayOf(const char* name, const PrimFunc& workload) {
  const absl::StatusOr<Trace> trace = DefaultTrace(workload, {.target = HostTarget(), .threads = 2});
  HONE_CHECK(trace.ok()) << trace.status();
  const double seconds = BestSeconds([&] { HONE_CHECK(Replay(*trace, workload).ok()); });
  const double parse = BestSeconds([text = ToText(*trace)] { HONE_CHECK(ParseTrace(text).ok()); });
  std::printf("replay       %-28s %8.3f ms for %zu steps (at most 1 wanted), its text read in %.3f ms\n", name,
              seconds * 1e3, trace->steps.size(), parse * 1e3);
  const PrimFunc scheduled = Replay(*trace, workload)->Program().main;
  const double verify = BestSeconds([&] { HONE_CHECK(Verify(scheduled).ok()); });
  std::printf("verifier     %-28s %8.3f ms\n", name, verify * 1e3);
}

// A register-tiled convolution whose tile sizes are samples.
constexpr char kSampledConv[] = R"(b0 = sch.get_block("pad")
b1 = sch.get_block("conv")
b2 = sch.get_block("out")
v0 = sch.sample_categorical([2, 4, 7, 8, 14], decision=1)
v1 = sch.sample_categorical([1, 2, 3, 4], decision=1)
v2 = sch.sample_categorical([8, 16], decision=1)
l3, l4, l5, l6, l7, l8, l9 = sch.get_loops(b1)
l10, l11 = sch.split(l5, factors=[None, v0])
l12, l13, l14 = sch.split(l6, factors=[None, v1, v2])
sch.reorder(l3, l12, l4, l10, l7, l8, l9, l11, l13, l14)
l15 = sch.fuse(l3, l12, l4)
sch.reverse_compute_at(b2, loop=l10)
sch.parallel(l15)
b16 = sch.decompose_reduction(b1, loop=l7)
l17, l18, l19, l20 = sch.get_loops(b0)
v21, v22 = sch.sample_perfect_tile(l20, n=2, max_innermost_factor=64, decision=[4, 16])
l23, l24 = sch.split(l20, factors=[v21, v22])
l25 = sch.fuse(l17, l18)
sch.parallel(l25)
sch.unroll(l11)
sch.unroll(l13)
sch.vectorize(l14)
v30 = sch.sample_categorical([0, 16, 64], decision=0)
sch.annotate(b1, ann_key="note", ann_val=1)
sch.vectorize(l24)
)";

void PrefixCache(const PrimFunc& workload) {
  const absl::StatusOr<Trace> base = ParseTrace(kSampledConv);
  HONE_CHECK(base.ok()) << base.status();
  HONE_CHECK(Replay(*base, workload).ok()) << Replay(*base, workload).status();
  Random random(1);
  std::vector<Trace> mutants;
  for (int i = 0; i < 200; ++i) mutants.push_back(*MutateDecision(*base, workload, random));
  double plain = 1e9, cached = 1e9;
  ReplayCache::Figures figures;
  for (int i = 0; i < std::max(1, rounds / 3); ++i) {
    plain = std::min(plain, Seconds([&] {
                       for (const Trace& trace : mutants) (void)Replay(trace, workload);
                     }));
    ReplayCache cache(workload);
    (void)cache.Replay(*base);
    cached = std::min(cached, Seconds([&] {
                        for (const Trace& trace : mutants) (void)cache.Replay(trace);
                      }));
    figures = cache.figures();
  }
  std::printf(
      "prefix cache %-28s %8.2f times as fast: %.3f ms against %.3f ms a trace, %.0f %% of the steps saved\n",
      "one decision changed", plain / cached, cached * 1e3 / 200, plain * 1e3 / 200,
      100.0 * static_cast<double>(figures.steps_saved) / static_cast<double>(figures.steps_saved + figures.steps_done));
}

void Simplifier() {
  const Var i("i"), j("j"), k("k"), l("l");
  const Expr fused = (Expr(i) * 8 + j) * 16 + k;
  const std::vector<std::pair<const char*, Expr>> cases = {
      {"digits of a fused loop",
       FloorDiv(fused, 128) * 128 + FloorMod(FloorDiv(fused, 16), 8) * 16 + FloorMod(fused, 16)},
      {"a tile's offset", (Expr(i) * 4 + l - (Expr(i) * 4)) + FloorMod(Expr(j) * 16 + k + 32, 16)},
      {"a predicate that holds", And(fused < 7 * 128, FloorDiv(fused, 16) >= 0)},
  };
  for (const auto& named : cases) {
    const Expr& e = named.second;
    constexpr int kTimes = 200;
    const double seconds = BestSeconds([&] {
      for (int t = 0; t < kTimes; ++t) {
        Analyzer known;
        known.Bind(i, Range{IntConst(0), IntConst(7)});
        known.Bind(j, Range{IntConst(0), IntConst(8)});
        known.Bind(k, Range{IntConst(0), IntConst(16)});
        known.Bind(l, Range{IntConst(0), IntConst(4)});
        (void)known.Simplify(e);
      }
    });
    std::printf("simplifier   %-28s %8.2f us\n", named.first, seconds / kTimes * 1e6);
  }
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  using namespace hone;
  if (argc > 1 && std::strcmp(argv[1], "--quick") == 0) rounds = 1;
  const int64_t n = rounds == 1 ? 32 : 128;
  Interpreter("matrix product", Matmul(n, n, n), static_cast<double>(n * n * n));
  Interpreter("elementwise, two blocks", TwoElementwise(n * 4, n * 4), 2.0 * static_cast<double>(n * n * 16));
  const PrimFunc conv = ConvBiasResidualRelu({56, 56, 64, 64});
  ReplayOf("convolution 56x56x64 3x3", conv);
  ReplayOf("convolution 14x14x256 1x1", ConvBiasResidualRelu({14, 14, 256, 256, 1, 1, 0}));
  ReplayOf("convolution 224x224x3 7x7", ConvBiasResidualRelu({224, 224, 3, 64, 7, 2, 3}));
  PrefixCache(conv);
  Simplifier();
  return 0;
}
