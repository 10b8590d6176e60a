// `hone tune`: hands a model's kernels to a daemon, shows how it goes, and ends with the gain of the assembled model.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <regex>

#include "absl/strings/str_cat.h"
#include "compiler/driver/bench.h"
#include "compiler/driver/command.h"
#include "compiler/driver/duration.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/job_report.h"
#include "compiler/driver/model.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"
#include "tuner/space/default_schedule.h"

namespace hone {
namespace {

struct TuneOptions {
  std::string model;
  ServiceOptions service;
  BuildSettings settings;
  int64_t trials = 0;
  std::string budget;
  std::string tasks;
  uint64_t seed = 0;
  bool json = false;
};

constexpr double kDefaultBudgetSeconds = 300;  // when neither trials nor time are limited
constexpr double kBenchSeconds = 2.1;
constexpr int kBenchRounds = 7;  // a bundle's pages lie elsewhere each time it is loaded, which short kernels feel
constexpr absl::Duration kPatience = absl::Seconds(60);  // with a daemon that is being restarted

std::atomic<int> interrupted_by{0};

extern "C" void NoteSignal(int signal) { interrupted_by = signal; }

// A request id no other call has: Submit may then be sent again when the answer was lost.
std::string FreshRequestId() {
  std::random_device device;
  return absl::StrCat("tune-", absl::Hex(device(), absl::kZeroPad8), absl::Hex(device(), absl::kZeroPad8),
                      absl::Hex(device(), absl::kZeroPad8), absl::Hex(device(), absl::kZeroPad8));
}

absl::StatusOr<v1::SubmitRequest> MakeRequest(const TuneOptions& options, const Model& model,
                                              const ResolvedSettings& settings) {
  v1::SubmitRequest request;
  request.set_request_id(FreshRequestId());
  request.set_model_name(model.plan.model_name);
  request.set_model_hash(model.hash);
  request.set_target(options.settings.target_text);
  request.set_threads(settings.threads);
  request.set_numeric(settings.wire_numeric());
  request.set_max_trials(options.trials);
  request.set_seed(options.seed);
  if (!options.budget.empty()) {
    HONE_ASSIGN_OR_RETURN(const double seconds, ParseDuration(options.budget));
    request.set_max_seconds(seconds);
  } else if (options.trials == 0) {
    request.set_max_seconds(kDefaultBudgetSeconds);
  }
  std::regex wanted;
  try {
    wanted = std::regex(options.tasks.empty() ? ".*" : options.tasks);
  } catch (const std::regex_error& error) {
    return absl::InvalidArgumentError(absl::StrCat("--tasks ", options.tasks, ": ", error.what()));
  }
  for (size_t i = 0; i < model.workloads.size(); ++i) {
    const PlanTask& task = model.plan.tasks[i];
    if (!std::regex_search(task.name, wanted)) continue;
    v1::TaskSpec* spec = request.add_tasks();
    spec->mutable_workload()->set_text(model.workloads[i].text);
    spec->mutable_workload()->set_hash(model.workloads[i].hash);
    spec->mutable_workload()->set_name(task.name);
    spec->mutable_workload()->set_flop(task.flop);
    const absl::StatusOr<double> least = LeastFlop(model.workloads[i].func, settings.space());
    if (least.ok()) spec->mutable_workload()->set_least_flop(std::min(task.flop, *least));
    spec->mutable_workload()->set_bytes(task.bytes);
    spec->set_weight(task.weight);
    const absl::StatusOr<Trace> trace = DefaultTrace(model.workloads[i].func, settings.space());
    if (!trace.ok()) return WithExitCode(ExitCode::kNoSchedule, Annotate(trace.status(), task.name));
    spec->set_default_trace(ToText(*trace));
  }
  if (request.tasks_size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("--tasks ", options.tasks, " names none of the model's ",
                                                   model.plan.tasks.size(), " tasks; hone inspect lists them"));
  }
  return request;
}

// A line that is rewritten on a terminal, and printed every ten seconds elsewhere.
class Progress {
 public:
  explicit Progress(bool json) : json_(json), terminal_(::isatty(2) != 0) {}
  ~Progress() { Finish(); }
  void Show(const v1::JobSnapshot& job) {
    if (json_) {
      std::printf("%s\n", ProgressJson(job).dump().c_str());
      std::fflush(stdout);
    }
    const absl::Time now = absl::Now();
    if (!terminal_ && now < next_) return;
    next_ = now + absl::Seconds(10);
    std::fprintf(stderr, terminal_ ? "\r\x1b[K%s" : "%s\n", ProgressLine(job).c_str());
    open_ = terminal_;
  }
  void Finish() {
    if (open_) std::fprintf(stderr, "\n");
    open_ = false;
  }

 private:
  bool json_, terminal_, open_ = false;
  absl::Time next_ = absl::InfinitePast();
};

struct Assembled {
  double before_ms = 0, after_ms = 0;
};

// The two bundles, timed in turn so that a drift of the machine meets both.
absl::StatusOr<Assembled> TimeAssembled(const Model& model, const ResolvedSettings& settings,
                                        const ServiceOptions& service) {
  char pattern[] = "/tmp/hone-tune-XXXXXX";
  if (::mkdtemp(pattern) == nullptr) return absl::InternalError("cannot make a folder under /tmp");
  const std::string folder = pattern;
  const auto time_both = [&]() -> absl::StatusOr<Assembled> {
    const std::string before = folder + "/before.hone", after = folder + "/after.hone";
    HONE_RETURN_IF_ERROR(CompileModel(model, settings, nullptr, before).status());
    HONE_RETURN_IF_ERROR(CompileModel(model, settings, &service, after).status());
    std::vector<double> before_ms, after_ms;
    for (int round = 0; round < kBenchRounds; ++round) {
      HONE_ASSIGN_OR_RETURN(const BenchResult b, BenchBundle(before, settings.threads, kBenchSeconds / kBenchRounds));
      HONE_ASSIGN_OR_RETURN(const BenchResult a, BenchBundle(after, settings.threads, kBenchSeconds / kBenchRounds));
      before_ms.push_back(b.p50_ms);
      after_ms.push_back(a.p50_ms);
    }
    std::sort(before_ms.begin(), before_ms.end());
    std::sort(after_ms.begin(), after_ms.end());
    return Assembled{before_ms[kBenchRounds / 2], after_ms[kBenchRounds / 2]};
  };
  const absl::StatusOr<Assembled> times = time_both();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return times;
}

absl::Status Interrupted(DaemonClient& client, const TuneOptions& options, uint64_t job) {
  v1::StopRequest stop;
  stop.set_job_id(job);
  v1::JobSnapshot snapshot;
  const absl::Status stopped = FromGrpc(client.tune().Stop(client.Context().get(), stop, &snapshot));
  std::fprintf(stderr, "interrupted: %lld trials are kept\n%s", static_cast<long long>(snapshot.trials()),
               TaskTable(snapshot).c_str());
  std::fprintf(stderr, "to go on: the same command again; to build with what is known: hone compile %s -o OUT.hone\n",
               options.model.c_str());
  if (!stopped.ok()) std::fprintf(stderr, "the job could not be stopped: %s\n", std::string(stopped.message()).c_str());
  const bool by_terminal = interrupted_by == SIGINT;
  return WithExitCode(by_terminal ? ExitCode::kInterrupted : ExitCode::kTerminated,
                      absl::CancelledError(absl::StrCat("job ", job, " was stopped")));
}

absl::Status Tune(const TuneOptions& options) {
  HONE_ASSIGN_OR_RETURN(const ResolvedSettings settings, Resolve(options.settings));
  HONE_ASSIGN_OR_RETURN(const Model model, LoadModel(options.model));
  HONE_ASSIGN_OR_RETURN(const v1::SubmitRequest request, MakeRequest(options, model, settings));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectOrStart(options.service, settings.threads));
  v1::SubmitReply submitted;
  HONE_RETURN_IF_ERROR(FromGrpc(client->tune().Submit(client->Context().get(), request, &submitted)));
  const uint64_t job = submitted.job_id();
  std::fprintf(stderr, "job %llu: %d tasks of %s at %s\n", static_cast<unsigned long long>(job), request.tasks_size(),
               request.model_name().c_str(), client->address().c_str());

  struct sigaction action {};
  action.sa_handler = NoteSignal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  Progress progress(options.json);
  const absl::StatusOr<v1::JobSnapshot> last =
      client->Watch(job, absl::Seconds(1), kPatience, [&](const v1::JobSnapshot& snapshot) {
        progress.Show(snapshot);
        return interrupted_by == 0;
      });
  progress.Finish();
  if (interrupted_by != 0) return Interrupted(*client, options, job);
  HONE_RETURN_IF_ERROR(last.status());
  if (last->state() == v1::JOB_FAILED) {
    return WithExitCode(ExitCode::kNoSchedule,
                        absl::FailedPreconditionError(absl::StrCat("job ", job, " failed: ", last->reason())));
  }

  HONE_ASSIGN_OR_RETURN(const Assembled times, TimeAssembled(model, settings, options.service));
  std::fprintf(stderr, "%s%lld trials in %s; the model: %.3f ms before, %.3f ms now (%.2fx)\n",
               TaskTable(*last).c_str(), static_cast<long long>(last->trials()), ShortDuration(last->seconds()).c_str(),
               times.before_ms, times.after_ms, times.before_ms / times.after_ms);
  if (options.json) {
    nlohmann::ordered_json result = ResultJson(*last);
    result["model_ms_before"] = times.before_ms;
    result["model_ms_after"] = times.after_ms;
    std::printf("%s\n", result.dump().c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddTuneCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand("tune", "Find the fastest programs for a model's kernels by measuring them.");
  command->add_option("model", options->model, "an ONNX file")->required();
  options->service.AddTo(*command);
  options->settings.AddTo(*command);
  command->add_option("--trials", options->trials, "stop after that many verified trials")->check(CLI::PositiveNumber);
  command->add_option("--budget", options->budget, "stop after that time: 90s, 5m, 1h (default 5m without --trials)");
  command->add_option("--tasks", options->tasks, "tune only the tasks whose name matches this regular expression");
  command->add_option("--seed", options->seed, "of the search")->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object a line: progress, and the result last");
  command->footer(
      Examples({"hone tune resnet18.onnx --budget 5m", "hone tune resnet18.onnx --db tuned.db --trials 500 --json",
                "hone tune bert.onnx --server build-host:7171 --token-file token --tasks dense"}));
  command->callback([options, chosen] { *chosen = [options] { return Tune(*options); }; });
}

}  // namespace hone
