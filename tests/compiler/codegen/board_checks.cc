#include "tests/compiler/codegen/board_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "compiler/interp/interpreter.h"
#include "compiler/text/text.h"
#include "tests/boards/run_on_board.h"
#include "tests/compiler/interp/expect_outputs_near.h"
#include "tests/thorough.h"

namespace hone {
namespace {

constexpr size_t kTogether = 32;  // a failed run names these

absl::StatusOr<CompiledKernel> CompileFor(const PrimFunc& func, const std::string& cpu) {
  return CompileKernel(ScheduledProgram{func, {}}, *ParseTarget(absl::StrCat("cpu:", cpu)));
}

}  // namespace

void BoardChecks::Add(const PrimFunc& func, double tolerance, InputKind kind, const std::string& what) {
  Check check{func, RandomArguments(func, 7, kind), tolerance, what};
  const absl::Status interpreted = Interpret(func, check.arguments, {.check_uninitialised = false});
  ASSERT_TRUE(interpreted.ok()) << interpreted << "\n" << ToText(func);
  static uint32_t added = 0;
  const size_t drawn = (++added * 2654435761U) >> 31;
  for (size_t board = 0; board < std::size(kBoards); ++board) {
    if (board != drawn && !Thorough()) continue;
    SCOPED_TRACE(kBoards[board]);
    // Alone first: among others it would keep them from running too.
    const absl::StatusOr<CompiledKernel> kernel = CompileFor(func, kBoards[board]);
    ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << ToText(func);
    if (!StopsEmulator(*kernel, kBoards[board])) waiting_[board].push_back(check);
  }
}

void BoardChecks::Run() {
  for (size_t board = 0; board < std::size(kBoards); ++board) {
    SCOPED_TRACE(kBoards[board]);
    std::vector<Check>& waiting = waiting_[board];
    for (size_t at = 0; at < waiting.size(); at += kTogether) {
      const auto begin = waiting.begin() + static_cast<std::ptrdiff_t>(at);
      RunTogether({begin, begin + static_cast<std::ptrdiff_t>(std::min(kTogether, waiting.size() - at))},
                  kBoards[board]);
    }
    waiting.clear();
  }
}

// The inputs of all, then the outputs of all; the body of one after that of the other.
PrimFunc BoardChecks::Join(const std::vector<Check>& checks) {
  PrimFunc joined{.name = "main"};
  std::vector<Buffer> outputs;
  std::vector<Stmt> bodies;
  for (const Check& check : checks) {
    const auto first_output = check.func.params.end() - check.func.num_outputs();
    joined.params.insert(joined.params.end(), check.func.params.begin(), first_output);
    outputs.insert(outputs.end(), first_output, check.func.params.end());
    bodies.push_back(check.func.body.As<BlockRealize>()->block.body);
  }
  joined.attrs["outputs"] = static_cast<int64_t>(outputs.size());
  joined.params.insert(joined.params.end(), outputs.begin(), outputs.end());
  joined.body = Stmt::Make(BlockRealize{{}, True(), Block{.name = "root", .body = MakeSeq(std::move(bodies))}});
  return joined;
}

void BoardChecks::RunTogether(const std::vector<Check>& checks, const std::string& cpu) {
  const PrimFunc joined = Join(checks);
  const absl::StatusOr<CompiledKernel> kernel = CompileFor(joined, cpu);
  ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << ToText(joined);
  if (checks.size() > 1 && StopsEmulator(*kernel, cpu)) {  // by a constant that looks like such an instruction
    const auto middle = checks.begin() + static_cast<std::ptrdiff_t>(checks.size() / 2);
    RunTogether({checks.begin(), middle}, cpu);
    RunTogether({middle, checks.end()}, cpu);
    return;
  }
  std::vector<NdArray> arguments = RandomArguments(joined, 7, InputKind::kUniform);
  size_t next = 0;
  for (const Check& check : checks) {
    const size_t inputs = check.arguments.size() - static_cast<size_t>(check.func.num_outputs());
    for (size_t i = 0; i < inputs; ++i) arguments[next++] = check.arguments[i];
  }
  const absl::Status ran = RunOnBoard(*kernel, arguments, cpu, 1);
  ASSERT_TRUE(ran.ok()) << ran << "\n" << ToText(joined);
  for (const Check& check : checks) {
    SCOPED_TRACE(check.what);
    std::vector<NdArray> got = check.arguments;
    for (size_t i = got.size() - static_cast<size_t>(check.func.num_outputs()); i < got.size(); ++i)
      got[i] = arguments[next++];
    ExpectOutputsNear(check.func, got, check.arguments, check.tolerance);
  }
}

}  // namespace hone
