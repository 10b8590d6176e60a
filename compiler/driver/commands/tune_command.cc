// `hone tune`: hands a model's kernels to a daemon, shows how it goes, and ends with the gain of the assembled model.
#include <memory>
#include <random>
#include <regex>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/duration.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/models/hints.h"
#include "compiler/driver/models/model.h"
#include "compiler/driver/service/tune_session.h"
#include "compiler/package/bundle_writer.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/option_checks.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/workload/anchor.h"

namespace hone {
namespace {

struct TuneOptions {
  std::string model;
  ServiceOptions service;
  BuildSettings settings;
  std::vector<std::string> targets = {BuildSettings().target_text};
  int64_t trials = 0;
  std::string budget;
  std::string wait = "1m";
  std::string tasks;
  uint64_t seed = 0;
  int priority = 0;
  std::string strategy = "model";
  bool json = false, detach = false;
};

constexpr double kDefaultBudgetSeconds = 300;  // when neither trials nor time are limited

// A request id no other call has: Submit may then be sent again when the answer was lost.
std::string FreshRequestId() {
  std::random_device device;
  return absl::StrCat("tune-", absl::Hex(device(), absl::kZeroPad8), absl::Hex(device(), absl::kZeroPad8),
                      absl::Hex(device(), absl::kZeroPad8), absl::Hex(device(), absl::kZeroPad8));
}

absl::StatusOr<v1::SearchStrategy> StrategyOf(const std::string& name) {
  if (name == "model") return v1::SEARCH_MODEL;
  if (name == "random") return v1::SEARCH_RANDOM;
  if (name == "draft") return v1::SEARCH_DRAFT;
  return absl::InvalidArgumentError(absl::StrCat("--strategy ", name, ": there are model, random and draft"));
}

// As workers state theirs, with every fact, but for texts that any machine, or device of a kind, is meant by. This
// machine's, named beside others, means its own class.
std::string WireTarget(const TuneOptions& options, const TunedTarget& target) {
  const std::string& text = target.settings.target_text;
  const bool any_machine = text == BuildSettings().target_text && options.targets.size() == 1;
  const bool any = any_machine || (target.resolved.gpu && text.find(',') == std::string::npos);
  return any ? text : target.resolved.target_text();
}

// Fills in the target and the tasks of a v1::SubmitRequest or a v1::SubmitPart.
template <class Part>
absl::Status FillIn(const TuneOptions& options, const TunedTarget& target, Part* part) {
  const Model& model = *target.model;
  const ResolvedSettings& settings = target.resolved;
  part->set_target(WireTarget(options, target));
  part->set_threads(settings.threads);
  std::regex wanted;
  try {
    wanted = std::regex(options.tasks.empty() ? ".*" : options.tasks);
  } catch (const std::regex_error& error) {
    return absl::InvalidArgumentError(absl::StrCat("--tasks ", options.tasks, ": ", error.what()));
  }
  for (const TunedTask& task : TunedTasks(model)) {
    if (!std::regex_search(task.name, wanted)) continue;
    v1::TaskSpec* spec = part->add_tasks();
    spec->mutable_workload()->set_text(task.workload.text);
    spec->mutable_workload()->set_hash(task.workload.hash);
    spec->mutable_workload()->set_name(task.name);
    spec->mutable_workload()->set_flop(task.flop);
    const absl::StatusOr<double> least = settings.gpu ? task.flop : LeastFlop(task.workload.func, settings.space());
    if (least.ok()) spec->mutable_workload()->set_least_flop(std::min(task.flop, *least));
    spec->mutable_workload()->set_bytes(task.bytes);
    spec->set_weight(model.plan.tasks[task.task].weight);
    const absl::StatusOr<Trace> trace = DefaultTraceOf(task.workload, settings);
    if (!trace.ok()) return WithExitCode(ExitCode::kNoSchedule, Annotate(trace.status(), task.name));
    spec->set_default_trace(ToText(*trace));
    part->add_anchors(AnchorOf(task.workload.func));
  }
  if (part->tasks_size() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--tasks ", options.tasks, " names none of the model's ",
                                                 model.plan.tasks.size(), " tasks; ", HoneProgram(), " inspect ",
                                                 ShellWord(options.model), " lists them"));
}

absl::StatusOr<v1::SubmitRequest> MakeRequest(const TuneOptions& options, const std::vector<TunedTarget>& targets) {
  v1::SubmitRequest request;
  request.set_request_id(FreshRequestId());
  request.set_model_name(targets.front().model->plan.model_name);
  request.set_model_hash(targets.front().model->hash);
  request.set_numeric(targets.front().resolved.wire_numeric());
  request.set_max_trials(options.trials);
  request.set_seed(options.seed);
  request.set_priority(options.priority);
  HONE_ASSIGN_OR_RETURN(const v1::SearchStrategy strategy, StrategyOf(options.strategy));
  request.set_strategy(strategy);
  if (!options.budget.empty()) {
    HONE_ASSIGN_OR_RETURN(const double seconds, ParseDuration(options.budget));
    request.set_max_seconds(seconds);
  } else if (options.trials == 0) {
    request.set_max_seconds(kDefaultBudgetSeconds);
  }
  HONE_RETURN_IF_ERROR(FillIn(options, targets.front(), &request));
  for (size_t i = 1; i < targets.size(); ++i) HONE_RETURN_IF_ERROR(FillIn(options, targets[i], request.add_parts()));
  return request;
}

// The model as it is cut for that target.
absl::StatusOr<TunedTarget> ReadFor(const std::string& target, const TuneOptions& options) {
  TunedTarget tuned{.settings = options.settings, .resolved = {}, .model = nullptr};
  tuned.settings.target_text = target;
  HONE_ASSIGN_OR_RETURN(tuned.resolved, Resolve(tuned.settings));
  HONE_ASSIGN_OR_RETURN(const ImportOptions import, ImportOptionsOf(options.settings.import));
  if (!import.ranges.empty() && tuned.resolved.gpu.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("--dim ", import.ranges.begin()->first,
                                                   "=LOW..HIGH: for a device a dimension has one size; leave the range "
                                                   "out"));
  }
  HONE_ASSIGN_OR_RETURN(Model loaded, LoadModel(options.model, import, tuned.resolved.plan()));
  if (tuned.resolved.gpu.has_value()) { HONE_RETURN_IF_ERROR(Annotate(CheckFitsDevice(loaded.plan), options.model)); }
  tuned.model = std::make_shared<const Model>(std::move(loaded));
  return tuned;
}

absl::Status Tune(const TuneOptions& options) {
  absl::StatusOr<double> wait = ParseDuration(options.wait);
  if (!wait.ok()) return Annotate(wait.status(), "--wait");
  if (options.targets.size() > 1 && options.service.server.empty()) {
    return absl::InvalidArgumentError(
        "several --target need a daemon with workers of each (--server ADDR): without one, this machine alone "
        "measures");
  }
  TuneOrder order;
  order.model_path = options.model;
  order.service = options.service;
  for (const std::string& target : options.targets) {
    HONE_ASSIGN_OR_RETURN(TunedTarget tuned, ReadFor(target, options));
    order.targets.push_back(std::move(tuned));
  }
  HONE_ASSIGN_OR_RETURN(const v1::SubmitRequest request, MakeRequest(options, order.targets));
  order.patience = absl::Seconds(*wait);
  order.json = options.json;
  order.detach = options.detach;
  return RunTuning(order, request);
}

}  // namespace

void AddTuneCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand("tune", "Find the fastest programs for a model's kernels by measuring them.");
  command->add_option("model", options->model, "an ONNX file, or a module of the text dialect (.py)")->required();
  options->service.AddTo(*command);
  options->settings.AddTo(*command);
  command->remove_option(command->get_option("--target"));
  command
      ->add_option("--target", options->targets,
                   "what to build for; several, each with its flag, are one job: every one is tuned on workers of its "
                   "own, with --trials of its own")
      ->allow_extra_args(false)
      ->capture_default_str();
  command
      ->add_option("--trials", options->trials,
                   "stop after that many new verified trials; those of earlier jobs do not count")
      ->check(AboveZero("trials"));
  command->add_option("--budget", options->budget,
                      "stop after that time, from the start of the job: 90s, 5m, 1h (default 5m without --trials)");
  command
      ->add_option("--wait", options->wait,
                   "end with exit code 5 when nothing went on for that long: no worker, a full disk, ...")
      ->capture_default_str();
  command->add_option("--tasks", options->tasks, "tune only the tasks whose name matches this regular expression");
  command->add_option("--seed", options->seed, "of the search")->capture_default_str();
  command
      ->add_option("--strategy", options->strategy,
                   "how candidates are chosen: model (the cost model ranks what is bred), random, draft (the analytic "
                   "model's order)")
      ->capture_default_str();
  command
      ->add_option("--priority", options->priority,
                   "of the job among those of its tenant, -8 to 8: each step doubles its share of the workers")
      ->check(CLI::Range(-8, 8))
      ->capture_default_str();
  command->add_flag("--detach", options->detach,
                    "print the job's number and leave it to the daemon; hone jobs watch joins");
  command->add_flag("--json", options->json, "print one JSON object a line: progress, and the result last");
  command->footer(
      Examples({"hone tune resnet18.onnx --budget 5m", "hone tune resnet18.onnx --db tuned.db --trials 500 --json",
                "hone tune resnet18.onnx --target opencl:generic --trials 200",
                "hone tune bert.onnx --server build-host:7171 --token-file token --tasks dense",
                "hone tune bert.onnx --server build-host:7171 --target cpu:znver4 --target cpu:cortex-a78"}));
  command->callback([options, chosen] { *chosen = [options] { return Tune(*options); }; });
}

}  // namespace hone
