#include "compiler/driver/service_options.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/driver/exit_code.h"
#include "compiler/support/child_process.h"
#include "compiler/support/file.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "database/sqlite_store.h"
#include "proto/rpc/address.h"
#include "proto/rpc/token.h"

namespace hone {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
constexpr absl::Duration kStartTimeout = absl::Seconds(20);
constexpr int kIdleSeconds = 20;  // a private daemon ends by itself after that

absl::Status NoService(absl::Status status) { return WithExitCode(ExitCode::kNoService, std::move(status)); }

// Beside the database; in /tmp where the path would be longer than a socket's name may be (108 bytes).
std::string SocketFor(const std::string& database) {
  const std::string beside = std::filesystem::absolute(database).string() + ".sock";
  if (beside.size() < 100) return beside;
  return absl::StrCat("/tmp/hone-", ::getuid(), "-", ToHex(Sha256(beside)).substr(0, 16), ".sock");
}

absl::StatusOr<std::unique_ptr<DaemonClient>> StartDaemon(const std::string& database) {
  ChildOptions child_options;
  child_options.detached = true;
  child_options.error_file = database + ".log";
  const std::string address = "unix:" + SocketFor(database);
  absl::StatusOr<ChildProcess> started = ChildProcess::Start(
      ProgramFolder() + "/honed",
      {"--db", database, "--listen", address, "--exit-when-idle", std::to_string(kIdleSeconds)}, child_options);
  if (!started.ok()) return NoService(started.status());
  ChildProcess daemon = *std::move(started);
  // It answers as soon as it listens, or ends with a message in its log.
  const absl::Time end = absl::Now() + kStartTimeout;
  while (absl::Now() < end) {
    absl::StatusOr<std::unique_ptr<DaemonClient>> client = DaemonClient::Connect(address, "", absl::Milliseconds(200));
    if (client.ok()) return client;
    const std::optional<int> status = daemon.Poll();
    if (!status.has_value()) continue;
    const std::string other = AddressOfDaemon(database);  // somebody else was faster
    if (!other.empty()) return DaemonClient::Connect(other, "", kConnectTimeout);
    const std::string log = ReadFile(child_options.error_file).value_or("");
    const std::vector<std::string> lines = absl::StrSplit(log, '\n', absl::SkipEmpty());
    const ExitCode code = WIFEXITED(*status) && WEXITSTATUS(*status) == 9 ? ExitCode::kCorrupt : ExitCode::kNoService;
    return WithExitCode(code,
                        absl::UnavailableError(absl::StrCat("the private daemon ", DescribeWaitStatus(*status), ": ",
                                                            lines.empty() ? "it left no message" : lines.back())));
  }
  return NoService(absl::UnavailableError(
      absl::StrCat("the private daemon does not answer at ", address, "; see ", child_options.error_file)));
}

absl::Status EnsureWorker(DaemonClient& client, const std::string& database, int threads) {
  v1::ListWorkersReply reply;
  HONE_RETURN_IF_ERROR(FromGrpc(client.tune().ListWorkers(client.Context().get(), {}, &reply)));
  for (const v1::WorkerInfo& worker : reply.workers()) {
    if (worker.state() != "lost") return absl::OkStatus();
  }
  ChildOptions child_options;
  child_options.pipes = false;
  child_options.detached = true;
  child_options.error_file = database + ".log";
  return NoService(
      ChildProcess::Start(ProgramFolder() + "/hone-worker",
                          {"--server", client.address(), "--threads", std::to_string(threads), "--exit-with-daemon"},
                          child_options)
          .status());
}

}  // namespace

void ServiceOptions::AddTo(CLI::App& command) {
  CLI::Option* address = command.add_option("--server", server, "address of a daemon: unix:PATH or HOST:PORT");
  command.add_option("--token-file", token_file, "file with the token for --server HOST:PORT")
      ->envname("HONE_TOKEN_FILE");
  command.add_option("--db", db, absl::StrCat("database file (default ", DefaultDatabase(), ")"))->excludes(address);
}

std::string ServiceOptions::database() const { return db.empty() ? DefaultDatabase() : db; }

std::string DefaultDatabase() {
  if (const char* data = std::getenv("HONE_DATA")) return std::string(data) + "/hone.db";
  if (const char* data = std::getenv("XDG_DATA_HOME")) return std::string(data) + "/hone/hone.db";
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.local/share/hone/hone.db";
}

absl::StatusOr<std::unique_ptr<DaemonClient>> ConnectTo(const ServiceOptions& options) {
  if (!options.server.empty()) {
    std::string token;
    if (!options.token_file.empty()) { HONE_ASSIGN_OR_RETURN(token, ReadToken(options.token_file)); }
    HONE_RETURN_IF_ERROR(ProbeSocket(options.server));  // what cannot answer is not waited for
    return DaemonClient::Connect(options.server, token, kConnectTimeout);
  }
  const std::string address = AddressOfDaemon(options.database());
  if (address.empty()) {
    return NoService(absl::UnavailableError(absl::StrCat(
        "no daemon runs on ", options.database(), "; start a job with hone tune, or name a daemon by --server ADDR")));
  }
  return DaemonClient::Connect(address, "", kConnectTimeout);
}

absl::StatusOr<std::unique_ptr<DaemonClient>> ConnectOrStart(const ServiceOptions& options, int threads) {
  if (!options.server.empty()) return ConnectTo(options);
  const std::string database = options.database();
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::absolute(database).parent_path(), error);
  const std::string address = AddressOfDaemon(database);
  std::unique_ptr<DaemonClient> client;
  if (!address.empty()) {
    absl::StatusOr<std::unique_ptr<DaemonClient>> joined = DaemonClient::Connect(address, "", kConnectTimeout);
    if (joined.ok()) client = *std::move(joined);
  }
  if (client == nullptr) { HONE_ASSIGN_OR_RETURN(client, StartDaemon(database)); }
  HONE_RETURN_IF_ERROR(EnsureWorker(*client, database, threads));
  return client;
}

absl::StatusOr<std::unique_ptr<TuningStore>> OpenForReading(const ServiceOptions& options) {
  absl::StatusOr<std::unique_ptr<TuningStore>> store = OpenSqliteStore(options.database(), StoreMode::kRead);
  if (!store.ok() && absl::IsNotFound(store.status())) return WithExitCode(ExitCode::kUsage, store.status());
  return store;
}

absl::StatusOr<std::vector<std::optional<v1::BestAnswer>>> FindBest(const ServiceOptions& options,
                                                                    const std::vector<v1::BestKey>& keys) {
  std::vector<std::optional<v1::BestAnswer>> answers(keys.size());
  if (!options.server.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options));
    v1::BestRecordsRequest request;
    for (const v1::BestKey& key : keys) *request.add_keys() = key;
    v1::BestRecordsReply reply;
    HONE_RETURN_IF_ERROR(FromGrpc(client->tune().BestRecords(client->Context().get(), request, &reply)));
    for (size_t i = 0; i < keys.size() && i < static_cast<size_t>(reply.answers_size()); ++i) {
      if (reply.answers(static_cast<int>(i)).has_record()) answers[i] = reply.answers(static_cast<int>(i));
    }
    return answers;
  }
  if (options.db.empty() && !std::filesystem::exists(options.database())) return answers;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store, OpenForReading(options));
  HONE_ASSIGN_OR_RETURN(const auto best, store->Best(kLocalTenant, keys));
  for (size_t i = 0; i < best.size(); ++i) {
    if (!best[i].has_value()) continue;
    v1::BestAnswer answer;
    *answer.mutable_record() = best[i]->row.record;
    answer.set_exact(best[i]->exact);
    answers[i] = std::move(answer);
  }
  return answers;
}

}  // namespace hone
