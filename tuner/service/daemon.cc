#include "tuner/service/daemon.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/sandbox/layers.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "database/open_store.h"
#include "database/sqlite/sqlite_store.h"
#include "grpc/support/log.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "proto/rpc/address.h"
#include "proto/rpc/channel.h"
#include "spdlog/spdlog.h"
#include "tuner/service/access/auth.h"
#include "tuner/service/core/core.h"
#include "tuner/service/endpoints/fleet_service.h"
#include "tuner/service/endpoints/http_server.h"
#include "tuner/service/endpoints/tune_service.h"

namespace hone {
namespace {

constexpr auto kStopGrace = std::chrono::milliseconds(300);
constexpr absl::Duration kLookAtFiles = absl::Seconds(1);

// A socket file that nobody listens on is left over and may go; one that somebody answers is not ours to take.
absl::Status ClearSocket(const std::string& address) {
  const absl::Status probed = ProbeSocket(address);
  if (probed.ok()) return absl::UnavailableError(absl::StrCat(address, ": another program listens there"));
  if (!absl::IsUnavailable(probed)) return probed;
  unlink(SocketPath(address).c_str());
  return absl::OkStatus();
}

// The folder of a socket has to be there and to be ours to write: gRPC says of neither what is wrong.
absl::Status CheckSocketFolder(const std::string& address) {
  const std::filesystem::path folder = std::filesystem::absolute(SocketPath(address)).parent_path();
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::InvalidArgumentError(absl::StrCat("--listen ", address, ": there is no folder ", folder.string(),
                                                   "; make it (mkdir -p ", folder.string(), ") or choose another"));
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::PermissionDeniedError(absl::StrCat("--listen ", address, ": this user may not write in ",
                                                    folder.string(), "; choose another folder"));
  }
  return absl::OkStatus();
}

// A HOST:PORT without TLS is for those who asked for it, and never without tokens.
absl::Status CheckPlainText(const std::string& address, bool insecure, const TokenTable& tokens) {
  if (!insecure) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", address,
        ": a daemon on the network needs TLS; give --tls-ca, --tls-cert and --tls-key (hone ca makes them), or "
        "--insecure where whoever can listen in may know all, tokens included"));
  }
  if (tokens.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", address, ": a daemon on the network needs a token where it has no TLS; give --token-file FILE"));
  }
  return absl::OkStatus();
}

// What a peer may do to a connection before, between and beside its calls.
void SetTransportLimits(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kLongestMessage);
  builder.SetMaxSendMessageSize(kLongestMessage);
  builder.SetResourceQuota(grpc::ResourceQuota("honed").SetMaxThreads(kMostCallThreads));
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, int>>{
           {GRPC_ARG_MAX_METADATA_SIZE, 16 << 10},
           {GRPC_ARG_MAX_CONCURRENT_STREAMS, 64},
           {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000},
           {GRPC_ARG_MAX_CONNECTION_IDLE_MS, 10 * 60'000},
           {GRPC_ARG_MAX_CONNECTION_AGE_MS, 60 * 60'000},  // then it shows its certificate again
           {GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 10 * 60'000},
           {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000},
           {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},
           {GRPC_ARG_KEEPALIVE_TIME_MS, 20'000},
           {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000}}) {
    builder.AddChannelArgument(name, value);
  }
}

// What gRPC says of connections that fail: anybody can make it say that, as often as they like.
void LogOfGrpc(gpr_log_func_args* said) { spdlog::debug("gRPC: {}", said->message); }

// Files that may be written anew while the daemon runs.
class FileWatch {
 public:
  explicit FileWatch(std::vector<std::string> paths) : paths_(std::move(paths)), seen_(Look()) {}
  bool Changed() {
    std::vector<Stamp> now = Look();
    const bool changed = now != seen_;
    seen_ = std::move(now);
    return changed;
  }

 private:
  using Stamp = std::tuple<ino_t, off_t, time_t, long>;
  std::vector<Stamp> Look() const {
    std::vector<Stamp> stamps;
    for (const std::string& path : paths_) {
      struct stat info {};
      if (path.empty() || stat(path.c_str(), &info) != 0) info = {};
      stamps.emplace_back(info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    }
    return stamps;
  }
  const std::vector<std::string> paths_;
  std::vector<Stamp> seen_;
};

// Tokens, certificates and revocations, which count as they are in their files now. What was read before stays when a
// file cannot serve.
class WatchedFiles {
 public:
  explicit WatchedFiles(const DaemonOptions& options)
      : token_file_(options.token_file),
        tls_(options.tls),
        tokens_({token_file_}),
        certificates_({tls_.ca, tls_.certificate, tls_.key}),
        revoked_({tls_.revoked}) {}

  void FollowChanges(Gate& gate) {
    if (tokens_.Changed()) ReadTokens(gate);
    if (revoked_.Changed()) ReadRevoked(gate);
    if (certificates_.Changed()) {  // gRPC reads them by itself, and says nothing
      const absl::Status status = CheckTlsFiles(tls_);
      if (status.ok()) spdlog::info("{} has changed: new connections are shown it", tls_.certificate);
      if (!status.ok()) spdlog::error("the certificates have changed: {}", std::string(status.message()));
    }
  }

 private:
  void ReadTokens(Gate& gate) const {
    absl::StatusOr<TokenTable> tokens = TokenTable::Read(token_file_);
    if (!tokens.ok()) {
      spdlog::error("the token file has changed, the tokens from before stay: {}",
                    std::string(tokens.status().message()));
      return;
    }
    gate.SetTokens(*std::move(tokens));
    spdlog::info("{} has changed: its tokens are those from now on", token_file_);
  }
  void ReadRevoked(Gate& gate) const {
    absl::StatusOr<RevocationList> revoked = RevocationList::Read(tls_.revoked, tls_.ca);
    if (!revoked.ok()) {
      spdlog::error("the revocation list has changed, the one from before stays: {}",
                    std::string(revoked.status().message()));
      return;
    }
    spdlog::info("{} has changed: {} certificates are revoked", tls_.revoked, revoked->size());
    gate.SetRevoked(*std::move(revoked));
  }

  const std::string token_file_;
  const TlsFiles tls_;
  FileWatch tokens_, certificates_, revoked_;
};

// The layers that the sandbox of a search lacks here. PermissionDenied when it may not.
absl::StatusOr<uint32_t> TrySandbox(const SandboxedProgram& search) {
  const absl::StatusOr<std::unique_ptr<SandboxedProcess>> tried = SandboxedProcess::Start(search);
  if (tried.ok()) return MissingLayers((*tried)->layers());
  if (absl::IsPermissionDenied(tried.status())) return tried.status();
  // A program that does not start is tried again whenever a search is asked for, and the jobs say so.
  spdlog::warn("a search process does not start: {}", std::string(tried.status().message()));
  return 0;
}

// Which file is at the path: {device, inode}, zeros where there is none.
std::pair<dev_t, ino_t> FileAt(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? std::pair(info.st_dev, info.st_ino) : std::pair<dev_t, ino_t>();
}

}  // namespace

struct Daemon::Parts {
  DaemonOptions options;
  std::unique_ptr<Gate> gate;
  std::unique_ptr<Core> core;
  std::unique_ptr<HttpServer> http;
  std::pair<dev_t, ino_t> database;
  std::unique_ptr<grpc::Service> tune, fleet;
  std::unique_ptr<grpc::Server> server;
  std::vector<std::unique_ptr<Listener>> listeners;  // of every HOST:PORT
  std::atomic<Micros> last_call{0};
  std::vector<std::string> socket_paths;
  std::mutex mutex;
  absl::Status failure;

  // What `listen` is to be, once it names no address that can never work.
  absl::Status ChooseAddresses() {
    std::vector<std::string>& listen = options.listen;
    if (listen.empty() && !IsFile(options.db)) {
      return absl::InvalidArgumentError("--listen: give an address; only a database file has a usual one, beside it");
    }
    if (listen.empty()) listen.push_back(OwnersAddress(options.db));
    for (const std::string& address : listen) {
      if (const absl::Status status = CheckAddress(address); !status.ok()) return Annotate(status, "--listen");
      if (IsUnixAddress(address)) HONE_RETURN_IF_ERROR(CheckSocketFolder(address));
    }
    return absl::OkStatus();
  }

  // The gate, with tokens and revocations; InvalidArgument where an address would be open to anybody.
  absl::Status OpenGate() {
    TokenTable tokens;
    if (!options.token_file.empty()) { HONE_ASSIGN_OR_RETURN(tokens, TokenTable::Read(options.token_file)); }
    for (const std::string& address : options.listen) {
      if (IsUnixAddress(address)) continue;
      HONE_RETURN_IF_ERROR(CheckTlsFiles(options.tls));
      if (options.tls.empty()) HONE_RETURN_IF_ERROR(CheckPlainText(address, options.insecure, tokens));
    }
    gate = std::make_unique<Gate>(std::move(tokens), options.call_limits);
    if (options.tls.revoked.empty()) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(RevocationList revoked, RevocationList::Read(options.tls.revoked, options.tls.ca));
    gate->SetRevoked(std::move(revoked));
    return absl::OkStatus();
  }

  // Serves on all addresses, which are returned with the ports that were chosen.
  absl::StatusOr<std::vector<std::string>> Listen() {
    std::vector<std::string> addresses;
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>> acceptors;
    for (const std::string& address : options.listen) {
      if (IsUnixAddress(address)) {
        HONE_RETURN_IF_ERROR(ClearSocket(address));
        socket_paths.push_back(SocketPath(address));
        builder.AddListeningPort(address, grpc::InsecureServerCredentials());
        addresses.push_back(address);
        continue;
      }
      HONE_ASSIGN_OR_RETURN(std::unique_ptr<Listener> listener, Listener::Open(address));
      addresses.push_back(listener->address());
      listeners.push_back(std::move(listener));
      acceptors.push_back(builder.experimental().AddExternalConnectionAcceptor(
          grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, MakeServerCredentials(options.tls)));
    }
    SetTransportLimits(builder);
    builder.RegisterService(tune.get());
    builder.RegisterService(fleet.get());
    const mode_t before = umask(0177);  // a socket is its owner's alone from the first moment
    server = builder.BuildAndStart();
    umask(before);
    if (server == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", absl::StrJoin(options.listen, ", "),
                                                 ": the address is in use or not of this machine"));
    }
    for (size_t i = 0; i < acceptors.size(); ++i) listeners[i]->Start(std::move(acceptors[i]), options.connections);
    return addresses;
  }

  // Whether nobody has needed a private daemon for as long as it waits.
  bool IsLeft() {
    if (!is_private()) return false;
    if (core->watches() > 0) last_call = Core::Now();  // whoever watches may have more to say at the end
    if (absl::Microseconds(Core::Now() - last_call) <= options.exit_when_idle) return false;
    bool idle = true;
    core->Query([&](const Dispatcher& dispatcher) { idle = dispatcher.Idle(); });
    return idle;
  }

  // Everybody who waits is answered, and what was promised is written.
  void Close() {
    if (is_private()) {  // its workers end with it; those of a shared one wait for the next
      core->Post(ShutDown{});
      absl::SleepFor(absl::Milliseconds(300));
    }
    server->GetHealthCheckService()->SetServingStatus(false);
    for (const auto& listener : listeners) listener->Stop();
    http = nullptr;
    CrashPoint("daemon.stop.deaf");
    core->Stop();
    CrashPoint("daemon.stop.stopped");
    server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
    server->Wait();
    CrashPoint("daemon.stop.down");
    for (const std::string& path : socket_paths) unlink(path.c_str());
    core = nullptr;  // with the store: a file that is closed is whole by itself
  }

  bool is_private() const { return options.exit_when_idle != absl::InfiniteDuration(); }
};

Daemon::Daemon() : parts_(std::make_unique<Parts>()) {}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options) {
  std::unique_ptr<Daemon> daemon(new Daemon());
  Parts& parts = *daemon->parts_;
  parts.options = options;
  gpr_set_log_function(LogOfGrpc);
  HONE_RETURN_IF_ERROR(parts.ChooseAddresses());
  HONE_RETURN_IF_ERROR(parts.OpenGate());
  CoreOptions core = options.core;
  HONE_ASSIGN_OR_RETURN(core.search.missing_layers, TrySandbox(core.search.program));
  CrashPoint("daemon.start");
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<TuningStore> store, OpenStore(options.db, StoreMode::kWrite));
  CrashPoint("daemon.store_opened");
  parts.database = FileAt(options.db);
  core.dispatch.searches = std::max(1, core.search.processes);
  HONE_ASSIGN_OR_RETURN(parts.core, Core::Start(std::move(core), std::move(store), [&parts](absl::Status status) {
                          const std::lock_guard<std::mutex> guard(parts.mutex);
                          parts.failure = std::move(status);
                        }));
  CrashPoint("daemon.core_started");
  parts.tune = MakeTuneService(*parts.core, *parts.gate, options.call_limits, parts.last_call);
  parts.fleet = MakeFleetService(*parts.core, *parts.gate, options.call_limits);
  HONE_ASSIGN_OR_RETURN(daemon->addresses_, parts.Listen());
  CrashPoint("daemon.listening");
  // Clients on this machine find it by the database: by a socket where there is one.
  if (IsFile(options.db)) {
    const auto local = std::find_if(daemon->addresses_.begin(), daemon->addresses_.end(), IsUnixAddress);
    HONE_RETURN_IF_ERROR(
        PublishAddress(options.db, local == daemon->addresses_.end() ? daemon->addresses_.front() : *local));
  }
  CrashPoint("daemon.published");
  if (!options.http.empty()) { HONE_ASSIGN_OR_RETURN(parts.http, HttpServer::Start(options.http, *parts.core)); }
  parts.last_call = Core::Now();
  return daemon;
}

std::string Daemon::http_address() const { return parts_->http == nullptr ? "" : parts_->http->address(); }

absl::Status Daemon::Serve() {
  Parts& parts = *parts_;
  WatchedFiles files(parts.options);
  absl::Time look_at_files = MonotonicNow() + kLookAtFiles;
  absl::Status result;
  while (!stop_ && result.ok()) {
    absl::SleepFor(absl::Milliseconds(50));
    if (FileAt(parts.options.db) != parts.database) {
      return absl::DataLossError(absl::StrCat(parts.options.db,
                                              ": the database was removed or replaced while this daemon served it; it "
                                              "ends, and what only the old file held is gone with that file"));
    }
    if (MonotonicNow() >= look_at_files) {
      look_at_files = MonotonicNow() + kLookAtFiles;
      files.FollowChanges(*parts.gate);
    }
    {
      const std::lock_guard<std::mutex> guard(parts.mutex);
      result = parts.failure;
    }
    if (result.ok() && parts.IsLeft()) {
      spdlog::info("nobody needs this daemon any more");
      break;
    }
  }
  CrashPoint("daemon.stop.begun");
  parts.Close();
  return result;
}

Daemon::~Daemon() {
  Parts& parts = *parts_;
  parts.http = nullptr;
  for (const auto& listener : parts.listeners) listener->Stop();
  if (parts.server != nullptr) {
    if (parts.core != nullptr) parts.core->Stop();
    parts.server->Shutdown(std::chrono::system_clock::now());
    parts.server->Wait();
  }
  parts.server = nullptr;
}

}  // namespace hone
