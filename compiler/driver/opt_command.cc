// `hone opt`: the compiler core from a shell. Reads a program, applies a trace and passes, prints or runs the result.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/driver/command.h"
#include "compiler/driver/npy.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/passes.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/invoke.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

struct OptOptions {
  std::string file, func, schedule, run;
  std::vector<std::string> passes, inputs, outputs;
  uint64_t seed = 0;
  int threads = 1;
  bool check = false, time = false, json = false;
};

struct PassRow {
  const char* name;
  std::function<absl::StatusOr<PrimFunc>(PrimFunc)> run;
};

const std::vector<PassRow>& Passes() {
  static const auto* rows = [] {
    auto* all = new std::vector<PassRow>;
    for (const LoweringPass& pass : LoweringPasses()) {
      all->push_back({pass.name, [&pass](PrimFunc func) -> absl::StatusOr<PrimFunc> { return pass.run(std::move(func), LowerOptions()); }});
    }
    all->push_back({"lower", [](PrimFunc func) -> absl::StatusOr<PrimFunc> {
                      HONE_ASSIGN_OR_RETURN(LoweredFunc lowered, Lower(func));
                      return std::move(lowered.func);
                    }});
    return all;
  }();
  return *rows;
}

absl::StatusOr<PrimFunc> Select(const OptOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file));
  absl::StatusOr<std::vector<PrimFunc>> funcs = ParseModule(text);
  if (!funcs.ok()) return Annotate(funcs.status(), options.file);
  std::string names;
  for (const PrimFunc& func : *funcs) {
    if (options.func.empty() ? funcs->size() == 1 : func.name == options.func) return func;
    absl::StrAppend(&names, names.empty() ? "" : ", ", func.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(options.file, options.func.empty() ? ": choose a function with --func: " : absl::StrCat(": no function ", options.func, "; there are: "), names));
}

absl::StatusOr<std::vector<NdArray>> Arguments(const OptOptions& options, const PrimFunc& func) {
  std::vector<NdArray> args = RandomArguments(func, options.seed, InputKind::kUniform);
  for (const std::string& text : options.inputs) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": expected NAME=FILE.npy"));
    bool found = false;
    for (size_t i = 0; i < func.params.size(); ++i) {
      if (func.params[i].name() != text.substr(0, equals)) continue;
      found = true;
      HONE_ASSIGN_OR_RETURN(NdArray value, ReadNpy(text.substr(equals + 1)));
      if (!(value.dtype == args[i].dtype) || value.shape != args[i].shape) {
        return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": the parameter has another type or shape"));
      }
      args[i] = std::move(value);
    }
    if (!found) return absl::InvalidArgumentError(absl::StrCat("--input ", text, ": ", func.name, " has no such parameter"));
  }
  return args;
}

using Clock = std::chrono::steady_clock;
double MicrosecondsSince(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

// One run gives the outputs; with --time the median over at least 11 runs and 0.2 s follows.
absl::StatusOr<double> TimeRuns(const OptOptions& options, const std::function<absl::Status()>& run) {
  const Clock::time_point first = Clock::now();
  HONE_RETURN_IF_ERROR(run());
  if (!options.time) return MicrosecondsSince(first);
  std::vector<double> samples;
  const Clock::time_point start = Clock::now();
  while (samples.size() < 11 || MicrosecondsSince(start) < 2e5) {
    const Clock::time_point begin = Clock::now();
    HONE_RETURN_IF_ERROR(run());
    samples.push_back(MicrosecondsSince(begin));
  }
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2), samples.end());
  return samples[samples.size() / 2];
}

absl::StatusOr<double> RunCompiled(const OptOptions& options, const ScheduledProgram& program, std::vector<NdArray>& args) {
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
  if (const RuntimeError error = invocation->Prepare(tensors); !error.ok()) return absl::InternalError(error.message());
  invocation->Bind(tensors);
  return TimeRuns(options, [&] {
    const int32_t result = invocation->Run();
    return result == 0 ? absl::OkStatus() : absl::InternalError(absl::StrCat("the kernel returned ", result));
  });
}

absl::Status Run(const OptOptions& options, const PrimFunc& func, const ScheduledProgram& program) {
  HONE_ASSIGN_OR_RETURN(std::vector<NdArray> args, Arguments(options, func));
  absl::StatusOr<double> us;
  if (options.run == "interp") {
    if (!program.prepares.empty()) {
      return absl::InvalidArgumentError("--run interp: the trace packs constants, which the interpreter does not do; use --run llvm");
    }
    us = TimeRuns(options, [&] { return Interpret(program.main, args); });
  } else {
    us = RunCompiled(options, program, args);
  }
  HONE_RETURN_IF_ERROR(us.status());
  for (const std::string& text : options.outputs) {
    const size_t equals = text.find('=');
    bool found = false;
    for (size_t i = 0; equals != std::string::npos && i < func.params.size(); ++i) {
      if (func.params[i].name() != text.substr(0, equals)) continue;
      found = true;
      HONE_RETURN_IF_ERROR(WriteNpy(text.substr(equals + 1), args[i]));
    }
    if (!found) return absl::InvalidArgumentError(absl::StrCat("--output ", text, ": expected NAME=FILE.npy with a parameter's name"));
  }
  if (options.json) {
    std::printf("%s\n", nlohmann::ordered_json({{"us", *us}, {"run", options.run}, {"threads", options.threads}}).dump().c_str());
  } else if (options.time) {
    std::printf("%.2f us\n", *us);
  }
  return absl::OkStatus();
}

absl::Status Opt(const OptOptions& options) {
  HONE_ASSIGN_OR_RETURN(const PrimFunc func, Select(options));
  ScheduledProgram program{func, {}};
  if (options.check) HONE_RETURN_IF_ERROR(Verify(func));
  if (!options.schedule.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.schedule));
    absl::StatusOr<Trace> trace = ParseTrace(text);
    if (!trace.ok()) return Annotate(trace.status(), options.schedule);
    absl::StatusOr<Schedule> schedule = Replay(*trace, func);
    if (!schedule.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(options.schedule, ": ", std::string(schedule.status().message())));
    }
    program = schedule->Program();
    if (options.check) HONE_RETURN_IF_ERROR(Verify(program.main));
  }
  for (const std::string& name : options.passes) {
    const auto row = std::find_if(Passes().begin(), Passes().end(), [&](const PassRow& pass) { return name == pass.name; });
    if (row == Passes().end()) {
      std::string names;
      for (const PassRow& pass : Passes()) absl::StrAppend(&names, names.empty() ? "" : ", ", pass.name);
      return absl::InvalidArgumentError(absl::StrCat("--pass ", name, ": there are ", names));
    }
    HONE_ASSIGN_OR_RETURN(program.main, row->run(program.main));
  }
  if (!options.run.empty()) return Run(options, func, program);
  std::printf("%s", ToText(program.main).c_str());
  for (const Prepare& prepare : program.prepares) std::printf("\n%s", ToText(prepare.func).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddOptCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "Read a tensor program, schedule it, print or run it.");
  command->add_option("file", options->file, "a program in the TVMScript dialect")->required();
  command->add_option("--func", options->func, "which function, when there are several");
  command->add_option("--schedule", options->schedule, "a trace to apply");
  command->add_option("--pass", options->passes, "passes to run, in this order");
  command->add_flag("--check", options->check, "verify the program before and after");
  command->add_option("--run", options->run, "run it: interp or llvm")->check(CLI::IsMember({"interp", "llvm"}));
  command->add_option("--input", options->inputs, "NAME=FILE.npy; parameters without one get seeded random values");
  command->add_option("--output", options->outputs, "NAME=FILE.npy");
  command->add_option("--seed", options->seed, "of the random inputs")->capture_default_str();
  command->add_option("--threads", options->threads, "threads to run with")->capture_default_str();
  command->add_flag("--time", options->time, "print the median time of a run");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(Examples({"hone opt matmul.py --schedule trace.py --check", "hone opt matmul.py --schedule trace.py --pass lower",
                            "hone opt matmul.py --schedule trace.py --run llvm --time --threads 2"}));
  command->callback([options, chosen] { *chosen = [options] { return Opt(*options); }; });
}

}  // namespace hone
