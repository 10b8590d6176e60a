// What every test of lowering ends with: after each pass the program passes the verifier, reads nothing that it has not
// written (once there are vectors: uses nothing of it), and computes what it did before.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/passes.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "tests/compiler/text/parse_or_die.h"
#include "tests/compiler/text/reads_back.h"

namespace hone {

// Seeded inputs as the function's params have their shapes: flattened ones hold the same bytes.
inline std::vector<NdArray> ArgumentsLike(const std::vector<NdArray>& arguments, const PrimFunc& func) {
  std::vector<NdArray> shaped = arguments;
  for (size_t p = 0; p < shaped.size(); ++p) {
    shaped[p].shape.clear();
    for (const Expr& extent : func.params[p].shape()) shaped[p].shape.push_back(*ConstantValue(extent));
  }
  return shaped;
}

inline void ExpectSameNumbers(const std::vector<NdArray>& inputs, const std::vector<NdArray>& want,
                              const PrimFunc& func, const std::string& after, const InterpretOptions& options = {}) {
  const absl::Status valid = Verify(func);
  ASSERT_TRUE(valid.ok()) << "after " << after << ": " << valid << "\n" << ToText(func);
  ASSERT_EQ(ReadBackError(func), "") << "after " << after;
  std::vector<NdArray> got = ArgumentsLike(inputs, func);
  const absl::Status ran = Interpret(func, got, options);
  ASSERT_TRUE(ran.ok()) << "after " << after << ": " << ran << "\n" << ToText(func);
  for (size_t p = 0; p < want.size(); ++p) {
    ASSERT_TRUE(got[p].data == want[p].data) << "after " << after << " param " << p << " differs\n" << ToText(func);
  }
}

// Runs all passes on a scheduled function.
inline void CheckPasses(const PrimFunc& scheduled, const LowerOptions& options = {}) {
  const std::vector<NdArray> inputs = RandomArguments(scheduled, 3, InputKind::kInteger);
  std::vector<NdArray> want = inputs;
  const absl::Status ran = Interpret(scheduled, want);
  ASSERT_TRUE(ran.ok()) << ran << "\n" << ToText(scheduled);
  PrimFunc func = scheduled;
  // Vectors at an edge read lanes that are off, where there is memory: from then on uses of what nobody wrote are
  // refused, not reads.
  InterpretOptions interpret;
  for (const LoweringPass& pass : LoweringPasses()) {
    absl::StatusOr<PrimFunc> passed = pass.run(func, options);
    ASSERT_TRUE(passed.ok()) << pass.name << ": " << passed.status() << "\n" << ToText(func);
    func = *std::move(passed);
    interpret.follow_undefined |= std::string_view(pass.name) == "vectorize_loops";
    ExpectSameNumbers(inputs, want, func, pass.name, interpret);
    if (::testing::Test::HasFatalFailure()) return;
  }
  const absl::StatusOr<LoweredFunc> lowered = Lower(scheduled, options);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  ExpectSameNumbers(inputs, want, lowered->func, "assign_memory", interpret);
}

}  // namespace hone
