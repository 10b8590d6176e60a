// What threads run computes what the schedule does after every pass on the way there, and in the end as explicit
// vectors: with threads side by side, in the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/threads/device_program.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "tests/compiler/lower/check_passes.h"
#include "tests/compiler/lower/thread_schedules.h"
#include "tests/compiler/schedule/reference.h"

namespace hone::testing {
namespace {

// The passes without which a program is none of threads yet. After each pass those of them that are still to come are
// run at once: so what every other pass makes reaches the interpreter, with barriers, before the next one sees it.
constexpr std::string_view kNeededPasses[] = {"place_allocations", "make_launches",  "reduce_across_threads",
                                              "lower_init",        "convert_blocks", "share_warps",
                                              "insert_barriers"};

// "" or what is wrong after which pass.
std::string CheckThreadPasses(const Reference& reference, const PrimFunc& scheduled) {
  PrimFunc func = scheduled;
  const std::span<const ThreadPass> passes = ThreadPasses();
  for (size_t done = 0; done < passes.size(); ++done) {
    absl::StatusOr<PrimFunc> passed = passes[done].run(std::move(func));
    if (!passed.ok()) return absl::StrCat(passes[done].name, ": ", passed.status().ToString());
    func = *std::move(passed);
    absl::StatusOr<PrimFunc> complete = func;
    for (size_t p = done + 1; p < passes.size() && complete.ok(); ++p) {
      if (std::ranges::find(kNeededPasses, passes[p].name) != std::end(kNeededPasses))
        complete = passes[p].run(*std::move(complete));
    }
    if (!complete.ok())
      return absl::StrCat("completed after ", passes[done].name, ": ", complete.status().ToString(), "\n",
                          ToText(func));
    if (const std::string wrong = reference.CheckInterpreted({*complete, {}}); !wrong.empty())
      return absl::StrCat("after ", passes[done].name, ": ", wrong, "\n", ToText(*complete));
  }
  return "";
}

// ---- What a device runs, as a function: the loops over blocks and threads are put back around every kernel.

Stmt LoopsOver(Stmt body, const std::array<Var, 3>& index, const Extents& extents,
               const std::array<std::string_view, 3>& axes) {
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (!index[axis]) continue;
    For loop{.var = index[axis], .min = IntConst(0), .extent = IntConst(extents[axis])};
    loop.kind = ForKind::kThreadBinding;
    loop.thread = std::string(axes[axis]);
    loop.body = std::move(body);
    body = Stmt::Make(std::move(loop));
  }
  return body;
}

PrimFunc LanesAsFunction(const DeviceProgram& program, const PrimFunc& scheduled) {
  std::vector<Stmt> launches;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    const DeviceKernel& kernel = program.kernels[i];
    Stmt body = kernel.body;
    for (const DeviceKernel::Shared& shared : kernel.shared) body = Stmt::Make(Alloc{shared.buffer, std::move(body)});
    body = LoopsOver(std::move(body), kernel.thread_index, launch.block, kThreadAxes);
    launches.push_back(LoopsOver(std::move(body), kernel.block_index, launch.grid, kBlockAxes));
  }
  PrimFunc func = scheduled;
  func.body = MakeSeq(std::move(launches));
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i].buffer;
    if (i < program.params) func.params[i] = buffer;
    if (i >= program.params) func.body = Stmt::Make(Alloc{buffer, func.body});
  }
  return func;
}

// Vectors read lanes that are off, where there is memory; nobody may use what such lanes hold.
std::string CheckLanes(const Reference& reference, const PrimFunc& lanes) {
  if (const absl::Status valid = Verify(lanes); !valid.ok()) return valid.ToString();
  std::vector<NdArray> got = ArgumentsLike(reference.arguments(), lanes);
  const absl::Status ran = Interpret(lanes, got, {.follow_undefined = true});
  return ran.ok() ? reference.Compare(got) : ran.ToString();
}

std::string CheckDeviceLanes(const Reference& reference, const PrimFunc& scheduled, const DeviceOptions& options) {
  const absl::StatusOr<DeviceProgram> program = LowerToDevice(scheduled, options);
  if (!program.ok()) return absl::StrCat("lowering: ", program.status().ToString());
  const PrimFunc lanes = LanesAsFunction(*program, scheduled);
  const std::string wrong = CheckLanes(reference, lanes);
  return wrong.empty() ? "" : absl::StrCat("as lanes: ", wrong, "\n", ToText(lanes));
}

// Buffers of shared memory apart, and where it can be in the same bytes, with barriers for that.
std::string CheckThreadProgram(const SmallWorkload& workload, const PrimFunc& scheduled) {
  const Reference reference(workload);
  std::string wrong = CheckThreadPasses(reference, scheduled);
  for (const int64_t apart : {int64_t{32} << 10, int64_t{0}}) {
    if (wrong.empty()) wrong = CheckDeviceLanes(reference, scheduled, {.shared_apart = apart});
  }
  return wrong.empty() ? "" : absl::StrCat(workload.name, ": ", wrong, "\nscheduled:\n", ToText(scheduled));
}

class ThreadPassesTest : public ::testing::TestWithParam<int> {};
TEST_P(ThreadPassesTest, KeepTheResultOfSchedules) {
  constexpr int kSchedules = 25;
  for (int i = 0; i < kSchedules; ++i) {
    const uint64_t seed = static_cast<uint64_t>(GetParam() * kSchedules + i);
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const ThreadSchedule drawn = DrawThreadSchedule(random);
    ASSERT_EQ(CheckThreadProgram(drawn.workload, drawn.schedule.Program().main), "");
  }
}
TEST_P(ThreadPassesTest, KeepTheResultOfWarps) {
  SCOPED_TRACE(absl::StrCat("seed ", GetParam()));
  Random random(static_cast<uint64_t>(GetParam()));
  const WarpProgram drawn = DrawWarpProduct(random);
  ASSERT_EQ(CheckThreadProgram(drawn.workload, drawn.program), "");
}
INSTANTIATE_TEST_SUITE_P(Seeds, ThreadPassesTest, ::testing::Range(0, 4));

// Planted: the vector that a thread loads from shared memory begins one element further on.
TEST(DeviceLanes, AVectorThatLeavesSharedMemoryIsFound) {
  const PrimFunc scheduled = ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    S = T.alloc_buffer((4, 8), "float32", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            for v in T.vectorized(8):
                with T.block("S"):
                    vi, vj = T.axis.remap("SS", [t, v])
                    S[vi, vj] = A[vi, vj]
        for t in T.thread_binding(4, thread="threadIdx.x"):
            for v in T.vectorized(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [t, v])
                    B[vi, vj] = S[3 - vi, vj]
)");
  const Reference reference({.name = "reversed rows", .func = scheduled});
  const DeviceProgram program = *LowerToDevice(scheduled);
  const PrimFunc right = LanesAsFunction(program, scheduled);
  ASSERT_EQ(CheckLanes(reference, right), "") << ToText(right);
  const Buffer& shared = program.kernels[0].shared[0].buffer;
  PrimFunc wrong = right;
  wrong.body = RewriteBottomUp(right.body, [&](const Stmt& s) -> std::optional<Stmt> {
    const Store* store = s.As<Store>();
    const Load* load = store == nullptr ? nullptr : store->value.As<Load>();
    if (load == nullptr || load->buffer != shared || load->indices[0].type().is_scalar()) return std::nullopt;
    const Ramp* lanes = load->indices[0].As<Ramp>();
    return Stmt::Make(Store{store->buffer, store->indices,
                            MakeLoad(shared, {MakeRamp(lanes->base + Expr(1), lanes->stride, 8)}), Expr()});
  });
  ASSERT_FALSE(wrong.body.SameAs(right.body)) << "nothing was planted in\n" << ToText(right);
  EXPECT_THAT(CheckLanes(reference, wrong), ::testing::HasSubstr("outside of [0, 32)"));
}

}  // namespace
}  // namespace hone::testing
