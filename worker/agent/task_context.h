// What the candidates of one task share on a worker: the workload, secret input sets, and what the outputs must be.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/interp/ndarray.h"
#include "compiler/interp/oracle.h"
#include "compiler/ir/stmt.h"
#include "hone/v1/common.pb.h"
#include "worker/agent/builder_pool.h"
#include "worker/runner/runner_client.h"

namespace hone {

// The outputs of one input set by the oracle: the value and the error scale of every element
// (compiler/interp/oracle.h).
struct ExpectedOutput {
  NdArray value, scale;  // float64
};

class TaskContext {
 public:
  // Input sets from seeds nobody else knows, two or for small tensors more: uniform values, and integers, with which
  // products and sums are exact; where there are more, also values that rise and that fall along a tensor. The oracle
  // is built plainly, run in a runner of its own, and checked against the interpreter at sampled elements.
  // InvalidArgument when the workload cannot be understood; Unavailable when the machine is in the way.
  static absl::StatusOr<std::unique_ptr<TaskContext>> Create(const v1::Workload& workload, const std::string& target,
                                                             BuilderPool& builders, absl::Duration run_limit);

  const PrimFunc& func() const { return func_; }
  const std::string& text() const { return text_; }
  std::vector<const InputSet*> inputs() const;
  int num_sets() const { return static_cast<int>(inputs_.size()); }

  // The largest error over its bound in the outputs that `runner` left for a set; above 1 is wrong, and `where` says
  // which element is worst.
  double WorstError(const RunnerClient& runner, int set, NumericLevel level, std::string* where) const;

 private:
  TaskContext() = default;
  absl::Status RunOracle(const v1::BuildReply& oracle, absl::Duration run_limit);
  absl::Status CheckOracle(int set) const;

  PrimFunc func_;
  std::string text_;
  std::vector<std::vector<NdArray>> values_;  // of each set, the inputs, until the oracle is checked
  std::vector<std::unique_ptr<InputSet>> inputs_;
  std::vector<std::vector<ExpectedOutput>> expected_;  // of each set, the outputs
};

}  // namespace hone
