// Every golden rewrite of a schedule primitive through lowering and code generation, optimised and not: equal to the
// interpreted program it was made from.
#include <algorithm>

#include "compiler/interp/random_input.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "tests/compiler/codegen/run_kernel.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/golden_file.h"

namespace hone::testing {
namespace {

class CompiledPrimitive : public ::testing::TestWithParam<std::string> {};

TEST_P(CompiledPrimitive, ComputesTheSame) {
  for (const GoldenCase& golden : GoldenCases(GetParam())) {
    if (golden.refused) continue;
    SCOPED_TRACE(golden.title);
    const PrimFunc workload = ParseOrDie(golden.program);
    const absl::StatusOr<Schedule> played = Play(golden, workload);
    ASSERT_TRUE(played.ok()) << played.status();
    const bool has_threads = std::ranges::any_of(
        played->trace().steps, [](const auto& step) { return step.template As<BindStep>() != nullptr; });
    if (has_threads) {  // of a GPU: a CPU says that it has none
      EXPECT_FALSE(CompileKernel(played->Program(), HostTarget()).ok());
      continue;
    }
    std::vector<NdArray> want = RandomArguments(workload, 1, InputKind::kInteger);
    const std::vector<NdArray> inputs = want;
    const absl::Status interpreted = Interpret(workload, want);
    ASSERT_TRUE(interpreted.ok()) << interpreted;
    for (const bool optimize : {false, true}) {
      std::vector<NdArray> got = inputs;
      const absl::StatusOr<CompiledKernel> kernel =
          CompileKernel(played->Program(), HostTarget(), {.optimize = optimize});
      ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << ToText(played->func());
      const absl::Status ran = RunCompiled(*kernel, got);
      ASSERT_TRUE(ran.ok()) << ran << "\n" << ToText(played->func());
      ExpectOutputsNear(workload, got, want, 1e-5 * LargestWhereLoose(*played, want.back()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, CompiledPrimitive, ::testing::ValuesIn(GoldenNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::testing
