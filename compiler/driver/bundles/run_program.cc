#include "compiler/driver/bundles/run_program.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/driver/exit_code.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/support/status_macros.h"
#include "worker/runner/runner_client.h"

namespace hone {
namespace {

constexpr absl::Duration kLongestRun = absl::Minutes(10);  // of one call
constexpr int64_t kMostMemory = int64_t{64} << 30;         // of address space
constexpr int kSamples = 15;

// What the interpreter finds (an index out of bounds, a read of an unwritten element) is the program's fault.
absl::Status FromInterpreter(absl::Status status) {
  const bool found = absl::IsOutOfRange(status) || absl::IsFailedPrecondition(status);
  return found ? WithExitCode(ExitCode::kProgramFault, std::move(status)) : status;
}

// So is what lowering proves of it.
absl::Status FromCompiler(absl::Status status) {
  return absl::IsInvalidArgument(status) ? WithExitCode(ExitCode::kProgramFault, std::move(status)) : status;
}

absl::StatusOr<std::optional<TimedRuns>> TimedIfAsked(const std::function<absl::Status()>& run, bool time) {
  HONE_RETURN_IF_ERROR(run());
  if (!time) return std::optional<TimedRuns>();
  HONE_ASSIGN_OR_RETURN(const TimedRuns timed, TimeRuns(run));
  return std::optional<TimedRuns>(timed);
}

// A prepared constant takes the place of the one it was made from, as in a bundle.
absl::StatusOr<std::vector<NdArray>> Prepared(const ScheduledProgram& program, const std::vector<NdArray>& args) {
  std::vector<NdArray> prepared = args;
  for (const Prepare& prepare : program.prepares) {
    const size_t param = static_cast<size_t>(prepare.param);
    std::vector<NdArray> pair = RandomArguments(prepare.func, 0, InputKind::kUniform);
    pair[0] = args[param];
    HONE_RETURN_IF_ERROR(FromInterpreter(Interpret(prepare.func, pair)));
    prepared[param] = std::move(pair[1]);
  }
  return prepared;
}

absl::StatusOr<std::optional<TimedRuns>> RunInterpreted(const ScheduledProgram& program, bool time,
                                                        std::vector<NdArray>& args) {
  HONE_ASSIGN_OR_RETURN(std::vector<NdArray> prepared, Prepared(program, args));
  HONE_ASSIGN_OR_RETURN(const std::optional<TimedRuns> timed,
                        TimedIfAsked([&] { return FromInterpreter(Interpret(program.main, prepared)); }, time));
  for (size_t i = args.size() - static_cast<size_t>(program.main.num_outputs()); i < args.size(); ++i) {
    args[i] = std::move(prepared[i]);
  }
  return timed;
}

// The sentence with the names the program gives its parameters: "... past the end of output 0 (`C`)".
std::string WithNames(std::string message, const PrimFunc& func) {
  const size_t outputs = static_cast<size_t>(func.num_outputs()), inputs = func.params.size() - outputs;
  for (size_t i = 0; i < func.params.size(); ++i) {
    const std::string place = i < inputs ? absl::StrCat(" input ", i) : absl::StrCat(" output ", i - inputs);
    if (absl::EndsWith(message, place)) return absl::StrCat(message, " (`", func.params[i].name(), "`)");
  }
  return message;
}

absl::Status FromVerdict(const RunnerVerdict& verdict, const PrimFunc& func) {
  const auto fault = [&](absl::string_view what) {
    return WithExitCode(ExitCode::kProgramFault,
                        absl::OutOfRangeError(
                            absl::StrCat(what, verdict.message.empty() ? "" : ": ", WithNames(verdict.message, func))));
  };
  switch (verdict.kind) {
    case RunnerVerdict::kOk: return absl::OkStatus();
    case RunnerVerdict::kCrashed: return fault("the program crashed");
    case RunnerVerdict::kTimedOut: return fault("the program did not end in time");
    case RunnerVerdict::kKernelFailed: return fault("the program reports a failure");
    case RunnerVerdict::kOutOfMemory: return absl::ResourceExhaustedError(verdict.message);
    default: return absl::InternalError(verdict.message);
  }
}

// A runner that holds the kernel, its first call done and its outputs in `args`.
absl::StatusOr<RunnerClient> RunOnce(const CompiledKernel& kernel, const PrimFunc& func, int threads,
                                     std::vector<NdArray>& args) {
  HONE_ASSIGN_OR_RETURN(const std::string image, LinkImage(std::span<const std::string>(&kernel.object, 1)));
  const size_t inputs = args.size() - static_cast<size_t>(func.num_outputs());
  std::vector<std::string_view> values;
  for (size_t i = 0; i < inputs; ++i) values.emplace_back(args[i].data.data(), args[i].data.size());
  HONE_ASSIGN_OR_RETURN(const InputSets set, InputSets::Create(kernel.set, {values}));
  RunnerJob job{.image = image, .set = kernel.set, .inputs = &set, .threads = threads};
  job.cpu_seconds = static_cast<int>(absl::ToInt64Seconds(kLongestRun)) * threads;
  job.memory_bytes = kMostMemory;
  job.allowed_missing_layers = ~0u;  // the user could run the program without a sandbox as well
  HONE_ASSIGN_OR_RETURN(RunnerClient runner, RunnerClient::Start(job));
  HONE_RETURN_IF_ERROR(FromVerdict(runner.load_verdict(), func));
  HONE_RETURN_IF_ERROR(FromVerdict(runner.Verify(0, kLongestRun), func));
  if (!runner.OutputEdgesIntact(0)) {
    return WithExitCode(ExitCode::kProgramFault,
                        absl::OutOfRangeError("the program wrote beside an output: an index is out of bounds"));
  }
  for (size_t i = inputs; i < args.size(); ++i) {
    const std::string_view output = runner.output(0, static_cast<int>(i - inputs));
    std::copy(output.begin(), output.end(), args[i].data.begin());
  }
  return runner;
}

absl::StatusOr<std::optional<TimedRuns>> RunCompiled(const ScheduledProgram& program, const RunProgramOptions& options,
                                                     std::vector<NdArray>& args) {
  CompileOptions compile;
  compile.threads = options.threads;
  const absl::StatusOr<CompiledKernel> compiled = CompileKernel(program, HostTarget(), compile);
  if (!compiled.ok()) return FromCompiler(compiled.status());
  const CompiledKernel& kernel = *compiled;
  HONE_ASSIGN_OR_RETURN(RunnerClient runner, RunOnce(kernel, program.main, options.threads, args));
  if (!options.time) return std::optional<TimedRuns>();
  // One call alone says how many make a sample.
  const RunnerVerdict first = runner.Time({.warm_up = 1, .samples = 1, .inner = 1}, kLongestRun);
  HONE_RETURN_IF_ERROR(FromVerdict(first, program.main));
  const int calls = InnerRepeats(first.samples.front().us);
  std::vector<TimedSample> taken;
  while (static_cast<int>(taken.size()) < kSamples) {
    const RunnerVerdict verdict = runner.Time({.warm_up = 0, .samples = 1, .inner = calls}, kLongestRun);
    HONE_RETURN_IF_ERROR(FromVerdict(verdict, program.main));
    taken.push_back(verdict.samples.front());
  }
  return std::optional<TimedRuns>(Summarize(taken, calls));
}

}  // namespace

absl::StatusOr<std::optional<TimedRuns>> RunProgram(const ScheduledProgram& program, const RunProgramOptions& options,
                                                    std::vector<NdArray>& args) {
  return options.compiled ? RunCompiled(program, options, args) : RunInterpreted(program, options.time, args);
}

absl::Status RunPlain(const PrimFunc& func, std::vector<NdArray>& args) {
  HONE_ASSIGN_OR_RETURN(const CompiledKernel kernel, CompilePlain(func, HostTarget()));
  return RunOnce(kernel, func, 1, args).status();
}

}  // namespace hone
