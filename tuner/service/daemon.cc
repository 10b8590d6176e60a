#include "tuner/service/daemon.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/support/status_macros.h"
#include "database/sqlite_store.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/address.h"
#include "proto/rpc/channel.h"
#include "spdlog/spdlog.h"
#include "tuner/service/auth.h"
#include "tuner/service/core.h"
#include "tuner/service/fleet_service.h"
#include "tuner/service/tune_service.h"

namespace hone {
namespace {

constexpr auto kStopGrace = std::chrono::milliseconds(300);

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

}  // namespace

struct Daemon::Parts {
  DaemonOptions options;
  std::unique_ptr<Gate> gate;
  std::unique_ptr<Core> core;
  std::unique_ptr<grpc::Service> tune, fleet;
  std::unique_ptr<grpc::Server> server;
  std::atomic<Micros> last_call{0};
  std::vector<std::string> socket_paths;
  std::mutex mutex;
  absl::Status failure;
};

Daemon::Daemon() : parts_(std::make_unique<Parts>()) {}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options) {
  std::unique_ptr<Daemon> daemon(new Daemon());
  Parts& parts = *daemon->parts_;
  parts.options = options;
  std::vector<std::string>& listen = parts.options.listen;
  if (listen.empty()) listen.push_back(OwnersAddress(options.db));
  for (const std::string& address : listen) {
    if (const absl::Status status = CheckAddress(address); !status.ok()) return Annotate(status, "--listen");
    if (IsUnixAddress(address)) HONE_RETURN_IF_ERROR(CheckSocketFolder(address));
  }
  TokenTable tokens;
  if (!options.token_file.empty()) { HONE_ASSIGN_OR_RETURN(tokens, TokenTable::Read(options.token_file)); }
  if (!std::all_of(listen.begin(), listen.end(), IsUnixAddress)) HONE_RETURN_IF_ERROR(CheckTlsFiles(options.tls));
  for (const std::string& address : listen) {
    if (IsUnixAddress(address) || !options.tls.empty()) continue;
    if (!options.insecure) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--listen ", address,
          ": a daemon on the network needs TLS; give --tls-ca, --tls-cert and --tls-key (hone ca makes them), or "
          "--insecure where whoever can listen in may know all, tokens included"));
    }
    if (tokens.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--listen ", address, ": a daemon on the network needs a token where it has no TLS; give --token-file FILE"));
    }
  }
  parts.gate = std::make_unique<Gate>(std::move(tokens));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<TuningStore> store, OpenSqliteStore(options.db, StoreMode::kWrite));
  Daemon* raw = daemon.get();
  DispatchOptions dispatch = options.dispatch;
  dispatch.searches = std::max(1, options.search.processes);
  HONE_ASSIGN_OR_RETURN(parts.core, Core::Start(dispatch, std::move(store), options.search, [raw](absl::Status status) {
                          const std::lock_guard<std::mutex> guard(raw->parts_->mutex);
                          raw->parts_->failure = std::move(status);
                        }));
  parts.tune = MakeTuneService(*parts.core, *parts.gate, parts.last_call);
  parts.fleet = MakeFleetService(*parts.core, *parts.gate);

  grpc::ServerBuilder builder;
  std::vector<int> ports(listen.size(), 0);
  for (size_t i = 0; i < listen.size(); ++i) {
    const std::string& address = listen[i];
    if (IsUnixAddress(address)) {
      HONE_RETURN_IF_ERROR(ClearSocket(address));
      parts.socket_paths.push_back(SocketPath(address));
    }
    builder.AddListeningPort(
        address, IsUnixAddress(address) ? grpc::InsecureServerCredentials() : MakeServerCredentials(options.tls),
        &ports[i]);
  }
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kLongestMessage);
  builder.SetMaxSendMessageSize(kLongestMessage);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.RegisterService(parts.tune.get());
  builder.RegisterService(parts.fleet.get());
  const mode_t before = umask(0177);  // the socket is its owner's alone from the first moment
  parts.server = builder.BuildAndStart();
  umask(before);
  for (size_t i = 0; i < listen.size(); ++i) {
    const std::string& address = listen[i];
    if (parts.server == nullptr || (!IsUnixAddress(address) && ports[i] == 0)) {
      const bool told = parts.server != nullptr || listen.size() == 1;  // else it may be any of them
      parts.server = nullptr;
      return absl::UnavailableError(absl::StrCat("cannot listen on ", told ? address : absl::StrJoin(listen, ", "),
                                                 ": the address is in use or not of this machine"));
    }
    daemon->addresses_.push_back(
        IsUnixAddress(address) ? address : absl::StrCat(address.substr(0, address.rfind(':')), ":", ports[i]));
  }
  // Clients on this machine find it by the database: by a socket where there is one.
  const auto local = std::find_if(daemon->addresses_.begin(), daemon->addresses_.end(), IsUnixAddress);
  HONE_RETURN_IF_ERROR(
      PublishAddress(options.db, local == daemon->addresses_.end() ? daemon->addresses_.front() : *local));
  parts.last_call = Core::Now();
  return daemon;
}

absl::Status Daemon::Serve() {
  Parts& parts = *parts_;
  const bool is_private = parts.options.exit_when_idle != absl::InfiniteDuration();
  absl::Status result;
  while (!stop_) {
    absl::SleepFor(absl::Milliseconds(50));
    {
      const std::lock_guard<std::mutex> guard(parts.mutex);
      if (!parts.failure.ok()) {
        result = parts.failure;
        break;
      }
    }
    if (!is_private) continue;
    if (parts.core->watches() > 0) parts.last_call = Core::Now();  // whoever watches may have more to say at the end
    if (absl::Microseconds(Core::Now() - parts.last_call) <= parts.options.exit_when_idle) continue;
    bool idle = true;
    parts.core->Query([&](const Dispatcher& dispatcher) { idle = dispatcher.Idle(); });
    if (!idle) continue;
    spdlog::info("nobody needs this daemon any more");
    break;
  }
  // Workers of a private daemon end with it; those of a shared one wait for the next.
  if (is_private) {
    parts.core->Post(ShutDown{});
    absl::SleepFor(absl::Milliseconds(300));
  }
  parts.core->Stop();  // what was promised is written; everybody who waits is answered
  parts.server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  parts.server->Wait();
  for (const std::string& path : parts.socket_paths) unlink(path.c_str());
  return result;
}

Daemon::~Daemon() {
  Parts& parts = *parts_;
  if (parts.server != nullptr) {
    parts.core->Stop();
    parts.server->Shutdown(std::chrono::system_clock::now());
    parts.server->Wait();
  }
  parts.server = nullptr;
}

}  // namespace hone
