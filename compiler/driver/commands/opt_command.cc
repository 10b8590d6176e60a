// `hone opt`: the compiler core from a shell. Reads a program, applies a trace and passes, prints or runs the result.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/arith/prove_bounds.h"
#include "compiler/driver/bundles/run_program.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/models/graph_file.h"
#include "compiler/driver/npy.h"
#include "compiler/graph/module_of_graph.h"
#include "compiler/graph/passes.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/module.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/passes.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

struct OptOptions {
  std::string file, func, schedule, run, target, constants, write_constants;
  std::vector<std::string> passes, inputs, outputs;
  uint64_t seed = 0;
  int threads = 1;
  bool check = false, time = false, json = false;
};

const std::vector<LoweringPass>& TensorPasses() {
  static const auto* rows = [] {
    auto* all = new std::vector<LoweringPass>(LoweringPasses().begin(), LoweringPasses().end());
    all->push_back({"lower", [](PrimFunc func, const LowerOptions& lower) -> absl::StatusOr<PrimFunc> {
                      HONE_ASSIGN_OR_RETURN(LoweredFunc lowered, Lower(func, lower));
                      return std::move(lowered.func);
                    }});
    return all;
  }();
  return *rows;
}

std::string NamesOf(const auto& passes) {
  return absl::StrJoin(passes, ", ", [](std::string* out, const auto& pass) { absl::StrAppend(out, pass.name); });
}

// Passes in the order in which they are run, for the target that was named. Those over graphs do not look into tensor
// functions, nor the others into graph functions.
struct ChosenPasses {
  std::vector<const LoweringPass*> tensor;
  std::vector<const GraphPass*> graph;
  LowerOptions lower;
  std::set<std::string> features;

  absl::StatusOr<PrimFunc> Run(PrimFunc func) const {
    for (const LoweringPass* pass : tensor) { HONE_ASSIGN_OR_RETURN(func, pass->run(std::move(func), lower)); }
    return func;
  }
  absl::Status Run(Graph& graph_of_module) const {
    for (const GraphPass* pass : graph) {
      HONE_RETURN_IF_ERROR(Annotate(pass->run(graph_of_module, features), absl::StrCat("--pass ", pass->name)));
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<ChosenPasses> Choose(const OptOptions& options) {
  ChosenPasses chosen;
  if (!options.target.empty()) {
    if (options.passes.empty()) return absl::InvalidArgumentError("--target is what passes are for; add --pass lower");
    HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget(options.target));
    chosen.features = target.features;
    chosen.lower.features.assign(target.features.begin(), target.features.end());
    chosen.lower.vector_bits = target.vector_bits;
  }
  for (const std::string& name : options.passes) {
    const auto tensor = std::ranges::find(TensorPasses(), name, &LoweringPass::name);
    const auto graph = std::ranges::find(GraphPasses(), name, &GraphPass::name);
    if (tensor != TensorPasses().end()) {
      chosen.tensor.push_back(&*tensor);
    } else if (graph != GraphPasses().end()) {
      chosen.graph.push_back(&*graph);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("--pass ", name, ": there are ", NamesOf(TensorPasses()),
                                                     " for tensor functions and ", NamesOf(GraphPasses()),
                                                     " for graph functions"));
    }
  }
  if (chosen.graph.empty() && !(options.constants.empty() && options.write_constants.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--constants and --write-constants belong to passes over graphs; add one of --pass ", NamesOf(GraphPasses())));
  }
  return chosen;
}

template <class Function>
bool HasA(const IrModule& module) {
  return std::ranges::any_of(module.functions, [](const auto& f) { return std::holds_alternative<Function>(f); });
}

// InvalidArgument when there is nothing in the module that one of the passes is for.
absl::Status CheckPassesApply(const OptOptions& options, const IrModule& module, const ChosenPasses& chosen) {
  const bool prints_all = options.schedule.empty() && options.run.empty();  // else: one tensor function
  if (!chosen.graph.empty() && !(HasA<GraphFunc>(module) && prints_all)) {
    return absl::InvalidArgumentError(absl::StrCat("--pass ", chosen.graph[0]->name,
                                                   " is for graph functions; for tensor functions there are ",
                                                   NamesOf(TensorPasses())));
  }
  if (!chosen.tensor.empty() && !HasA<PrimFunc>(module)) {
    return absl::InvalidArgumentError(absl::StrCat("--pass ", chosen.tensor[0]->name,
                                                   " is for tensor functions; for graph functions there are ",
                                                   NamesOf(GraphPasses())));
  }
  if (!chosen.graph.empty() && !options.func.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--pass ", chosen.graph[0]->name,
                                                   " is for a graph function and all that it calls; leave --func out"));
  }
  return absl::OkStatus();
}

// The same with what it is about in front; the exit code stays.
absl::Status About(const absl::Status& status, const std::string& what) {
  if (status.ok()) return status;
  return WithExitCode(static_cast<ExitCode>(ExitCodeOf(status)), Annotate(status, what));
}

// Every access of the function stays in its buffer, or a status (exit code 7) that names the one for which there is no
// proof. What the inputs are for ("domains") counts.
absl::Status ProveBounds(const PrimFunc& func) {
  std::map<Buffer, Bounds> values;
  const auto domains = func.attrs.find("domains");
  if (domains != func.attrs.end()) {
    const auto* texts = std::get_if<std::vector<std::string>>(&domains->second);
    for (size_t i = 0; texts != nullptr && i < texts->size() && i < func.params.size(); ++i) {
      const absl::StatusOr<Domain> domain = ParseDomain((*texts)[i]);
      if (!domain.ok() || domain->kind != Domain::Kind::kInt) continue;
      values[func.params[i]] = {.min = domain->low, .max = domain->high - 1};
    }
  }
  return WithExitCode(ExitCode::kProgramFault, Annotate(ProveInBounds(func, values), func.name));
}

// The program and what packs its constants.
absl::Status ProveBounds(const ScheduledProgram& program) {
  HONE_RETURN_IF_ERROR(ProveBounds(program.main));
  for (const Prepare& prepare : program.prepares) HONE_RETURN_IF_ERROR(ProveBounds(prepare.func));
  return absl::OkStatus();
}

absl::StatusOr<IrModule> Read(const OptOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file));
  absl::StatusOr<IrModule> module = ParseIrModule(text);
  if (!module.ok()) return Annotate(module.status(), options.file);
  if (module->functions.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.file, ": no function; a program begins with @T.prim_func or @R.function, then `def`"));
  }
  if (options.func.empty()) return module;
  std::string names;
  for (auto& function : module->functions) {
    if (NameOf(function) == options.func) {
      IrModule one;
      one.functions.push_back(std::move(function));
      return one;
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", NameOf(function));
  }
  return absl::InvalidArgumentError(absl::StrCat(options.file, ": no function ", options.func, "; there are: ", names));
}

// The one tensor function that a trace or a run is about.
absl::StatusOr<PrimFunc> OnlyTensorFunction(const OptOptions& options, const IrModule& module) {
  std::vector<const PrimFunc*> found;
  std::string names;
  for (const auto& function : module.functions) {
    const PrimFunc* f = std::get_if<PrimFunc>(&function);
    if (f == nullptr) continue;
    found.push_back(f);
    absl::StrAppend(&names, names.empty() ? "" : ", ", f->name);
  }
  if (found.size() == 1) return *found[0];
  if (found.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.file, ": graph functions are read and printed; only a tensor function can be scheduled or run"));
  }
  return absl::InvalidArgumentError(absl::StrCat(options.file, ": choose a function with --func: ", names));
}

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

absl::StatusOr<std::vector<NdArray>> Arguments(const OptOptions& options, const PrimFunc& func) {
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

void PrintTimes(const OptOptions& options, const std::optional<TimedRuns>& timed) {
  if (options.json) {
    nlohmann::ordered_json json = {
        {"run", options.run}, {"threads", options.run == "llvm" ? options.threads : 1}, {"seed", options.seed}};
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

absl::Status Run(const OptOptions& options, const PrimFunc& func, const ScheduledProgram& program) {
  HONE_ASSIGN_OR_RETURN(std::vector<NdArray> args, Arguments(options, func));
  std::vector<ParamFile> outputs;
  for (const std::string& text : options.outputs) {
    HONE_ASSIGN_OR_RETURN(outputs.emplace_back(), ParseParamFile("--output", text, func));
  }
  RunProgramOptions run{.compiled = options.run == "llvm", .threads = options.threads, .time = options.time};
  const absl::StatusOr<std::optional<TimedRuns>> timed = RunProgram(program, run, args);
  if (!timed.ok()) return About(timed.status(), options.file);
  for (const ParamFile& output : outputs) HONE_RETURN_IF_ERROR(WriteNpy(output.file, args[output.param]));
  PrintTimes(options, *timed);
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
    if (options.check && !options.passes.empty()) HONE_RETURN_IF_ERROR(About(ProveBounds(*f), "after --pass"));
  }
  std::printf("%s", ToText(module).c_str());
  return absl::OkStatus();
}

absl::Status Opt(const OptOptions& options) {
  if (options.run.empty() && (options.time || options.json || !options.inputs.empty() || !options.outputs.empty())) {
    return absl::InvalidArgumentError(
        "--input, --output, --time and --json belong to a run; add --run interp or --run llvm");
  }
  HONE_ASSIGN_OR_RETURN(const ChosenPasses chosen, Choose(options));
  HONE_ASSIGN_OR_RETURN(IrModule module, Read(options));
  HONE_RETURN_IF_ERROR(Annotate(CheckPassesApply(options, module, chosen), options.file));
  if (options.check) {
    // A function taken out of its module calls what is not there any more.
    const bool alone = !options.func.empty() && std::holds_alternative<GraphFunc>(module.functions[0]);
    if (!alone) HONE_RETURN_IF_ERROR(Annotate(Verify(module), options.file));
    for (const auto& function : module.functions) {
      const PrimFunc* f = std::get_if<PrimFunc>(&function);
      if (f != nullptr) HONE_RETURN_IF_ERROR(About(ProveBounds(*f), options.file));
    }
  }
  if (options.schedule.empty() && options.run.empty()) return PrintAll(options, std::move(module), chosen);

  HONE_ASSIGN_OR_RETURN(const PrimFunc func, OnlyTensorFunction(options, module));
  // What is scheduled or run keeps the rules, asked for or not: passes and code generation rely on them.
  HONE_RETURN_IF_ERROR(Annotate(Verify(func), options.file));
  ScheduledProgram program{func, {}};
  if (!options.schedule.empty()) {
    HONE_ASSIGN_OR_RETURN(program, ApplyTrace(options, func));
    if (options.check || !options.run.empty()) HONE_RETURN_IF_ERROR(Verify(program.main));
    if (options.check) HONE_RETURN_IF_ERROR(About(ProveBounds(program), options.schedule));
  }
  HONE_ASSIGN_OR_RETURN(program.main, chosen.Run(std::move(program.main)));
  if (options.check && !options.passes.empty()) HONE_RETURN_IF_ERROR(About(ProveBounds(program), "after --pass"));
  if (!options.run.empty()) return Run(options, func, program);
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
  command->add_option("--run", options->run, "run it: interp, or llvm (compiled, in a sandbox)")
      ->check(CLI::IsMember({"interp", "llvm"}));
  command->add_option("--input", options->inputs, "NAME=FILE.npy; parameters without one get seeded random values");
  command->add_option("--output", options->outputs, "NAME=FILE.npy");
  command->add_option("--seed", options->seed, "of the random inputs")->capture_default_str();
  command->add_option("--threads", options->threads, "threads to run with")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--time", options->time, "print the time of a run, taken as a worker takes it");
  command->add_flag("--json", options->json, "print one JSON object");
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
