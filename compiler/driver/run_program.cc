#include "compiler/driver/run_program.h"

#include "absl/strings/str_cat.h"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/invoke.h"

namespace hone {
namespace {

absl::StatusOr<std::optional<TimedRuns>> RunOnce(const std::function<absl::Status()>& run, bool time) {
  HONE_RETURN_IF_ERROR(run());
  if (!time) return std::optional<TimedRuns>();
  HONE_ASSIGN_OR_RETURN(const TimedRuns timed, TimeRuns(run));
  return std::optional<TimedRuns>(timed);
}

// A prepared constant takes the place of the one it was made from, as whoever deploys the program does it.
absl::StatusOr<std::vector<NdArray>> Prepared(const ScheduledProgram& program, const std::vector<NdArray>& args) {
  std::vector<NdArray> prepared = args;
  for (const Prepare& prepare : program.prepares) {
    const size_t param = static_cast<size_t>(prepare.param);
    std::vector<NdArray> pair = RandomArguments(prepare.func, 0, InputKind::kUniform);
    pair[0] = args[param];
    HONE_RETURN_IF_ERROR(Interpret(prepare.func, pair));
    prepared[param] = std::move(pair[1]);
  }
  return prepared;
}

absl::StatusOr<std::optional<TimedRuns>> RunInterpreted(const ScheduledProgram& program, bool time,
                                                        std::vector<NdArray>& args) {
  HONE_ASSIGN_OR_RETURN(std::vector<NdArray> prepared, Prepared(program, args));
  HONE_ASSIGN_OR_RETURN(const std::optional<TimedRuns> timed,
                        RunOnce([&] { return Interpret(program.main, prepared); }, time));
  for (size_t i = args.size() - static_cast<size_t>(program.main.num_outputs()); i < args.size(); ++i) {
    args[i] = std::move(prepared[i]);
  }
  return timed;
}

absl::StatusOr<std::optional<TimedRuns>> RunCompiled(const ScheduledProgram& program, const RunProgramOptions& options,
                                                     std::vector<NdArray>& args) {
  CompileOptions compile;
  compile.threads = options.threads;
  HONE_ASSIGN_OR_RETURN(const CompiledKernel kernel, CompileKernel(program, HostTarget(), compile));
  HONE_ASSIGN_OR_RETURN(const std::string bytes, LinkImage(std::span<const std::string>(&kernel.object, 1)));
  auto image = Image::Load(bytes);
  if (!image.ok()) return absl::InternalError(image.error().message());
  auto pool = ThreadPool::Create(options.threads);
  if (!pool.ok()) return absl::InternalError(pool.error().message());
  auto invocation = Invocation::Create(*image, kernel.set, **pool);
  if (!invocation.ok()) return absl::InternalError(invocation.error().message());
  std::vector<void*> tensors;
  for (NdArray& arg : args) tensors.push_back(arg.data.data());
  if (const RuntimeError error = invocation->Prepare(tensors); !error.ok()) {
    return absl::InternalError(error.message());
  }
  invocation->Bind(tensors);
  return RunOnce(
      [&] {
        const int32_t result = invocation->Run();
        return result == 0 ? absl::OkStatus() : absl::InternalError(absl::StrCat("the kernel returned ", result));
      },
      options.time);
}

}  // namespace

absl::StatusOr<std::optional<TimedRuns>> RunProgram(const ScheduledProgram& program, const RunProgramOptions& options,
                                                    std::vector<NdArray>& args) {
  return options.compiled ? RunCompiled(program, options, args) : RunInterpreted(program, options.time, args);
}

}  // namespace hone
