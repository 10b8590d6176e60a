#include "worker/agent/task_context.h"

#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/text.h"
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

std::vector<int64_t> StaticShape(const Buffer& buffer) {
  std::vector<int64_t> shape;
  for (const Expr& extent : buffer.shape()) shape.push_back(ConstantValue(extent).value_or(0));
  return shape;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TaskContext>> TaskContext::Create(const v1::Workload& workload,
                                                                 const std::string& target, BuilderPool& builders,
                                                                 absl::Duration run_limit) {
  std::unique_ptr<TaskContext> context(new TaskContext);
  context->text_ = workload.text();
  HONE_ASSIGN_OR_RETURN(context->func_, ParsePrimFunc(workload.text()));
  for (const Buffer& param : context->func_.params) {
    if (!param.NumElements().has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("param ", param.name(), " has a symbolic size"));
    }
  }
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
  HONE_RETURN_IF_ERROR(context->RunOracle(built[0].reply, run_limit));
  for (int set = 0; set < context->num_sets(); ++set) HONE_RETURN_IF_ERROR(context->CheckOracle(set));
  context->values_.clear();  // the runners have their own copy
  return context;
}

absl::Status TaskContext::RunOracle(const v1::BuildReply& oracle, absl::Duration run_limit) {
  KernelSet set;
  std::string error;
  if (!Parse(oracle.kernel_set(), &set, &error))
    return absl::InternalError(absl::StrCat("the oracle's kernel set: ", error));
  const size_t num_inputs = func_.params.size() - static_cast<size_t>(func_.num_outputs());
  int64_t bytes = 0;
  for (const Buffer& param : func_.params) bytes += *param.NumElements() * param.type().bytes();
  const int sets = bytes <= kSmallBytes ? kSetsOfSmall : kSetsOfLarge;
  for (int s = 0; s < sets; ++s) {
    constexpr InputKind kKinds[] = {InputKind::kUniform, InputKind::kInteger, InputKind::kRising, InputKind::kFalling};
    const InputKind kind = kKinds[static_cast<size_t>(s) % std::size(kKinds)];
    const uint64_t seed = SecretSeed();
    std::vector<NdArray>& values = values_.emplace_back();
    std::vector<std::string_view> views;
    for (size_t i = 0; i < num_inputs; ++i) values.push_back(RandomInput(func_, static_cast<int>(i), seed, kind));
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
  HONE_ASSIGN_OR_RETURN(RunnerClient runner, RunnerClient::Start(job));
  if (!runner.load_verdict().ok())
    return absl::InternalError(absl::StrCat("the oracle: ", runner.load_verdict().message));
  for (int s = 0; s < num_sets(); ++s) {
    const RunnerVerdict verdict = runner.Verify(s, run_limit);
    if (!verdict.ok()) return absl::InternalError(absl::StrCat("the oracle: ", verdict.message));
    std::vector<ExpectedOutput>& expected = expected_.emplace_back();
    for (int output = 0; output < func_.num_outputs(); ++output) {
      const std::vector<int64_t> shape = StaticShape(func_.params[num_inputs + static_cast<size_t>(output)]);
      expected.push_back({Wrap(DType::Float(64), shape, runner.output(s, 2 * output)),
                          Wrap(DType::Float(64), shape, runner.output(s, 2 * output + 1))});
    }
  }
  return absl::OkStatus();
}

absl::Status TaskContext::CheckOracle(int set) const {
  const size_t num_inputs = func_.params.size() - static_cast<size_t>(func_.num_outputs());
  for (int output = 0; output < func_.num_outputs(); ++output) {
    const ExpectedOutput& expected = expected_[static_cast<size_t>(set)][static_cast<size_t>(output)];
    const int64_t elements = expected.value.NumElements();
    if (elements == 0) continue;
    Random random(SecretSeed());
    std::vector<int64_t> flat;
    std::vector<std::vector<int64_t>> where;
    for (int i = 0; i < kSampledElements; ++i) {
      flat.push_back(static_cast<int64_t>(random.Below(static_cast<uint64_t>(elements))));
      where.push_back(IndexOf(flat.back(), expected.value.shape));
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> values,
                          InterpretElements(func_, values_[static_cast<size_t>(set)], output, where));
    const DType type = func_.params[num_inputs + static_cast<size_t>(output)].type();
    for (size_t i = 0; i < flat.size(); ++i) {
      const double error = ErrorOverBound(values[i], expected.value.Get(flat[i]), expected.scale.Get(flat[i]), type,
                                          NumericLevel::kStrict);
      if (error <= 1) continue;
      return absl::InternalError(absl::StrCat("oracle and interpreter differ in output ", output, " at [",
                                              absl::StrJoin(where[i], ", "), "]: ", expected.value.Get(flat[i]),
                                              " and ", values[i]));
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
  const size_t num_inputs = func_.params.size() - static_cast<size_t>(func_.num_outputs());
  double worst = 0;
  for (int output = 0; output < func_.num_outputs(); ++output) {
    const ExpectedOutput& expected = expected_[static_cast<size_t>(set)][static_cast<size_t>(output)];
    const Buffer& param = func_.params[num_inputs + static_cast<size_t>(output)];
    const std::string_view bytes = runner.output(set, output);
    const double* value = expected.value.As<double>();
    const double* scale = expected.scale.As<double>();
    const auto check = [&](int64_t i, double got) {
      const double error = ErrorOverBound(got, value[i], scale[i], param.type(), level);
      if (error <= worst) return;  // a NaN error does not exist: see ErrorOverBound
      worst = error;
      *where = absl::StrCat("output ", output, " at [", absl::StrJoin(IndexOf(i, expected.value.shape), ", "), "] is ",
                            got, ", must be ", value[i]);
    };
    if (param.type() == DType::Float(32)) {
      // Nearly all elements are no worse than the worst so far, which a product and a comparison tell; whatever is not
      // a number, infinite or exact is left to the whole rule.
      const double bound = LevelConstant(level) * Epsilon(param.type());
      const int64_t elements = std::min<int64_t>(expected.value.NumElements(), static_cast<int64_t>(bytes.size() / 4));
      for (int64_t i = 0; i < elements; ++i) {
        float got = 0;
        std::memcpy(&got, bytes.data() + 4 * i, 4);
        if (scale[i] > 0 && std::abs(double{got} - value[i]) <= worst * bound * scale[i]) continue;
        check(i, got);
      }
      if (elements == expected.value.NumElements()) continue;
    }
    const NdArray got = Wrap(param.type(), expected.value.shape, bytes);
    for (int64_t i = 0; i < got.NumElements(); ++i) check(i, got.Get(i));
  }
  return worst;
}

}  // namespace hone
