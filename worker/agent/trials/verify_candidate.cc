#include "worker/agent/trials/verify_candidate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "deploy/runtime/image/kernel_set.h"

namespace hone {
namespace {

constexpr int kCompileSeconds = 60;  // that the compiler of a device's driver may take for a candidate

Verified Wrong(v1::OutcomeKind kind, std::string detail) {
  Verified wrong;
  wrong.kind = kind;
  wrong.detail = std::move(detail);
  return wrong;
}
Verified Wrong(const RunnerVerdict& verdict) { return Wrong(KindOf(verdict), verdict.message); }

}  // namespace

v1::OutcomeKind KindOf(const RunnerVerdict& verdict) {
  switch (verdict.kind) {
    case RunnerVerdict::kTimedOut: return v1::OUTCOME_TIMEOUT;
    case RunnerVerdict::kOutOfMemory: return v1::OUTCOME_OUT_OF_MEMORY;
    case RunnerVerdict::kRefused: return v1::OUTCOME_BUILD_ERROR;
    case RunnerVerdict::kImpossibleTime: return v1::OUTCOME_INVALID_TIMING;
    case RunnerVerdict::kNoDevice: return v1::OUTCOME_INFRA;
    default: return v1::OUTCOME_CRASH;
  }
}

Verified StartCandidate(const TaskContext& task, std::string_view image, const std::string& kernel_set,
                        const VerifyLimits& limits) {
  RunnerJob job;
  job.image = image;
  std::string error;
  if (!Parse(kernel_set, &job.set, &error)) {
    return Wrong(v1::OUTCOME_BUILD_ERROR, absl::StrCat("the kernel set: ", error));
  }
  if (const absl::Status fits = task.CheckKernelSet(job.set); !fits.ok()) {
    return Wrong(v1::OUTCOME_BUILD_ERROR, absl::StrCat("the kernel set: ", std::string(fits.message())));
  }
  job.allowed_missing_layers = task.runners().allowed_missing_layers;
  job.inputs = &task.inputs();
  job.threads = std::max(1, limits.threads);
  job.cpu_seconds = static_cast<int>(absl::ToInt64Seconds(limits.run) * 6) * job.threads + 10;
  if (!task.runners().device.empty()) {
    job.device = task.runners().device;
    job.cpu_seconds += kCompileSeconds;
    job.start_timeout = absl::Seconds(kCompileSeconds);
  }
  job.program = limits.runner.empty() ? task.runners().program : limits.runner;
  if (limits.memory_bytes > 0) job.memory_bytes = limits.memory_bytes;
  absl::StatusOr<RunnerClient> runner = RunnerClient::Start(job);
  if (!runner.ok()) return Wrong(v1::OUTCOME_INFRA, std::string(runner.status().message()));
  if (!runner->load_verdict().ok()) return Wrong(runner->load_verdict());
  Verified started;
  started.runner = *std::move(runner);
  return started;
}

Verified VerifyOn(const TaskContext& task, RunnerClient& runner, std::span<const int> sets, NumericLevel level,
                  absl::Duration run) {
  Verified right;
  bool one_by_one = false;  // every other set, so that one of each kind is among the two of a trial
  for (const int set : sets) {
    const RunnerVerdict verdict = runner.Verify(set, run, one_by_one ? Iterations::kOneByOne : Iterations::kInRanges);
    one_by_one = !one_by_one;
    if (!verdict.ok()) return Wrong(verdict);
    if (!runner.OutputEdgesIntact(set)) {
      return Wrong(v1::OUTCOME_WRONG_RESULT, "bytes beside an output were written");
    }
    std::string where;
    right.worst_error = std::max(right.worst_error, task.WorstError(runner, set, level, &where));
    if (!(right.worst_error <= 1)) return Wrong(v1::OUTCOME_WRONG_RESULT, where);
  }
  return right;
}

Verified VerifyCandidate(const TaskContext& task, std::string_view image, const std::string& kernel_set,
                         NumericLevel level, const VerifyLimits& limits) {
  Verified started = StartCandidate(task, image, kernel_set, limits);
  if (!started.runner.has_value()) return started;
  Verified right = VerifyOn(task, *started.runner, task.SetsOfTrial(), level, limits.run);
  if (right.kind == v1::OUTCOME_UNSPECIFIED) right.runner = std::move(started.runner);
  return right;
}

}  // namespace hone
