#include "tests/compiler/schedule/expect.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/text/reads_back.h"

namespace hone::testing {

void ExpectReplays(const Schedule& schedule, const PrimFunc& workload) {
  EXPECT_EQ(ReadBackError(schedule.func()), "");
  const std::string text = ToText(schedule.trace());
  const absl::StatusOr<Trace> trace = ParseTrace(text);
  ASSERT_TRUE(trace.ok()) << trace.status().ToString() << "\n" << text;
  EXPECT_TRUE(*trace == schedule.trace()) << text << "became\n" << ToText(*trace);
  const absl::StatusOr<Schedule> again = Replay(*trace, workload);
  ASSERT_TRUE(again.ok()) << again.status().ToString() << "\n" << text;
  EXPECT_TRUE(StructuralEqual(again->func(), schedule.func())) << text << ToText(schedule.func()) << "became\n"
                                                               << ToText(again->func());
  ASSERT_EQ(again->prepares().size(), schedule.prepares().size());
  for (size_t i = 0; i < again->prepares().size(); ++i) {
    EXPECT_EQ(again->prepares()[i].param, schedule.prepares()[i].param);
    EXPECT_TRUE(StructuralEqual(again->prepares()[i].func, schedule.prepares()[i].func));
  }
}

double LargestWhereLoose(const Schedule& schedule, const NdArray& output) {
  double largest = 1;
  for (int64_t i = 0; NumericLevelOf(schedule.trace()) == NumericLevel::kDefault && i < output.NumElements(); ++i) {
    largest = std::max(largest, std::abs(output.Get(i)));
  }
  return largest;
}

namespace {

void ExpectSame(const ScheduledProgram& program, const PrimFunc& workload, const Schedule& schedule, uint64_t seed) {
  const absl::Status verified = Verify(program.main);
  ASSERT_TRUE(verified.ok()) << verified.ToString() << "\n" << ToText(program.main) << ToText(schedule.trace());
  std::vector<NdArray> expected = RandomArguments(workload, seed, InputKind::kInteger);
  std::vector<NdArray> actual = expected;
  const absl::Status plain = Interpret(workload, expected);
  ASSERT_TRUE(plain.ok()) << plain.ToString() << "\n" << ToText(workload);
  for (const Prepare& prepare : program.prepares) {
    const absl::Status valid = Verify(prepare.func);
    ASSERT_TRUE(valid.ok()) << valid.ToString() << "\n" << ToText(prepare.func);
    std::vector<int64_t> shape;
    for (const Expr& extent : prepare.func.params[1].shape()) shape.push_back(*ConstantValue(extent));
    std::vector<NdArray> args = {actual[prepare.param], NdArray(prepare.func.params[1].type(), shape)};
    const absl::Status packed = Interpret(prepare.func, args);
    ASSERT_TRUE(packed.ok()) << packed.ToString() << "\n" << ToText(prepare.func);
    actual[prepare.param] = args[1];
  }
  const absl::Status ran = Interpret(program.main, actual);
  ASSERT_TRUE(ran.ok()) << ran.ToString() << "\n" << ToText(program.main) << ToText(schedule.trace());
  for (size_t p = workload.params.size() - workload.num_outputs(); p < workload.params.size(); ++p) {
    const double floor = LargestWhereLoose(schedule, expected[p]);
    for (int64_t i = 0; i < expected[p].NumElements(); ++i) {
      // Exact for integers; functions such as exp are summed in another order.
      const double value = expected[p].Get(i), tolerance = 1e-5 * std::max(floor, std::abs(value));
      ASSERT_NEAR(value, actual[p].Get(i), std::isfinite(value) ? tolerance : 0)
          << "param " << p << ", element " << i << "\n"
          << ToText(program.main) << ToText(schedule.trace());
    }
  }
}

}  // namespace

void ExpectSameResult(const Schedule& schedule, const PrimFunc& workload, uint64_t seed) {
  ExpectSame(schedule.Program(), workload, schedule, seed);
}

void ExpectSameResultReversed(const Schedule& schedule, const PrimFunc& workload, uint64_t seed) {
  ExpectSame(Reversed(schedule.Program()), workload, schedule, seed);
}

void ExpectSound(const Schedule& schedule, const PrimFunc& workload) {
  ExpectReplays(schedule, workload);
  ExpectSameResult(schedule, workload);
  ExpectSameResultReversed(schedule, workload);
}

void ExpectBody(const Schedule& schedule, std::string_view expected) {
  const std::string actual = ToText(schedule.index().block(0).body);
  const auto trim = [](std::string_view text) {
    while (!text.empty() && (text.front() == '\n')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    return std::string(text);
  };
  EXPECT_EQ(trim(actual), trim(expected));
}

::testing::AssertionResult Says(const absl::Status& status, std::string_view text) {
  if (status.ok()) return ::testing::AssertionFailure() << "it succeeded; expected: " << text;
  const std::string message(status.message());
  if (message.find(text) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "it says: " << message << "\nexpected: " << text;
}

}  // namespace hone::testing
