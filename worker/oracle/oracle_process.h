// The agent's end of a hone-oracle: everything that depends on what a tenant's workload says is asked for here, and
// what comes back is numbers whose sizes were checked.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/array/ndarray.h"
#include "compiler/interp/random_input.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "hone/v1/oracle.pb.h"
#include "worker/oracle/input_plan.h"
#include "worker/oracle/read_answers.h"

namespace hone {

class OracleProcess {
 public:
  // One process for this workload; every answer may take `limit`. InvalidArgument when the workload cannot be
  // understood, or the process dies of it or takes too long; Unavailable when it cannot be started, PermissionDenied
  // when a required layer of its sandbox is missing.
  static absl::StatusOr<OracleProcess> Start(const SandboxedProgram& program, const std::string& workload,
                                             absl::Duration limit);

  const TaskParams& params() const { return facts_.params; }
  const InputPlan& plan() const { return facts_.plan; }  // which values kernels are to be verified on
  // The value of an input for an input set. Sets are made one after the other, and the inputs of each in order. Errors
  // as of Start.
  absl::StatusOr<NdArray> Input(int set, int param, uint64_t seed, InputKind kind);
  // Chosen elements, by their row-major numbers, of one output for an input set that was made. Errors as of Start.
  absl::StatusOr<std::vector<double>> Elements(int set, int output, std::span<const int64_t> elements);

 private:
  OracleProcess(std::unique_ptr<SandboxedProcess> process, absl::Duration limit)
      : process_(std::move(process)), limit_(limit) {}
  absl::StatusOr<std::string> Ask(const v1::OracleRequest& request, size_t most_bytes);

  std::unique_ptr<SandboxedProcess> process_;
  absl::Duration limit_;
  OracleFacts facts_;
};

}  // namespace hone
