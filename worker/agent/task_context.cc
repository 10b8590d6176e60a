#include "worker/agent/task_context.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/support/file.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Small tensors say little: a maximum over too few elements of a row is right unless the largest is missing. Sets of
// them cost next to nothing, so there are as many as a runner takes.
constexpr int kSetsOfLarge = 2, kSetsOfSmall = kRunnerMaxSets;
constexpr int64_t kSmallBytes = 64 << 10;  // of all tensors
constexpr int kSampledElements = 4;        // of every output, that the interpreter computes again

uint64_t SecretSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::vector<int64_t> IndexOf(int64_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return index;
}

// A view of bytes as an array of that type, to read elements from.
NdArray Wrap(DType type, const std::vector<int64_t>& shape, std::string_view bytes) {
  NdArray array(type, shape);
  std::memcpy(array.data.data(), bytes.data(), std::min(bytes.size(), array.data.size()));
  return array;
}

bool HaveSizes(std::span<const KernelTensor> tensors, std::span<const TaskParam> params) {
  return std::ranges::equal(tensors, params, {}, &KernelTensor::bytes, &TaskParam::bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TaskContext>> TaskContext::Create(const v1::Workload& workload,
                                                                 const std::string& target, BuilderPool& builders,
                                                                 absl::Duration run_limit,
                                                                 uint32_t allowed_missing_layers) {
  std::unique_ptr<TaskContext> context(new TaskContext);
  context->text_ = workload.text();
  context->allowed_missing_layers_ = allowed_missing_layers;
  const SandboxedProgram program = {.path = ProgramFolder() + "/hone-oracle",
                                    .allowed_missing = allowed_missing_layers};
  HONE_ASSIGN_OR_RETURN(OracleProcess process, OracleProcess::Start(program, workload.text(), run_limit));
  context->params_ = process.params();
  v1::BuildRequest request;
  request.set_workload(workload.text());
  request.set_oracle(true);
  request.set_target(target);
  request.set_threads(1);
  request.set_symbol("oracle");
  const std::vector<BuilderPool::Built> built = builders.Build({request}, run_limit);
  if (!built[0].reply.error().empty()) {
    const std::string text = absl::StrCat("the oracle cannot be built: ", built[0].reply.error());
    return built[0].infrastructure ? absl::UnavailableError(text) : absl::InvalidArgumentError(text);
  }
  HONE_RETURN_IF_ERROR(context->RunOracle(process, built[0].reply, run_limit));
  for (int set = 0; set < context->num_sets(); ++set) HONE_RETURN_IF_ERROR(context->CheckOracle(process, set));
  return context;
}

absl::Status TaskContext::CheckKernelSet(const KernelSet& set) const {
  const size_t outputs = static_cast<size_t>(set.num_outputs);
  if (set.params.size() == params_.inputs.size() + params_.outputs.size() && outputs == params_.outputs.size() &&
      HaveSizes(InputsOf(set), params_.inputs) && HaveSizes(OutputsOf(set), params_.outputs)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("its parameters are not those of the task");
}

absl::Status TaskContext::RunOracle(OracleProcess& process, const v1::BuildReply& oracle, absl::Duration run_limit) {
  KernelSet set;
  std::string error;
  if (!Parse(oracle.kernel_set(), &set, &error))
    return absl::InternalError(absl::StrCat("the oracle's kernel set: ", error));
  // Two tensors of doubles for each output, as InputSet and output() take for granted.
  bool fits = set.num_outputs == static_cast<int>(2 * params_.outputs.size());
  for (size_t i = 0; fits && i < OutputsOf(set).size(); ++i) {
    fits = OutputsOf(set)[i].bytes == 8 * params_.outputs[i / 2].elements;
  }
  if (!fits) return absl::InternalError("the oracle's kernel set is not one of the workload");
  int64_t bytes = 0;
  for (const TaskParam& param : params_.inputs) bytes += param.bytes();
  for (const TaskParam& param : params_.outputs) bytes += param.bytes();
  const int sets = bytes <= kSmallBytes ? kSetsOfSmall : kSetsOfLarge;
  for (int s = 0; s < sets; ++s) {
    constexpr InputKind kKinds[] = {InputKind::kUniform, InputKind::kInteger, InputKind::kRising, InputKind::kFalling};
    const InputKind kind = kKinds[static_cast<size_t>(s) % std::size(kKinds)];
    const uint64_t seed = SecretSeed();
    std::vector<NdArray> values;
    std::vector<std::string_view> views;
    for (size_t i = 0; i < params_.inputs.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(NdArray value, process.Input(s, static_cast<int>(i), seed, kind));
      values.push_back(std::move(value));
    }
    for (const NdArray& value : values) views.emplace_back(value.data.data(), value.data.size());
    // The last set lies at the start of its pages, so that steps in front of a tensor are seen too.
    HONE_ASSIGN_OR_RETURN(InputSet inputs, InputSet::Create(set, views, s + 1 == sets));
    inputs_.push_back(std::make_unique<InputSet>(std::move(inputs)));
  }
  RunnerJob job;
  job.image = oracle.image();
  job.set = set;
  job.inputs = inputs();
  job.cpu_seconds = static_cast<int>(absl::ToInt64Seconds(run_limit)) * num_sets() + 1;
  job.allowed_missing_layers = allowed_missing_layers_;
  HONE_ASSIGN_OR_RETURN(RunnerClient runner, RunnerClient::Start(job));
  if (!runner.load_verdict().ok())
    return absl::InternalError(absl::StrCat("the oracle: ", runner.load_verdict().message));
  for (int s = 0; s < num_sets(); ++s) {
    const RunnerVerdict verdict = runner.Verify(s, run_limit);
    if (!verdict.ok()) return absl::InternalError(absl::StrCat("the oracle: ", verdict.message));
    std::vector<ExpectedOutput>& expected = expected_.emplace_back();
    for (size_t output = 0; output < params_.outputs.size(); ++output) {
      const std::vector<int64_t>& shape = params_.outputs[output].shape;
      const int index = static_cast<int>(output);
      expected.push_back({Wrap(DType::Float(64), shape, runner.output(s, 2 * index)),
                          Wrap(DType::Float(64), shape, runner.output(s, 2 * index + 1))});
    }
  }
  return absl::OkStatus();
}

absl::Status TaskContext::CheckOracle(OracleProcess& process, int set) const {
  for (size_t output = 0; output < params_.outputs.size(); ++output) {
    const ExpectedOutput& expected = expected_[static_cast<size_t>(set)][output];
    const int64_t elements = expected.value.NumElements();
    if (elements == 0) continue;
    Random random(SecretSeed());
    std::vector<int64_t> flat;
    for (int i = 0; i < kSampledElements; ++i) {
      flat.push_back(static_cast<int64_t>(random.Below(static_cast<uint64_t>(elements))));
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> values, process.Elements(set, static_cast<int>(output), flat));
    const DType type = params_.outputs[output].type;
    for (size_t i = 0; i < flat.size(); ++i) {
      const double error = ErrorOverBound(values[i], expected.value.Get(flat[i]), expected.scale.Get(flat[i]), type,
                                          NumericLevel::kStrict);
      if (error <= 1) continue;
      return absl::InternalError(absl::StrCat("oracle and interpreter differ in output ", output, " at [",
                                              absl::StrJoin(IndexOf(flat[i], expected.value.shape), ", "),
                                              "]: ", expected.value.Get(flat[i]), " and ", values[i]));
    }
  }
  return absl::OkStatus();
}

std::vector<const InputSet*> TaskContext::inputs() const {
  std::vector<const InputSet*> sets;
  for (const auto& set : inputs_) sets.push_back(set.get());
  return sets;
}

double TaskContext::WorstError(const RunnerClient& runner, int set, NumericLevel level, std::string* where) const {
  double worst = 0;
  for (size_t output = 0; output < params_.outputs.size(); ++output) {
    const ExpectedOutput& expected = expected_[static_cast<size_t>(set)][output];
    const DType type = params_.outputs[output].type;
    const std::string_view bytes = runner.output(set, static_cast<int>(output));
    const double* value = expected.value.As<double>();
    const double* scale = expected.scale.As<double>();
    const auto check = [&](int64_t i, double got) {
      const double error = ErrorOverBound(got, value[i], scale[i], type, level);
      if (error <= worst) return;  // a NaN error does not exist: see ErrorOverBound
      worst = error;
      *where = absl::StrCat("output ", output, " at [", absl::StrJoin(IndexOf(i, expected.value.shape), ", "), "] is ",
                            got, ", must be ", value[i]);
    };
    if (type == DType::Float(32)) {
      // Nearly all elements are no worse than the worst so far, which a product and a comparison tell; whatever is not
      // a number, infinite or exact is left to the whole rule.
      const double bound = LevelConstant(level) * Epsilon(type);
      const int64_t elements = std::min<int64_t>(expected.value.NumElements(), static_cast<int64_t>(bytes.size() / 4));
      for (int64_t i = 0; i < elements; ++i) {
        float got = 0;
        std::memcpy(&got, bytes.data() + 4 * i, 4);
        if (scale[i] > 0 && std::abs(double{got} - value[i]) <= worst * bound * scale[i]) continue;
        check(i, got);
      }
      if (elements == expected.value.NumElements()) continue;
    }
    const NdArray got = Wrap(type, expected.value.shape, bytes);
    for (int64_t i = 0; i < got.NumElements(); ++i) check(i, got.Get(i));
  }
  return worst;
}

}  // namespace hone
