#include "worker/agent/trials/task_context.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/support/file.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/target.h"

namespace hone {
namespace {

// More sets than the least are made as far as they take no longer than that, for all of them.
constexpr double kMoreSetsSeconds = 0.5;
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of all sets beyond the least
constexpr int kSampledElements = 4;               // of every output, that the interpreter computes again
// A bound decides an element where it is less than this share of the output's typical size, and of every output it must
// decide this share of the elements, each on some set.
constexpr double kDecisiveBound = 0.125, kLeastDecided = 0.5;

static_assert(kMostInputSets <= kRunnerMaxSets);

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

std::vector<std::vector<std::string_view>> Bytes(std::span<const std::vector<NdArray>> sets) {
  std::vector<std::vector<std::string_view>> bytes;
  for (const std::vector<NdArray>& values : sets) {
    std::vector<std::string_view>& of_set = bytes.emplace_back();
    for (const NdArray& value : values) of_set.emplace_back(value.data.data(), value.data.size());
  }
  return bytes;
}

bool HaveSizes(std::span<const KernelTensor> tensors, std::span<const TaskParam> params) {
  return std::ranges::equal(tensors, params, {}, &KernelTensor::bytes, &TaskParam::bytes);
}

// All of the host: nobody measures beside whoever prepares a task (turn_lock.h).
int OracleThreads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace

absl::StatusOr<std::unique_ptr<TaskContext>> TaskContext::Create(const v1::Workload& workload,
                                                                 const std::string& target, Builders& builders,
                                                                 absl::Duration run_limit, TaskRunners runners) {
  std::unique_ptr<TaskContext> context(new TaskContext);
  context->text_ = workload.text();
  context->runners_ = std::move(runners);
  const SandboxedProgram program = {.path = ProgramFolder() + "/hone-oracle",
                                    .allowed_missing = context->runners_.allowed_missing_layers};
  HONE_ASSIGN_OR_RETURN(OracleProcess process, OracleProcess::Start(program, workload.text(), run_limit));
  context->params_ = process.params();
  v1::BuildRequest request;
  request.set_workload(workload.text());
  request.set_oracle(true);
  request.set_image_only(true);
  request.set_target(!context->runners_.device.empty() ? HostTarget().text : target);
  request.set_threads(OracleThreads());
  request.set_symbol("oracle");
  const std::vector<v1::BuildOutcome> built = builders.Build({request}, run_limit);
  if (!built[0].reply().error().empty()) {
    const std::string text = absl::StrCat("the oracle cannot be built: ", built[0].reply().error());
    return built[0].infrastructure() ? absl::UnavailableError(text) : absl::InvalidArgumentError(text);
  }
  HONE_RETURN_IF_ERROR(context->MakeSets(process, built[0].reply(), run_limit));
  for (int set = 0; set < context->num_sets(); ++set) HONE_RETURN_IF_ERROR(context->CheckOracle(process, set));
  HONE_RETURN_IF_ERROR(context->CheckBoundsDecide());
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

absl::Status TaskContext::MakeSets(OracleProcess& process, const v1::BuildReply& oracle, absl::Duration run_limit) {
  KernelSet set;
  std::string error;
  if (!Parse(oracle.kernel_set(), &set, &error))
    return absl::InternalError(absl::StrCat("the oracle's kernel set: ", error));
  // Two or three tensors of doubles for each output, as InputSets and output() take for granted.
  const size_t outputs = params_.outputs.size();
  bool fits = OutputsOf(set).size() == 2 * outputs || OutputsOf(set).size() == 3 * outputs;
  for (size_t i = 0; fits && i < OutputsOf(set).size(); ++i) {
    fits = OutputsOf(set)[i].bytes == 8 * params_.outputs[i < 2 * outputs ? i / 2 : i - 2 * outputs].elements;
  }
  if (!fits) return absl::InternalError("the oracle's kernel set is not one of the workload");
  plan_ = process.plan();
  seed_ = SecretSeed();
  std::vector<std::vector<NdArray>> values;
  const Clock::time_point start = Clock::now();
  HONE_RETURN_IF_ERROR(RunOracle(process, set, oracle, run_limit, plan_.least, &values));
  const double set_seconds = SecondsSince(start) / plan_.least;
  int64_t set_bytes = 0;
  for (const KernelTensor& param : set.params) set_bytes += param.bytes;
  int more = static_cast<int>(plan_.kinds.size()) - plan_.least;
  while (more > 0 && (more * set_seconds > kMoreSetsSeconds || more * set_bytes > kMostBytes)) --more;
  if (more > 0) HONE_RETURN_IF_ERROR(RunOracle(process, set, oracle, run_limit, plan_.least + more, &values));
  HONE_ASSIGN_OR_RETURN(inputs_, InputSets::Create(set, Bytes(values)));
  return absl::OkStatus();
}

absl::Status TaskContext::RunOracle(OracleProcess& process, const KernelSet& set, const v1::BuildReply& oracle,
                                    absl::Duration run_limit, int end, std::vector<std::vector<NdArray>>* values) {
  const size_t begin = values->size();
  for (int s = static_cast<int>(begin); s < end; ++s) {
    std::vector<NdArray>& of_set = values->emplace_back();
    for (int i = 0; i < static_cast<int>(params_.inputs.size()); ++i) {
      // Inputs of one shape must not be equal, or one could stand for the other.
      const uint64_t seed = seed_ + static_cast<uint64_t>(s) + (static_cast<uint64_t>(i) << 32);
      HONE_ASSIGN_OR_RETURN(NdArray value, process.Input(s, i, seed, plan_.kinds[static_cast<size_t>(s)]));
      of_set.push_back(std::move(value));
    }
  }
  HONE_ASSIGN_OR_RETURN(const InputSets inputs, InputSets::Create(set, Bytes(std::span(*values).subspan(begin))));
  RunnerJob job;
  job.image = oracle.image();
  job.set = set;
  job.inputs = &inputs;
  job.threads = OracleThreads();
  job.cpu_seconds = static_cast<int>(absl::ToInt64Seconds(run_limit)) * inputs.count() * job.threads + 1;
  job.allowed_missing_layers = runners_.allowed_missing_layers;
  if (runners_.device.empty()) job.program = runners_.program;
  HONE_ASSIGN_OR_RETURN(RunnerClient runner, RunnerClient::Start(job));
  if (!runner.load_verdict().ok())
    return absl::InternalError(absl::StrCat("the oracle: ", runner.load_verdict().message));
  for (int s = 0; s < inputs.count(); ++s) {
    const RunnerVerdict verdict = runner.Verify(s, run_limit);
    if (!verdict.ok()) return absl::InternalError(absl::StrCat("the oracle: ", verdict.message));
    std::vector<ExpectedOutput>& expected = expected_.emplace_back();
    for (size_t output = 0; output < params_.outputs.size(); ++output) {
      const std::vector<int64_t>& shape = params_.outputs[output].shape;
      const int index = static_cast<int>(output);
      const auto tensor = [&](int number) { return Wrap(DType::Float(64), shape, runner.output(s, number)); };
      ExpectedOutput& made =
          expected.emplace_back(ExpectedOutput{tensor(2 * index), tensor(2 * index + 1), std::nullopt});
      const int outputs = static_cast<int>(params_.outputs.size());
      if (set.num_outputs == 3 * outputs) made.default_scale = tensor(2 * outputs + index);
    }
  }
  return absl::OkStatus();
}

absl::Status TaskContext::CheckBoundsDecide() const {
  for (size_t output = 0; output < params_.outputs.size(); ++output) {
    const DType type = params_.outputs[output].type;
    std::vector<char> decided;
    for (const std::vector<ExpectedOutput>& of_set : expected_) {
      const ExpectedOutput& expected = of_set[output];
      const int64_t elements = expected.value.NumElements();
      const double* value = expected.value.As<double>();
      const double* scale = expected.scale_at(NumericLevel::kDefault).As<double>();
      decided.resize(static_cast<size_t>(elements), 0);
      double squares = 0;
      int64_t finite = 0;
      for (int64_t i = 0; i < elements; ++i) {
        if (!std::isfinite(value[i])) continue;
        squares += value[i] * value[i];
        ++finite;
      }
      const double size = finite == 0 ? 0 : std::sqrt(squares / static_cast<double>(finite));
      for (int64_t i = 0; i < elements; ++i) {
        // An element that is exact, infinite or no number is decided unless anything may stand there.
        const bool by_class = std::isfinite(scale[i]) && (scale[i] == 0 || !std::isfinite(value[i]));
        const double off = value[i] + kDecisiveBound * size;  // a value that ought to be refused
        decided[static_cast<size_t>(i)] |=
            by_class || ErrorOverBound(off, value[i], scale[i], type, NumericLevel::kDefault) > 1;
      }
    }
    const auto share =
        static_cast<double>(std::ranges::count(decided, 1)) / static_cast<double>(std::max<size_t>(1, decided.size()));
    if (share >= kLeastDecided || decided.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("kernels of this task cannot be verified: the error bound of output ", output, " is wider than ",
                     "its values for ", 100 - static_cast<int>(100 * share), " % of the elements (at most ",
                     100 - static_cast<int>(100 * kLeastDecided), " % may be); compute in a wider type"));
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

std::vector<int> TaskContext::SetsOfTrial() const {
  if (plan_.least < static_cast<int>(plan_.kinds.size()) && num_sets() > 2) {
    return {1 + static_cast<int>(Random(SecretSeed()).Below(static_cast<uint64_t>(num_sets() - 1))), 0};
  }
  std::vector<int> sets(static_cast<size_t>(num_sets()));
  std::iota(sets.rbegin(), sets.rend(), 0);
  return sets;
}

double TaskContext::WorstError(const RunnerClient& runner, int set, NumericLevel level, std::string* where) const {
  double worst = 0;
  for (size_t output = 0; output < params_.outputs.size(); ++output) {
    const ExpectedOutput& expected = expected_[static_cast<size_t>(set)][output];
    const DType type = params_.outputs[output].type;
    const std::string_view bytes = runner.output(set, static_cast<int>(output));
    const double* value = expected.value.As<double>();
    const double* scale = expected.scale_at(level).As<double>();
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
