// The programs that TVM prints for CPUs (tests/compiler/text/corpus): those small enough are interpreted, lowered and
// interpreted again, compiled, and run; all three agree. Those for GPUs: gpu/device_corpus_test.cc.
#include <cstdio>
#include <map>
#include <string>

#include "compiler/interp/interpreter.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/codegen/run_kernel.h"
#include "tests/compiler/text/corpus.h"

namespace hone {
namespace {

// How many programs of a file are run at least; the others are bound to threads, or too large to be interpreted.
const std::map<std::string, int>& ProgramsRun() {
  static const auto* counts = new std::map<std::string, int>{
      {"bert_base", 36},   {"gpt2_block", 45}, {"llama_block", 38}, {"llama_block_half", 44}, {"mlp", 17},
      {"mobilenetv2", 25}, {"operators", 16},  {"resnet18", 39},    {"resnet50", 10},         {"unet_block", 26}};
  return *counts;
}

class CorpusRuns : public ::testing::TestWithParam<std::string> {};

TEST_P(CorpusRuns, InterpretedLoweredAndCompiledAgree) {
  int run = 0;
  for (const CorpusProgram& program : SmallCorpusPrograms(GetParam(), /*thread_bound=*/false)) {
    SCOPED_TRACE(program.title + ", " + program.func.name);
    const double tolerance = CorpusTolerance(program.func);
    std::vector<NdArray> want = RandomArguments(program.func, 7, InputKind::kUniform);
    const std::vector<NdArray> inputs = want;
    const absl::Status interpreted = Interpret(program.func, want);
    ASSERT_TRUE(interpreted.ok()) << interpreted << "\n" << ToText(program.func);
    const absl::StatusOr<LoweredFunc> lowered = Lower(program.func, {.plain = true});
    ASSERT_TRUE(lowered.ok()) << lowered.status() << "\n" << ToText(program.func);
    std::vector<NdArray> flat = inputs;
    for (NdArray& argument : flat) argument.shape = {argument.NumElements()};
    const absl::Status again = Interpret(lowered->func, flat);
    ASSERT_TRUE(again.ok()) << again << "\n" << ToText(lowered->func);
    ExpectOutputsNear(program.func, flat, want, tolerance);
    ExpectPlainAgrees(program.func, tolerance, InputKind::kUniform);
    if (HasFailure()) return;
    ++run;
  }
  const auto least = ProgramsRun().find(GetParam());
  ASSERT_NE(least, ProgramsRun().end()) << run << " programs of a new file are run: state the number";
  EXPECT_GE(run, least->second);
  RecordProperty("programs run", run);
  std::printf("%d programs of %s\n", run, GetParam().c_str());
}

INSTANTIATE_TEST_SUITE_P(Networks, CorpusRuns, ::testing::ValuesIn(CorpusFiles()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone
