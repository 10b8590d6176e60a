#include "worker/agent/agent.h"

#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/log/log.h"
#include "compiler/sandbox/layers.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/file.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/turn_lock.h"
#include "deploy/runtime/devices/device_drivers.h"
#include "spdlog/spdlog.h"
#include "worker/agent/builds/build_deposit.h"
#include "worker/agent/builds/build_reply.h"
#include "worker/agent/builds/builder_pool.h"
#include "worker/agent/builds/remote_builders.h"
#include "worker/agent/claimed_target.h"
#include "worker/agent/device_probe.h"
#include "worker/agent/session/build_queue.h"
#include "worker/agent/session/session.h"
#include "worker/agent/session/spool.h"
#include "worker/agent/session/work_queue.h"
#include "worker/agent/trials/task_context.h"
#include "worker/agent/trials/trial_batch.h"

namespace hone {
namespace {

constexpr size_t kBatch = 16;      // candidates raced together
constexpr size_t kTasksKept = 48;  // contexts: inputs and expected outputs, tens of megabytes each
constexpr absl::Duration kLookAgain = absl::Seconds(5);  // whether the machine is quiet now
constexpr absl::Duration kOracleLimit = absl::Seconds(120);
constexpr absl::Duration kGeneratorLimit = absl::Seconds(30);

// Of this host, and of the spool's folder where there is one: then it is the same at the next start.
std::string WorkerName(const Spool* spool) {
  char host[256] = "worker";
  ::gethostname(host, sizeof(host) - 1);
  return absl::StrCat(host, "-", spool == nullptr ? absl::StrCat(::getpid()) : ToHex(spool->identity().substr(0, 3)));
}

// The tasks used last.
class TaskCache {
 public:
  TaskCache(std::string target, Builders& builders, TaskRunners runners)
      : target_(std::move(target)), builders_(builders), runners_(std::move(runners)) {}

  struct Task {
    std::string hash;
    std::unique_ptr<TaskContext> context;
    KnownBuilds known;
  };

  absl::StatusOr<Task*> Get(const std::string& hash, Session& session) {
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      if (it->hash != hash) continue;
      kept_.splice(kept_.begin(), kept_, it);
      return &kept_.front();
    }
    HONE_ASSIGN_OR_RETURN(const v1::Workload workload, session.GetWorkload(hash));
    CrashPoint("worker.workload");
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<TaskContext> context,
                          TaskContext::Create(workload, target_, builders_, kOracleLimit, runners_));
    kept_.push_front({.hash = hash, .context = std::move(context), .known = {}});
    if (kept_.size() > kTasksKept) kept_.pop_back();
    return &kept_.front();
  }

 private:
  std::string target_;
  Builders& builders_;
  TaskRunners runners_;
  std::list<Task> kept_;
};

// The layers of the sandbox that hold here, found out by processes that do nothing else yet: one of ours, and a runner
// that is another program, such as an emulator. PermissionDenied when one lacks what it may not.
absl::StatusOr<uint32_t> TrySandbox(const AgentOptions& options) {
  const uint32_t allowed = options.allowed_missing_layers;
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SandboxedProcess> process,
      SandboxedProcess::Start({.path = ProgramFolder() + "/hone-oracle", .allowed_missing = allowed}));
  if (options.runner.empty() || options.MeasuresDevice()) return process->layers();
  const absl::StatusOr<uint32_t> of_runner = LayersOfRunner(options.runner);
  if (!of_runner.ok()) {  // it is asked again with every candidate
    spdlog::warn("{}", std::string(of_runner.status().message()));
    return process->layers();
  }
  HONE_RETURN_IF_ERROR(CheckLayers(options.runner, *of_runner, allowed));
  return process->layers() & *of_runner;
}

// What the daemon is told that the worker's sandboxes lack.
std::vector<std::string> NamesOfMissing(uint32_t layers) {
  std::vector<std::string> names = LayerNameList(layers);
  if (!names.empty())
    spdlog::info("layers of the sandbox that this system does not give: {}", absl::StrJoin(names, ", "));
  return names;
}

void LogOutcome(const v1::Lease& lease, const v1::Outcome& outcome) {
  LogFact(spdlog::level::debug, "trial has a result",
          {{"task", lease.task()},
           {"trial", lease.id().trial()},
           {"attempt", uint64_t{lease.id().attempt()}},
           {"epoch", lease.id().epoch()},
           {"outcome", absl::AsciiStrToLower(absl::StripPrefix(v1::OutcomeKind_Name(outcome.kind()), "OUTCOME_"))},
           {"us", outcome.timing().median_us()},
           {"detail", outcome.detail()}});
}

// Whether the outcomes may be those of a machine that is not what it claims to be: a candidate crashed, or none could
// be loaded.
bool AreSuspect(std::span<const v1::Outcome> outcomes) {
  const auto is = [](v1::OutcomeKind kind) {
    return [kind](const v1::Outcome& outcome) { return outcome.kind() == kind; };
  };
  return std::ranges::any_of(outcomes, is(v1::OUTCOME_CRASH)) ||
         std::ranges::all_of(outcomes, is(v1::OUTCOME_BUILD_ERROR));
}

// What failed on a machine that is not what it claims to be is no candidate's fault.
void BlameMachine(const std::string& lacks, std::span<v1::Outcome> outcomes) {
  for (v1::Outcome& outcome : outcomes) {
    if (outcome.kind() == v1::OUTCOME_OK) continue;
    SetFailure(&outcome, v1::OUTCOME_INFRA, absl::StrCat("it needs ", lacks));
  }
}

// What others asked for while this machine could not be measured on: on all cores, as its own candidates are. No turn
// is taken: who asked may have it, and waits.
void BuildForOthers(WorkQueue& queue, Session& session, Builders& builders) {
  const std::vector<v1::BuildLease> leases = queue.TakeBuilds();
  if (leases.empty()) return;
  std::vector<v1::BuildRequest> requests;
  uint32_t limit_ms = 1;
  for (const v1::BuildLease& lease : leases) {
    requests.push_back(lease.request());
    limit_ms = std::max(limit_ms, lease.limit_ms());
  }
  std::vector<v1::BuildOutcome> outcomes = builders.Build(requests, absl::Milliseconds(limit_ms));
  for (size_t i = 0; i < leases.size(); ++i) {
    DepositIfLarge(session, &outcomes[i]);
    queue.FinishBuild(leases[i].id(), std::move(outcomes[i]));
  }
}

// The turn of the machine for as long as this lives. The daemon is told who has it while it is waited for.
class AwaitedTurn {
 public:
  AwaitedTurn(WorkQueue& queue, TurnLock& lock, TurnLock::Use use) {
    queue.WaitsFor([&lock] {
      const std::string holder = lock.Holder();
      return absl::StrCat("the turn of its machine", holder.empty() ? "" : ", which " + holder + " has");
    });
    turn_.emplace(lock, use);
    queue.WaitsFor(nullptr);
  }

 private:
  std::optional<TurnLock::Turn> turn_;
};

// Measures the candidates of a queue, batch after batch.
class MeasureLoop {
 public:
  MeasureLoop(WorkQueue& queue, Session& session, const v1::DeviceProfile& profile, const AgentOptions& options,
              Builders& builders, TurnLock& turn, const Quiet& quiet)
      : queue_(queue),
        session_(session),
        profile_(profile),
        device_(options.MeasuresDevice()),
        builders_(builders),
        turn_(turn),
        quiet_(quiet),
        tasks_(profile.target(), builders, RunnersOf(options, profile.target())),
        claimed_(profile.target(), builders, RunnersOf(options, profile.target())) {}

  void RunUntilStopped() {
    while (queue_.WaitForWork(kLookAgain)) {
      BuildForOthers(queue_, session_, builders_);
      if (!MayMeasure()) continue;
      Listen();
      RunBatch();
    }
  }

 private:
  static TaskRunners RunnersOf(const AgentOptions& options, const std::string& target) {
    return {options.allowed_missing_layers, options.runner, options.MeasuresDevice() ? target : std::string()};
  }

  bool MayMeasure() {
    std::string lacks = quiet_.Lacks(absl::Now());
    if (lacks.empty()) lacks = claimed_.Lacks(MonotonicNow(), turn_);
    if (!lacks.empty() || (silent_ && !queue_.HasLeases())) {
      queue_.SetLacks(lacks);  // what was lent goes back
      return false;
    }
    // Not quiet, while another has the turn; and that one may wait for what is built here.
    return silent_ || turn_.Holder().empty();
  }

  // Leases go back where the neighbours are too loud.
  void Listen() {
    std::string noise_around;
    if (quiet_.listens()) {
      const AwaitedTurn alone(queue_, turn_, TurnLock::Use::kAlone);
      noise_around = quiet_.LacksSilence();
    }
    silent_ = noise_around.empty();
    queue_.SetLacks(noise_around);
  }

  // The next candidates, if there are any left.
  void RunBatch() {
    std::optional<AwaitedTurn> turn(std::in_place, queue_, turn_, TurnLock::Use::kShared);
    const std::vector<v1::Lease> batch = queue_.Take(kBatch);
    if (batch.empty()) return;
    const Clock::time_point start = Clock::now();
    const absl::StatusOr<TaskCache::Task*> task = tasks_.Get(batch.front().workload_hash(), session_);
    PhaseSeconds seconds;
    seconds.verify = SecondsSince(start);
    if (!task.ok()) {
      spdlog::warn("a task cannot be prepared: {}", std::string(task.status().message()));
      std::vector<v1::Outcome> outcomes(batch.size(), OutcomeOfUnprepared(task.status()));
      BlameMachineIfSuspect(outcomes);
      Finish(batch, std::move(outcomes));
      queue_.AddSeconds(seconds);
      return;
    }
    CrashPoint("worker.prepared");
    TrialBatch trials(
        *(*task)->context, profile_, builders_, &(*task)->known, &noise_,
        [&](const v1::LeaseId& id, v1::Phase phase) { queue_.SetPhase(id, phase); },
        [&](absl::Duration duration) { queue_.QuietFor(duration); });
    trials.Prepare(batch);
    turn.reset();
    turn.emplace(queue_, turn_, TurnLock::Use::kAlone);
    std::vector<v1::Outcome> outcomes = trials.Measure();
    BlameMachineIfSuspect(outcomes);
    turn.reset();
    CrashPoint("worker.outcomes");
    seconds.build += trials.seconds().build;
    seconds.verify += trials.seconds().verify;
    seconds.measure += trials.seconds().measure;
    queue_.AddSeconds(seconds);
    for (size_t i = 0; i < batch.size(); ++i) LogOutcome(batch[i], outcomes[i]);
    Finish(batch, std::move(outcomes));
  }

  void BlameMachineIfSuspect(std::vector<v1::Outcome>& outcomes) {
    if (!device_ && AreSuspect(outcomes) && !claimed_.Holds()) BlameMachine(claimed_.why(), outcomes);
  }

  void Finish(const std::vector<v1::Lease>& batch, std::vector<v1::Outcome> outcomes) {
    for (size_t i = 0; i < batch.size(); ++i) queue_.Finish(batch[i].id(), std::move(outcomes[i]));
  }

  WorkQueue& queue_;
  Session& session_;
  const v1::DeviceProfile& profile_;
  bool device_;
  Builders& builders_;
  TurnLock& turn_;
  const Quiet& quiet_;
  TaskCache tasks_;
  ClaimedTarget claimed_;
  double noise_ = 0.01;  // log noise of a sample, to begin with
  bool silent_ = true;   // as last heard
};

SessionOptions SessionOf(const AgentOptions& options, const Spool* spool) {
  SessionOptions session;
  session.role = options.role;
  session.name = WorkerName(spool);
  if (spool != nullptr) session.name_key = spool->identity();
  session.drain_limit = options.drain_limit;
  session.exit_with_daemon = options.exit_with_daemon;
  return session;
}

// As many as the worker measures or builds with: those asked for, or the whole cores that a limit leaves.
int ThreadsOf(const AgentOptions& options, const Target& target, const std::optional<double>& quota) {
  const int whole_cores = quota.has_value() ? std::max(1, static_cast<int>(*quota)) : target.cores;
  return options.threads > 0 ? options.threads : std::min(target.cores, whole_cores);
}

// Builds one after the other, until the queue is stopped. The builder is this thread's own.
void BuildUntilStopped(BuildQueue& queue, Session& session, const AgentOptions& options) {
  BuilderPool builder(1, options.builder, options.allowed_missing_layers);
  while (const std::optional<v1::BuildLease> lease = queue.Take()) {
    const Clock::time_point start = Clock::now();
    std::vector<v1::BuildOutcome> outcome =
        builder.Build({lease->request()}, absl::Milliseconds(std::max<uint32_t>(1, lease->limit_ms())));
    const double seconds = SecondsSince(start);
    LogFact(spdlog::level::debug, "build has a result",
            {{"build", lease->id().build()},
             {"attempt", uint64_t{lease->id().attempt()}},
             {"epoch", lease->id().epoch()},
             {"detail", outcome[0].reply().error()}});
    DepositIfLarge(session, &outcome[0]);
    queue.Finish(lease->id(), std::move(outcome[0]), seconds);
  }
}

// What makes the code for a target, as its builder says; "" when that says nothing.
std::string GeneratorOf(const AgentOptions& options, const std::string& target) {
  BuilderPool builder(1, options.builder, options.allowed_missing_layers);
  v1::BuildRequest request;
  request.set_generator(true);
  request.set_target(target);
  const v1::BuildOutcome outcome = builder.Build({request}, kGeneratorLimit).front();
  if (outcome.reply().error().empty()) return outcome.reply().generator();
  spdlog::warn("the builder does not say what makes its code, so that no record is checked against it: {}",
               outcome.reply().error());
  return "";
}

// Any worker's device is built for: the code generator makes the code of all.
absl::Status RunBuildAgent(const AgentOptions& options, uint32_t layers, const std::atomic<bool>& stop) {
  const Target target = HostTarget();
  SessionOptions session_options = SessionOf(options, nullptr);
  session_options.missing_layers = NamesOfMissing(MissingLayers(layers));
  session_options.threads = ThreadsOf(options, target, CpuQuota());
  session_options.capacity = session_options.threads;  // all under work: none is blamed that only waited
  session_options.profile.set_device_class(DeviceClass(target));
  session_options.profile.set_target(target.text);
  session_options.profile.set_cores(target.cores);
  BuildQueue queue;
  Session session(options.server, options.credentials, session_options, queue);
  std::vector<std::thread> threads;
  for (int i = 0; i < session_options.threads; ++i) {
    threads.emplace_back([&] { BuildUntilStopped(queue, session, options); });
  }
  const absl::Status status = session.Run(stop);
  queue.Stop();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace

absl::Status RunAgent(const AgentOptions& options, const std::atomic<bool>& stop) {
  const bool device = options.MeasuresDevice();
  const bool elsewhere = !device && !options.target.empty();
  Target target = HostTarget();
  if (elsewhere) { HONE_ASSIGN_OR_RETURN(target, ParseTarget(options.target)); }
  HONE_ASSIGN_OR_RETURN(const uint32_t layers, TrySandbox(options));
  if (options.role == AgentRole::kBuild) return RunBuildAgent(options, layers, stop);
  HONE_ASSIGN_OR_RETURN(TurnLock turn, TurnLock::Open(MeasuredBesideHost(options.target)));
  std::unique_ptr<Spool> spool;
  if (!options.spool.empty()) {
    absl::StatusOr<std::unique_ptr<Spool>> opened = Spool::Open(options.spool, options.spool_bytes);
    if (!opened.ok()) return Annotate(opened.status(), "--spool");
    spool = *std::move(opened);
  }
  CrashPoint("worker.start");
  SessionOptions session_options = SessionOf(options, spool.get());
  const std::optional<double> quota = CpuQuota();
  session_options.threads = ThreadsOf(options, target, quota);
  const Quiet quiet(options.quiet, session_options.threads, quota);
  session_options.missing_layers = NamesOfMissing(MissingLayers(layers) | (device ? uint32_t{kLayerEmptyRoot} : 0));
  if (device) {
    const TurnLock::Turn alone(turn, TurnLock::Use::kAlone);
    HONE_ASSIGN_OR_RETURN(session_options.profile, ProbeGpuDevice(options.target));
  } else if (elsewhere) {
    session_options.profile = UsualDevice(target, session_options.threads);
  } else {
    const TurnLock::Turn alone(turn, TurnLock::Use::kAlone);
    session_options.profile = ProbeDevice(target, session_options.threads);
  }
  if (options.role == AgentRole::kBoth) {
    session_options.generator = GeneratorOf(options, session_options.profile.target());
  }
  WorkQueue queue(spool.get());
  queue.SetLacks(quiet.Lacks(absl::Now()));
  if (options.role == AgentRole::kBoth) queue.OfferBuilds(session_options.threads);
  Session session(options.server, options.credentials, session_options, queue);
  std::thread work([&] {
    std::unique_ptr<Builders> builders;
    if (options.role == AgentRole::kMeasure) {
      builders = std::make_unique<RemoteBuilders>(session);
    } else {
      builders =
          std::make_unique<BuilderPool>(session_options.threads, options.builder, options.allowed_missing_layers);
    }
    MeasureLoop(queue, session, session_options.profile, options, *builders, turn, quiet).RunUntilStopped();
  });
  const absl::Status status = session.Run(stop);
  if (const size_t untold = queue.results(); untold > 0) {
    spdlog::warn("the daemon has not taken {} results: {}", untold,
                 spool != nullptr ? "the next worker on " + options.spool + " tells them"
                                  : "they are lost (--spool FOLDER keeps them)");
  }
  CrashPoint("worker.stop.left");
  queue.Stop();
  // A batch that went beyond the drain limit has been given back. Its processes end with the threads that started them.
  if (status.ok() && queue.gave_up()) ::_exit(0);
  work.join();
  return status;
}

}  // namespace hone
