#include "compiler/driver/service/private_service.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/driver/exit_code.h"
#include "compiler/sandbox/layers.h"
#include "compiler/support/file.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/gpu_target.h"
#include "database/sqlite/sqlite_store.h"
#include "proto/rpc/address.h"

namespace hone {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
constexpr absl::Duration kStartTimeout = absl::Seconds(20);
constexpr int kIdleSeconds = 20;  // a private daemon ends by itself after that
// What a killed worker had in hand is lent again after that. Over a socket of this machine nothing is late by seconds.
constexpr int kLeaseSeconds = 10;
constexpr absl::Duration kStarting = absl::Seconds(8);  // a worker that others started says hello within that
constexpr absl::Duration kOfLate = absl::Minutes(2);
constexpr size_t kMostRestarts = 4;

absl::Status NoService(absl::Status status) { return WithExitCode(ExitCode::kNoService, std::move(status)); }

std::string LogOf(const std::string& database) { return database + ".log"; }

std::string LastWords(const std::string& log) {
  const std::string text = ReadFile(log).value_or("");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  return lines.empty() ? "it left no message" : lines.back();
}

// Appends the option that lets sandboxes lack these layers, and those that the environment names.
void AllowMissing(std::vector<std::string> layers, std::vector<std::string>* arguments) {
  if (const char* more = std::getenv("HONE_ALLOW_MISSING_LAYER"); more != nullptr) layers.emplace_back(more);
  if (!layers.empty()) arguments->push_back("--allow-missing-layer=" + absl::StrJoin(layers, ","));
}

absl::StatusOr<std::unique_ptr<DaemonClient>> StartDaemon(const std::string& database,
                                                          const std::function<bool()>& give_up) {
  ChildOptions child_options;
  child_options.detached = true;
  child_options.error_file = LogOf(database);
  const std::string address = OwnersAddress(database);
  std::vector<std::string> arguments = {"--db", database, "--listen", address};
  arguments.insert(arguments.end(), {"--exit-when-idle", std::to_string(kIdleSeconds)});
  arguments.insert(arguments.end(), {"--lease", std::to_string(kLeaseSeconds)});
  // What it has run is its own user's work, who may run that without a sandbox too.
  AllowMissing(LayerNameList(LayersSomeSystemsLack()), &arguments);
  absl::StatusOr<ChildProcess> started = ChildProcess::Start(ProgramFolder() + "/honed", arguments, child_options);
  if (!started.ok()) return NoService(started.status());
  ChildProcess daemon = *std::move(started);
  // It answers as soon as it listens, or ends with a message in its log.
  const absl::Time end = MonotonicNow() + kStartTimeout;
  while (MonotonicNow() < end) {
    absl::StatusOr<std::unique_ptr<DaemonClient>> client = DaemonClient::Connect(address, {}, absl::Milliseconds(200));
    if (client.ok()) return client;
    if (give_up && give_up()) return absl::CancelledError("interrupted");
    const std::optional<int> status = daemon.Poll();
    if (!status.has_value()) continue;
    const std::string other = AddressOfDaemon(database);  // another process started one first
    if (!other.empty()) return DaemonClient::Connect(other, {}, kConnectTimeout);
    const ExitCode code = WIFEXITED(*status) && WEXITSTATUS(*status) == 9 ? ExitCode::kCorrupt : ExitCode::kNoService;
    return WithExitCode(code, absl::UnavailableError(absl::StrCat("the private daemon ", DescribeWaitStatus(*status),
                                                                  ": ", LastWords(child_options.error_file))));
  }
  return NoService(absl::UnavailableError(
      absl::StrCat("the private daemon does not answer at ", address, "; see ", child_options.error_file)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateService>> PrivateService::Start(const std::string& database, int threads,
                                                                      const std::string& device) {
  std::unique_ptr<PrivateService> service(new PrivateService(database, threads, device));
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(database).parent_path();
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat("--db ", database, ": the folder ", folder.string(),
                                                   " cannot be made: ", error.message(), "; choose another"));
  }
  HONE_RETURN_IF_ERROR(service->ConnectOrStart(nullptr));
  v1::ListWorkersReply reply;
  HONE_RETURN_IF_ERROR(FromGrpc(service->client().tune().ListWorkers(service->client().Context().get(), {}, &reply)));
  for (const v1::WorkerInfo& worker : reply.workers()) {
    const bool of_kind = NamesGpu(worker.profile().target()) == !device.empty();
    if (worker.state() != "lost" && of_kind && worker.threads() >= threads) return service;
  }
  HONE_RETURN_IF_ERROR(service->StartWorker());
  return service;
}

absl::Status PrivateService::ConnectOrStart(const std::function<bool()>& give_up) {
  const std::string address = AddressOfDaemon(database_);
  if (!address.empty()) {
    absl::StatusOr<std::unique_ptr<DaemonClient>> joined = DaemonClient::Connect(address, {}, kConnectTimeout);
    if (joined.ok()) {
      clients_.push_back(*std::move(joined));
      return absl::OkStatus();
    }
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<DaemonClient> started, StartDaemon(database_, give_up));
  clients_.push_back(std::move(started));
  return absl::OkStatus();
}

absl::Status PrivateService::StartWorker() {
  ChildOptions options;
  options.pipes = false;
  options.detached = true;
  options.error_file = LogOf(database_);
  std::vector<std::string> arguments = {"--server", client().address(), "--exit-with-daemon"};
  if (device_.empty()) {
    arguments.insert(arguments.end(), {"--threads", std::to_string(threads_)});
  } else {
    arguments.insert(arguments.end(), {"--target", device_});
  }
  // The daemon may be one that was started for others too: a worker of it lacks no more than its owner allowed.
  v1::ServiceStatus daemon;
  HONE_RETURN_IF_ERROR(FromGrpc(client().tune().Status(client().Context().get(), {}, &daemon)));
  AllowMissing({daemon.allowed_missing_layers().begin(), daemon.allowed_missing_layers().end()}, &arguments);
  absl::StatusOr<ChildProcess> started = ChildProcess::Start(ProgramFolder() + "/hone-worker", arguments, options);
  if (!started.ok()) return NoService(started.status());
  worker_.emplace(*std::move(started));
  return absl::OkStatus();
}

bool PrivateService::Allow(std::vector<absl::Time>& restarts) {
  const absl::Time now = MonotonicNow();
  std::erase_if(restarts, [&](absl::Time then) { return now - then > kOfLate; });
  if (restarts.size() >= kMostRestarts) return false;
  restarts.push_back(now);
  return true;
}

absl::StatusOr<std::string> PrivateService::ReviveDaemon(const std::function<bool()>& give_up) {
  if (!AddressOfDaemon(database_).empty()) return std::string();  // it holds its lock: it lives
  if (!Allow(daemon_restarts_)) {
    return NoService(absl::UnavailableError(absl::StrCat("the private daemon ended ", kMostRestarts, " times within ",
                                                         absl::FormatDuration(kOfLate), ": ",
                                                         LastWords(LogOf(database_)), "; see ", LogOf(database_))));
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<DaemonClient> started, StartDaemon(database_, give_up));
  clients_.push_back(std::move(started));
  return std::string("the private daemon had ended: it is started again, and the job goes on");
}

absl::StatusOr<std::string> PrivateService::ReviveWorker(absl::Duration without) {
  if (worker_.has_value() ? !worker_->Poll().has_value() : without < kStarting) return std::string();
  const bool first = !worker_.has_value();
  if (!Allow(worker_restarts_)) {
    return NoService(absl::UnavailableError(absl::StrCat("the private worker ended ", kMostRestarts, " times within ",
                                                         absl::FormatDuration(kOfLate), ": ",
                                                         LastWords(LogOf(database_)), "; see ", LogOf(database_))));
  }
  HONE_RETURN_IF_ERROR(StartWorker());
  return std::string(first ? "the daemon has no worker: one is started"
                           : "the private worker had ended: it is started again, and the job goes on");
}

}  // namespace hone
