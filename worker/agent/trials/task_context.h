// What the candidates of one task share on a worker: secret input sets, and what the outputs must be. What the workload
// says is read by a hone-oracle process; this one carries its text, and numbers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/array/ndarray.h"
#include "compiler/oracle/oracle.h"
#include "hone/v1/common.pb.h"
#include "worker/agent/builds/builders.h"
#include "worker/oracle/oracle_process.h"
#include "worker/runner/runner_client.h"

namespace hone {

// An output of one input set by the oracle: the value and the error scale of every element (compiler/oracle/oracle.h).
struct ExpectedOutput {
  NdArray value, scale;                  // float64
  std::optional<NdArray> default_scale;  // of levels other than strict, where that is another

  const NdArray& scale_at(NumericLevel level) const {
    return level == NumericLevel::kStrict || !default_scale.has_value() ? scale : *default_scale;
  }
};

// How a task's runners are started.
struct TaskRunners {
  uint32_t allowed_missing_layers = 0;  // of their sandboxes, and that of hone-oracle
  std::string program = {};             // "": hone-runner beside this one, or that of devices
  std::string device = {};  // of candidates for a device, its target; the oracle is for the host all the same
};

class TaskContext {
 public:
  // Input sets of the kinds that PlanInputs (worker/oracle/input_plan.h) names, from seeds nobody else knows. The
  // oracle is built plainly, run in a runner of its own, and checked against the interpreter at sampled elements.
  // InvalidArgument when the workload cannot be understood, or when the error bound decides too few elements of an
  // output to tell a right kernel from a wrong one; Internal when its oracle is wrong; Unavailable, ResourceExhausted,
  // NotFound or PermissionDenied when the machine is in the way.
  static absl::StatusOr<std::unique_ptr<TaskContext>> Create(const v1::Workload& workload, const std::string& target,
                                                             Builders& builders, absl::Duration run_limit,
                                                             TaskRunners runners = {});

  const TaskParams& params() const { return params_; }
  const std::string& text() const { return text_; }
  const TaskRunners& runners() const { return runners_; }
  // InvalidArgument when a builder's kernel set is not one of this task: other parameters, other sizes.
  absl::Status CheckKernelSet(const KernelSet& set) const;
  const InputSets& inputs() const { return inputs_; }
  int num_sets() const { return inputs_.count(); }
  // The sets that one candidate is tried on, the last of them the one that it is timed on, whose constants it has
  // packed by then. Small ones all; of large ones, which cost as much as the candidate's own runs, the first and one of
  // the others by chance, so that no candidate can count on some kinds of values. Whoever becomes the best is tried on
  // all of them (check_winner.h).
  std::vector<int> SetsOfTrial() const;

  // The largest error over its bound in the outputs that `runner` left for a set; above 1 is wrong, and `where` says
  // which element is worst.
  double WorstError(const RunnerClient& runner, int set, NumericLevel level, std::string* where) const;

 private:
  TaskContext() = default;
  absl::Status MakeSets(OracleProcess& process, const v1::BuildReply& oracle, absl::Duration run_limit);
  // Draws the values of the sets of the plan from those there are to `end`, and runs the oracle on them.
  absl::Status RunOracle(OracleProcess& process, const KernelSet& set, const v1::BuildReply& oracle,
                         absl::Duration run_limit, int end, std::vector<std::vector<NdArray>>* values);
  absl::Status CheckOracle(OracleProcess& process, int set) const;
  absl::Status CheckBoundsDecide() const;

  TaskParams params_;
  std::string text_;
  TaskRunners runners_;
  InputPlan plan_;
  uint64_t seed_ = 0;  // of the first set, the next number for the next set
  InputSets inputs_;
  std::vector<std::vector<ExpectedOutput>> expected_;  // of each set, the outputs
};

}  // namespace hone
