#include "worker/oracle/read_answers.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "hone/v1/oracle.pb.h"

namespace hone {
namespace {

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

absl::StatusOr<OracleFacts> ReadFacts(const std::string& answer) {
  v1::WorkloadFacts facts;
  if (!facts.ParseFromString(answer)) return Nonsense("facts");
  if (!facts.error().empty()) return absl::InvalidArgumentError(facts.error());
  if (facts.params_size() > kMostParams || facts.outputs() < 1 || facts.outputs() > facts.params_size()) {
    return Nonsense("parameters");
  }
  OracleFacts read;
  for (int i = 0; i < facts.params_size(); ++i) {
    HONE_ASSIGN_OR_RETURN(TaskParam param, ParamOf(facts.params(i)));
    const bool output = i >= facts.params_size() - facts.outputs();
    (output ? read.params.outputs : read.params.inputs).push_back(std::move(param));
  }
  if (facts.input_kinds_size() > kMostInputSets || facts.least_sets() < 1 ||
      facts.least_sets() > facts.input_kinds_size()) {
    return Nonsense("input sets");
  }
  for (const int kind : facts.input_kinds()) {
    if (kind < 0 || kind > static_cast<int>(kLastInputKind)) return Nonsense("input sets");
    read.plan.kinds.push_back(static_cast<InputKind>(kind));
  }
  read.plan.least = facts.least_sets();
  return read;
}

absl::StatusOr<NdArray> ReadInput(const std::string& answer, const TaskParam& param) {
  if (answer.size() != static_cast<size_t>(param.bytes())) return Nonsense("values");
  NdArray value(param.type, param.shape);
  std::memcpy(value.data.data(), answer.data(), answer.size());
  return value;
}

absl::StatusOr<std::vector<double>> ReadElements(const std::string& answer, size_t elements) {
  v1::ElementsReply reply;
  if (!reply.ParseFromString(answer)) return Nonsense("elements");
  if (!reply.error().empty()) return absl::InvalidArgumentError(reply.error());
  if (static_cast<size_t>(reply.values_size()) != elements) return Nonsense("elements");
  return std::vector<double>(reply.values().begin(), reply.values().end());
}

}  // namespace hone
