#include "worker/oracle/oracle_process.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr size_t kFactsLimit = 1 << 20, kElementsLimit = 1 << 20;
constexpr int kMostParams = 1 << 12, kMostDims = 64;
constexpr int64_t kMostBytes = int64_t{1} << 32;  // of a tensor: the length of a frame

absl::Status Nonsense(const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the workload: its reader answers with ", what, " that make no sense"));
}

absl::StatusOr<TaskParam> ParamOf(const v1::WorkloadFacts::Param& facts) {
  const std::optional<DType> type = ParseDType(facts.dtype());
  if (!type.has_value() || !type->is_scalar() || facts.shape_size() > kMostDims) return Nonsense("parameters");
  TaskParam param{.name = facts.name(), .type = *type, .shape = {}, .elements = 1, .cold = facts.cold()};
  for (const int64_t extent : facts.shape()) {
    if (extent < 0 || (extent > 0 && param.elements > kMostBytes / extent)) return Nonsense("sizes");
    param.shape.push_back(extent);
    param.elements *= extent;
  }
  if (param.bytes() >= kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the workload: param ", param.name, " has ", param.bytes(), " bytes; less than 4 GiB are taken"));
  }
  return param;
}

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
  v1::WorkloadFacts facts;
  if (!facts.ParseFromString(answer)) return Nonsense("facts");
  if (!facts.error().empty()) return absl::InvalidArgumentError(facts.error());
  if (facts.params_size() > kMostParams || facts.outputs() < 1 || facts.outputs() > facts.params_size()) {
    return Nonsense("parameters");
  }
  for (int i = 0; i < facts.params_size(); ++i) {
    HONE_ASSIGN_OR_RETURN(TaskParam param, ParamOf(facts.params(i)));
    const bool output = i >= facts.params_size() - facts.outputs();
    (output ? oracle.params_.outputs : oracle.params_.inputs).push_back(std::move(param));
  }
  if (facts.input_kinds_size() > kMostInputSets || facts.least_sets() < 1 ||
      facts.least_sets() > facts.input_kinds_size()) {
    return Nonsense("input sets");
  }
  for (const int kind : facts.input_kinds()) {
    if (kind < 0 || kind > static_cast<int>(kLastInputKind)) return Nonsense("input sets");
    oracle.plan_.kinds.push_back(static_cast<InputKind>(kind));
  }
  oracle.plan_.least = facts.least_sets();
  return oracle;
}

absl::StatusOr<NdArray> OracleProcess::Input(int set, int param, uint64_t seed, InputKind kind) {
  v1::OracleRequest request;
  request.mutable_input()->set_set(set);
  request.mutable_input()->set_param(param);
  request.mutable_input()->set_seed(seed);
  request.mutable_input()->set_kind(static_cast<int>(kind));
  const TaskParam& input = params_.inputs[static_cast<size_t>(param)];
  HONE_ASSIGN_OR_RETURN(const std::string bytes, Ask(request, static_cast<size_t>(input.bytes())));
  NdArray value(input.type, input.shape);
  if (bytes.size() != value.data.size()) return Nonsense("values");
  std::memcpy(value.data.data(), bytes.data(), bytes.size());
  return value;
}

absl::StatusOr<std::vector<double>> OracleProcess::Elements(int set, int output, std::span<const int64_t> elements) {
  v1::OracleRequest request;
  request.mutable_elements()->set_set(set);
  request.mutable_elements()->set_output(output);
  request.mutable_elements()->mutable_elements()->Assign(elements.begin(), elements.end());
  HONE_ASSIGN_OR_RETURN(const std::string answer, Ask(request, kElementsLimit));
  v1::ElementsReply reply;
  if (!reply.ParseFromString(answer)) return Nonsense("elements");
  if (!reply.error().empty()) return absl::InvalidArgumentError(reply.error());
  if (static_cast<size_t>(reply.values_size()) != elements.size()) return Nonsense("elements");
  return std::vector<double>(reply.values().begin(), reply.values().end());
}

}  // namespace hone
