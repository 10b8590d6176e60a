#include "worker/agent/check_winner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/agent/verify_candidate.h"

namespace hone {
namespace {

constexpr int kTries = 3;  // a machine that does something else charges for it
constexpr double kMostCalls = 1e6;

}  // namespace

v1::OutcomeKind CheckWinner(const TaskContext& task, RunnerClient& runner, const WinnerCheck& check,
                            std::string* detail) {
  std::vector<int> sets(static_cast<size_t>(task.num_sets()));
  std::iota(sets.begin(), sets.end(), 0);
  const Verified right = VerifyOn(task, runner, sets, check.level, check.run_limit);
  if (right.kind != v1::OUTCOME_UNSPECIFIED) {
    *detail = right.detail;
    return right.kind;
  }
  const double calls =
      std::clamp(std::ceil(absl::ToDoubleMicroseconds(check.duration) / check.call_us), 1.0, kMostCalls);
  double processor_us = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double before = runner.ProcessorMicroseconds();
    const RunnerVerdict verdict =
        runner.Time({.warm_up = 0, .samples = 1, .inner = static_cast<int32_t>(calls), .copy_outputs = 1},
                    check.run_limit + 10 * check.duration);
    if (!verdict.ok()) {
      *detail = verdict.message;
      return KindOf(verdict);
    }
    const double charged = runner.ProcessorMicroseconds() - before;
    processor_us = attempt == 0 ? charged : std::min(processor_us, charged);
    if (!IsPossibleTime(check.call_us * calls, check.threads, processor_us)) continue;
    if (!(task.WorstError(runner, 0, check.level, detail) <= 1)) {
      *detail = absl::StrCat("under the clock: ", *detail);
      return v1::OUTCOME_WRONG_RESULT;
    }
    detail->clear();
    return v1::OUTCOME_OK;
  }
  *detail = absl::StrCat("it says a call takes ", check.call_us, " us, and ", calls, " calls on ", check.threads,
                         " threads cost ", processor_us, " us of processor time");
  return v1::OUTCOME_INVALID_TIMING;
}

}  // namespace hone
