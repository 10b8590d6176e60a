#include "worker/oracle/oracle_process.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr size_t kFactsLimit = 1 << 20, kElementsLimit = 1 << 20;

}  // namespace

absl::StatusOr<std::string> OracleProcess::Ask(const v1::OracleRequest& request, size_t most_bytes) {
  absl::Status status = process_->Send(request.SerializeAsString(), limit_);
  if (status.ok()) {
    absl::StatusOr<std::string> answer = process_->Receive(most_bytes, limit_);
    if (answer.ok()) return answer;
    status = answer.status();
  }
  const std::string why = absl::IsDeadlineExceeded(status)
                              ? absl::StrCat("took longer than ", absl::FormatDuration(limit_))
                              : std::string(status.message());
  return absl::InvalidArgumentError(absl::StrCat("the workload cannot be interpreted: its process ", why));
}

absl::StatusOr<OracleProcess> OracleProcess::Start(const SandboxedProgram& program, const std::string& workload,
                                                   absl::Duration limit) {
  absl::StatusOr<std::unique_ptr<SandboxedProcess>> process = SandboxedProcess::Start(program);
  if (absl::IsPermissionDenied(process.status())) return process.status();
  if (!process.ok()) return absl::UnavailableError(process.status().message());
  OracleProcess oracle(*std::move(process), limit);
  v1::OracleRequest request;
  request.set_workload(workload);
  HONE_ASSIGN_OR_RETURN(const std::string answer, oracle.Ask(request, kFactsLimit));
  HONE_ASSIGN_OR_RETURN(oracle.facts_, ReadFacts(answer));
  return oracle;
}

absl::StatusOr<NdArray> OracleProcess::Input(int set, int param, uint64_t seed, InputKind kind) {
  v1::OracleRequest request;
  request.mutable_input()->set_set(set);
  request.mutable_input()->set_param(param);
  request.mutable_input()->set_seed(seed);
  request.mutable_input()->set_kind(static_cast<int>(kind));
  const TaskParam& input = facts_.params.inputs[static_cast<size_t>(param)];
  HONE_ASSIGN_OR_RETURN(const std::string bytes, Ask(request, static_cast<size_t>(input.bytes())));
  return ReadInput(bytes, input);
}

absl::StatusOr<std::vector<double>> OracleProcess::Elements(int set, int output, std::span<const int64_t> elements) {
  v1::OracleRequest request;
  request.mutable_elements()->set_set(set);
  request.mutable_elements()->set_output(output);
  request.mutable_elements()->mutable_elements()->Assign(elements.begin(), elements.end());
  HONE_ASSIGN_OR_RETURN(const std::string answer, Ask(request, kElementsLimit));
  return ReadElements(answer, elements.size());
}

}  // namespace hone
