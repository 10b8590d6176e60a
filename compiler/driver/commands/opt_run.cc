#include "compiler/driver/commands/opt_run.h"

#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler/driver/bundles/run_program.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/npy.h"
#include "compiler/interp/random_input.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

// "NAME=FILE.npy": which parameter, and the file.
struct ParamFile {
  size_t param = 0;
  std::string file;
};
absl::StatusOr<ParamFile> ParseParamFile(absl::string_view flag, const std::string& text, const PrimFunc& func) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", text, ": expected NAME=FILE.npy"));
  }
  std::string names;
  for (size_t i = 0; i < func.params.size(); ++i) {
    if (func.params[i].name() == text.substr(0, equals)) return ParamFile{i, text.substr(equals + 1)};
    absl::StrAppend(&names, names.empty() ? "" : ", ", func.params[i].name());
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", text, ": ", func.name, " has no such parameter; there are ", names));
}

absl::StatusOr<std::vector<NdArray>> Arguments(const OptRun& options, const PrimFunc& func) {
  if (!func.dims.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--run: ", func.name, " has the symbolic size ", func.dims[0].name(),
                                                   "; write a number in its place"));
  }
  std::vector<NdArray> args = RandomArguments(func, options.seed, InputKind::kUniform);
  for (const std::string& text : options.inputs) {
    HONE_ASSIGN_OR_RETURN(const ParamFile given, ParseParamFile("--input", text, func));
    HONE_ASSIGN_OR_RETURN(NdArray value, ReadNpy(given.file));
    const NdArray& wanted = args[given.param];
    if (!(value.dtype == wanted.dtype) || value.shape != wanted.shape) {
      return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": the file holds ", ToText(value.dtype), " in ",
                                                     value.shape.size(), " dimensions, the parameter is ",
                                                     ToText(wanted.dtype), " of another shape or type"));
    }
    args[given.param] = std::move(value);
  }
  return args;
}

void PrintTimes(const OptRun& options, const std::optional<TimedRuns>& timed) {
  if (options.json) {
    nlohmann::ordered_json json = {
        {"run", options.by}, {"threads", options.by == "llvm" ? options.threads : 1}, {"seed", options.seed}};
    if (timed.has_value()) {
      json.update({{"us", timed->us},
                   {"low_us", timed->interval.low},
                   {"high_us", timed->interval.high},
                   {"samples", timed->samples},
                   {"calls_per_sample", timed->calls},
                   {"dropped", timed->dropped},
                   {"noisy", timed->noisy}});
    }
    std::printf("%s\n", json.dump().c_str());
  } else if (timed.has_value()) {
    std::printf("%.2f us (%.2f to %.2f; %d samples of %d calls%s)\n", timed->us, timed->interval.low,
                timed->interval.high, timed->samples, timed->calls, timed->noisy ? "; the machine is busy" : "");
  }
}

}  // namespace

absl::Status RunOnArguments(const OptRun& options, const std::string& file, const PrimFunc& func,
                            const ScheduledProgram& program) {
  HONE_ASSIGN_OR_RETURN(std::vector<NdArray> args, Arguments(options, func));
  std::vector<ParamFile> outputs;
  for (const std::string& text : options.outputs) {
    HONE_ASSIGN_OR_RETURN(outputs.emplace_back(), ParseParamFile("--output", text, func));
  }
  RunProgramOptions run{.compiled = options.by == "llvm", .threads = options.threads, .time = options.time};
  const absl::StatusOr<std::optional<TimedRuns>> timed = RunProgram(program, run, args);
  if (!timed.ok()) return AnnotateKeepingExitCode(timed.status(), file);
  for (const ParamFile& output : outputs) HONE_RETURN_IF_ERROR(WriteNpy(output.file, args[output.param]));
  PrintTimes(options, *timed);
  return absl::OkStatus();
}

}  // namespace hone
