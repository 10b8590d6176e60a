#include "worker/oracle/workload_reader.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/annotations.h"
#include "compiler/text/text.h"
#include "worker/oracle/input_plan.h"

namespace hone {

v1::WorkloadFacts WorkloadReader::Read(const std::string& workload) {
  v1::WorkloadFacts facts;
  absl::StatusOr<PrimFunc> func = ParsePrimFunc(workload);
  if (!func.ok()) {
    facts.set_error(std::string(func.status().message()));
    return facts;
  }
  for (size_t p = 0; p < func->params.size(); ++p) {
    const Buffer& buffer = func->params[p];
    v1::WorkloadFacts::Param& param = *facts.add_params();
    param.set_cold(IsCold(*func, static_cast<int>(p)));
    param.set_name(buffer.name());
    param.set_dtype(ToText(buffer.type()));
    for (const Expr& extent : buffer.shape()) {
      const std::optional<int64_t> size = ConstantValue(extent);
      if (!size.has_value()) {
        facts.set_error(absl::StrCat("param ", buffer.name(), " has a symbolic size"));
        return facts;
      }
      param.add_shape(*size);
    }
  }
  facts.set_outputs(func->num_outputs());
  const InputPlan plan = PlanInputs(*func);
  for (const InputKind kind : plan.kinds) facts.add_input_kinds(static_cast<int>(kind));
  facts.set_least_sets(plan.least);
  func_ = *std::move(func);
  num_inputs_ = func_.params.size() - static_cast<size_t>(func_.num_outputs());
  read_ = true;
  return facts;
}

bool WorkloadReader::DrawInput(const v1::InputRequest& request, std::string* bytes) {
  const size_t set = static_cast<size_t>(request.set()), param = static_cast<size_t>(request.param());
  if (param >= num_inputs_ || request.kind() < 0 || request.kind() > UINT8_MAX) return false;
  if (set == sets_.size()) sets_.emplace_back();
  if (set + 1 != sets_.size() || param != sets_[set].size()) return false;
  NdArray value = RandomInput(func_, request.param(), request.seed(), static_cast<InputKind>(request.kind()));
  bytes->assign(value.data.data(), value.data.size());
  sets_[set].push_back(std::move(value));
  return true;
}

bool WorkloadReader::Interpret(const v1::ElementsRequest& request, v1::ElementsReply* reply) const {
  const size_t set = static_cast<size_t>(request.set()), output = static_cast<size_t>(request.output());
  if (set >= sets_.size() || sets_[set].size() != num_inputs_ || output + num_inputs_ >= func_.params.size()) {
    return false;
  }
  const std::vector<Expr>& shape = func_.params[num_inputs_ + output].shape();
  std::vector<std::vector<int64_t>> where;
  for (int64_t flat : request.elements()) {
    std::vector<int64_t> index(shape.size());
    for (size_t d = shape.size(); d-- > 0;) {
      const int64_t extent = ConstantValue(shape[d]).value_or(0);
      if (flat < 0 || extent < 1) return false;
      index[d] = flat % extent;
      flat /= extent;
    }
    if (flat != 0) return false;
    where.push_back(std::move(index));
  }
  // In double, as the oracle computes: a sum of floats that takes its terms one after the other may lose all that are
  // far smaller than the first.
  const absl::StatusOr<std::vector<double>> values = InterpretElements(
      func_, sets_[set], request.output(), where, {.double_accumulation = true, .max_steps = most_steps_});
  if (values.ok()) {
    reply->mutable_values()->Assign(values->begin(), values->end());
  } else if (absl::IsDeadlineExceeded(values.status())) {
    reply->set_error(absl::StrCat("the workload cannot be verified: ", std::string(values.status().message()), ", for ",
                                  where.size(), " elements of output ", request.output(),
                                  "; tune a smaller shape of it"));
  } else {
    reply->set_error(std::string(values.status().message()));
  }
  return true;
}

bool WorkloadReader::Answer(const v1::OracleRequest& request, std::string* answer) {
  if (read_ == request.has_workload()) return false;
  if (request.has_workload()) {
    *answer = Read(request.workload()).SerializeAsString();
    return true;
  }
  if (request.has_input()) return DrawInput(request.input(), answer);
  v1::ElementsReply reply;
  if (!request.has_elements() || !Interpret(request.elements(), &reply)) return false;
  *answer = reply.SerializeAsString();
  return true;
}

}  // namespace hone
