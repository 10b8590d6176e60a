// Whether a built candidate computes what its task asks: run in a runner of its own on the task's input sets of a trial
// (TaskContext::SetsOfTrial), its outputs held against the oracle's.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compiler/ir/numeric.h"
#include "hone/v1/fleet.pb.h"
#include "worker/agent/trials/task_context.h"
#include "worker/runner/runner_client.h"

namespace hone {

struct VerifyLimits {
  int threads = 1;
  absl::Duration run = absl::Seconds(10);  // of one call
  int64_t memory_bytes = 0;                // of address space; 0: the runner's own limit
  std::string runner;                      // the program; "": the task's
};

struct Verified {
  v1::OutcomeKind kind = v1::OUTCOME_UNSPECIFIED;  // what is wrong; UNSPECIFIED when it is right
  std::string detail;
  double worst_error = 0;              // over the bound: at most 1
  std::optional<RunnerClient> runner;  // of a candidate that is right, loaded and asleep
};

// Loaded into a runner and no more: `runner` is set when that went well.
Verified StartCandidate(const TaskContext& task, std::string_view image, const std::string& kernel_set,
                        const VerifyLimits& limits);
Verified VerifyCandidate(const TaskContext& task, std::string_view image, const std::string& kernel_set,
                         NumericLevel level, const VerifyLimits& limits);

// Runs a loaded candidate on those sets: `kind`, `detail` and `worst_error` of the result.
Verified VerifyOn(const TaskContext& task, RunnerClient& runner, std::span<const int> sets, NumericLevel level,
                  absl::Duration run);

// What a verdict that is not ok says of a candidate.
v1::OutcomeKind KindOf(const RunnerVerdict& verdict);

}  // namespace hone
