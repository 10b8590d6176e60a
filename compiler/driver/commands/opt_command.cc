// `hone opt`: the compiler core from a shell. Reads a program, applies a trace and passes, prints or runs the result.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/commands/opt_check.h"
#include "compiler/driver/commands/opt_module.h"
#include "compiler/driver/commands/opt_passes.h"
#include "compiler/driver/commands/opt_run.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/models/graph_file.h"
#include "compiler/graph/module_of_graph.h"
#include "compiler/ir/module.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"

namespace hone {
namespace {

struct OptOptions {
  std::string file, func, schedule, target, constants, write_constants;
  std::vector<std::string> passes;
  OptRun run;
  bool check = false;
};

template <class Function>
bool HasA(const IrModule& module) {
  return std::ranges::any_of(module.functions, [](const auto& f) { return std::holds_alternative<Function>(f); });
}

// InvalidArgument when there is nothing in the module that one of the passes is for.
absl::Status CheckPassesApply(const OptOptions& options, const IrModule& module, const ChosenPasses& chosen) {
  const bool prints_all = options.schedule.empty() && options.run.by.empty();  // else: one tensor function
  if (!chosen.graph.empty() && !(HasA<GraphFunc>(module) && prints_all)) {
    return absl::InvalidArgumentError(absl::StrCat("--pass ", chosen.graph[0]->name,
                                                   " is for graph functions; for tensor functions there are ",
                                                   TensorPassNames()));
  }
  if (!chosen.tensor.empty() && !HasA<PrimFunc>(module)) {
    return absl::InvalidArgumentError(absl::StrCat("--pass ", chosen.tensor[0]->name,
                                                   " is for tensor functions; for graph functions there are ",
                                                   GraphPassNames()));
  }
  if (!chosen.graph.empty() && !options.func.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--pass ", chosen.graph[0]->name,
                                                   " is for a graph function and all that it calls; leave --func out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ScheduledProgram> ApplyTrace(const OptOptions& options, const PrimFunc& func) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.schedule));
  absl::StatusOr<Trace> trace = ParseTrace(text);
  if (!trace.ok()) return Annotate(trace.status(), options.schedule);
  absl::StatusOr<Schedule> schedule = Replay(*trace, func);
  if (!schedule.ok()) {  // whatever the refusal's code: the trace is the user's
    return absl::InvalidArgumentError(absl::StrCat(options.schedule, ": ", std::string(schedule.status().message())));
  }
  return schedule->Program();
}

// The module with its graph function through the passes.
absl::StatusOr<IrModule> RunGraphPasses(const OptOptions& options, const IrModule& module, const ChosenPasses& chosen) {
  absl::StatusOr<Graph> graph = GraphFromModule(module, options.constants);
  if (!graph.ok()) return Annotate(graph.status(), options.file);
  HONE_RETURN_IF_ERROR(chosen.Run(*graph));
  GraphModule made = ModuleOf(*graph);
  if (options.check) HONE_RETURN_IF_ERROR(Annotate(Verify(made.module), "after --pass"));
  if (!options.write_constants.empty())
    HONE_RETURN_IF_ERROR(Annotate(WriteConstants(options.write_constants, made.constants), "--write-constants"));
  return std::move(made.module);
}

// Without a trace or a run: the whole file, each of its functions through the passes.
absl::Status PrintAll(const OptOptions& options, IrModule module, const ChosenPasses& chosen) {
  if (!chosen.graph.empty()) { HONE_ASSIGN_OR_RETURN(module, RunGraphPasses(options, module, chosen)); }
  for (auto& function : module.functions) {
    PrimFunc* f = std::get_if<PrimFunc>(&function);
    if (f == nullptr) continue;
    HONE_ASSIGN_OR_RETURN(*f, chosen.Run(*f));
    if (options.check && !options.passes.empty())
      HONE_RETURN_IF_ERROR(AnnotateKeepingExitCode(ProveBounds(*f), "after --pass"));
  }
  std::printf("%s", ToText(module).c_str());
  return absl::OkStatus();
}

absl::Status Opt(const OptOptions& options) {
  const OptRun& run = options.run;
  if (run.by.empty() && (run.time || run.json || !run.inputs.empty() || !run.outputs.empty())) {
    return absl::InvalidArgumentError(
        "--input, --output, --time and --json belong to a run; add --run interp or --run llvm");
  }
  HONE_ASSIGN_OR_RETURN(const ChosenPasses chosen, ChoosePasses(options.passes, options.target));
  if (chosen.graph.empty() && !(options.constants.empty() && options.write_constants.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--constants and --write-constants belong to passes over graphs; add one of --pass ", GraphPassNames()));
  }
  HONE_ASSIGN_OR_RETURN(IrModule module, ReadModule(options.file, options.func));
  HONE_RETURN_IF_ERROR(Annotate(CheckPassesApply(options, module, chosen), options.file));
  if (options.check) {
    // A function taken out of its module calls what is not there any more.
    const bool alone = !options.func.empty() && std::holds_alternative<GraphFunc>(module.functions[0]);
    if (!alone) HONE_RETURN_IF_ERROR(Annotate(Verify(module), options.file));
    for (const auto& function : module.functions) {
      const PrimFunc* f = std::get_if<PrimFunc>(&function);
      if (f != nullptr) HONE_RETURN_IF_ERROR(AnnotateKeepingExitCode(ProveBounds(*f), options.file));
    }
  }
  if (options.schedule.empty() && run.by.empty()) return PrintAll(options, std::move(module), chosen);

  HONE_ASSIGN_OR_RETURN(const PrimFunc func, OnlyTensorFunction(options.file, module));
  // What is scheduled or run keeps the rules, asked for or not: passes and code generation rely on them.
  HONE_RETURN_IF_ERROR(Annotate(Verify(func), options.file));
  ScheduledProgram program{func, {}};
  if (!options.schedule.empty()) {
    HONE_ASSIGN_OR_RETURN(program, ApplyTrace(options, func));
    if (options.check || !run.by.empty()) HONE_RETURN_IF_ERROR(Verify(program.main));
    if (options.check) HONE_RETURN_IF_ERROR(AnnotateKeepingExitCode(ProveBounds(program), options.schedule));
  }
  HONE_ASSIGN_OR_RETURN(program.main, chosen.Run(std::move(program.main)));
  if (options.check && !options.passes.empty())
    HONE_RETURN_IF_ERROR(AnnotateKeepingExitCode(ProveBounds(program), "after --pass"));
  if (!run.by.empty()) return RunOnArguments(run, options.file, func, program);
  std::printf("%s", ToText(program.main).c_str());
  for (const Prepare& prepare : program.prepares) std::printf("\n%s", ToText(prepare.func).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddOptCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "Read a tensor program, schedule it, print or run it.");
  command->add_option("file", options->file, "a program or module in the TVMScript dialect")->required();
  command->add_option("--func", options->func, "which function, when there are several");
  command->add_option("--schedule", options->schedule, "a trace to apply");
  command->add_option("--pass", options->passes,
                      "passes to run, in this order: on each tensor function, or on the graph function");
  command->add_option(
      "--constants", options->constants,
      "the folder of 0.npy, 1.npy, ..., the constants that a module only numbers, for passes over graphs");
  command->add_option("--write-constants", options->write_constants,
                      "the folder for those of the module that passes over graphs leave");
  command->add_option("--target", options->target, "what passes make code for, such as cpu:native");
  command->add_flag("--check", options->check,
                    "verify the program before and after, and prove that every access stays in its buffer");
  command->add_option("--run", options->run.by, "run it: interp, or llvm (compiled, in a sandbox)")
      ->check(CLI::IsMember({"interp", "llvm"}));
  command->add_option("--input", options->run.inputs, "NAME=FILE.npy; parameters without one get seeded random values");
  command->add_option("--output", options->run.outputs, "NAME=FILE.npy");
  command->add_option("--seed", options->run.seed, "of the random inputs")->capture_default_str();
  command->add_option("--threads", options->run.threads, "threads to run with")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--time", options->run.time, "print the time of a run, taken as a worker takes it");
  command->add_flag("--json", options->run.json, "print one JSON object");
  command->footer(
      Examples({"hone opt matmul.py --schedule trace.py --check", "hone opt module.py --func relu --pass lower",
                "hone opt resnet18.py --pass optimize --constants resnet18 --write-constants optimised",
                "hone opt matmul.py --schedule trace.py --run llvm --time --threads 2"}) +
      "\nExit codes: 0 done; 2 usage, or the file cannot be read or breaks a rule; 7 the program is at fault: it "
      "crashed,\n"
      "left its buffers, read what nobody wrote, or --check found no proof that it stays inside.");
  command->callback([options, chosen] { *chosen = [options] { return Opt(*options); }; });
}

}  // namespace hone
