// honed: the tuning daemon. Options, signals, exit codes; everything else is Daemon.
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "compiler/log/log.h"
#include "compiler/sandbox/layers.h"
#include "compiler/support/file.h"
#include "compiler/support/option_checks.h"
#include "spdlog/spdlog.h"
#include "tuner/service/access/token_table.h"
#include "tuner/service/daemon.h"

namespace {

const std::map<std::string, hone::LogFormat> kLogFormats = {{"text", hone::LogFormat::kText},
                                                            {"json", hone::LogFormat::kJson}};
constexpr double kGiB = 1024.0 * 1024 * 1024;

// The codes all programs of Hone share.
int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return 0;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound: return 2;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:             // the disk is full
    case absl::StatusCode::kAborted:                       // another daemon leads the database now
    case absl::StatusCode::kFailedPrecondition: return 5;  // another daemon has the database or the address
    case absl::StatusCode::kPermissionDenied: return 8;
    case absl::StatusCode::kDataLoss: return 9;
    default: return 1;
  }
}

std::string RandomKey() {
  std::string key(32, '\0');
  size_t got = 0;
  while (got < key.size()) {
    const ssize_t more = ::getrandom(key.data() + got, key.size() - got, 0);
    if (more < 0 && errno != EINTR) std::abort();  // no kernel that has the call fails otherwise
    if (more > 0) got += static_cast<size_t>(more);
  }
  return key;
}

int DefaultSearches() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, std::min(8, cores / 2));
}

// What the command line says: the daemon's options, and what is converted into some of them.
struct Arguments {
  hone::DaemonOptions options;
  double idle_seconds = 0, silence_seconds = 0, lease_seconds = 0, build_seconds = 0, run_seconds = 0, memory_gib = 0;
  std::string missing_layers;
  std::vector<std::string> tenant_weights;
  hone::LogFormat log_format = hone::LogFormat::kText;
  bool verbose = false;
};

Arguments DefaultArguments() {
  Arguments arguments;
  arguments.options.core.search.program.path = hone::ProgramFolder() + "/hone-search";
  arguments.options.core.search.processes = DefaultSearches();
  const hone::DispatchOptions& dispatch = arguments.options.core.dispatch;
  arguments.silence_seconds = absl::ToDoubleSeconds(arguments.options.call_limits.silence);
  arguments.lease_seconds = dispatch.lease_ms * 1e-3;
  arguments.build_seconds = dispatch.build_limit_ms * 1e-3;
  arguments.run_seconds = dispatch.run_limit_ms * 1e-3;
  arguments.memory_gib = static_cast<double>(dispatch.memory_limit_bytes) / kGiB;
  return arguments;
}

void AddPlaceOptions(CLI::App& app, Arguments& arguments) {
  app.add_option("--db", arguments.options.db,
                 "SQLite file with jobs and records, made when there is none; or postgres://USER@HOST/DATABASE, which "
                 "several daemons may share: one leads, all answer look-ups")
      ->required();
  app.add_option("--listen", arguments.options.listen,
                 "unix:PATH (its owner alone) or HOST:PORT (needs TLS); may be given several times (default: a socket "
                 "beside the database)")
      ->allow_extra_args(false);
  app.add_option("--tls-ca", arguments.options.tls.ca,
                 "certificate of the fleet's authority: callers show one of its own")
      ->envname("HONE_TLS_CA");
  app.add_option("--tls-cert", arguments.options.tls.certificate, "the daemon's certificate")->envname("HONE_TLS_CERT");
  app.add_option("--tls-key", arguments.options.tls.key, "its key; the three files are read again when they change")
      ->envname("HONE_TLS_KEY");
  app.add_option("--tls-crl", arguments.options.tls.revoked,
                 "the authority's revocation list (ca.crl): calls with a certificate on it are refused, on open "
                 "connections too; read again when it changes")
      ->envname("HONE_TLS_CRL");
  app.add_flag("--insecure", arguments.options.insecure,
               "allow HOST:PORT without TLS: everything is sent as plain text");
  app.add_option(
      "--token-file", arguments.options.token_file,
      "file with the secret that callers must show, or lines of role (admin, client, worker, viewer), tenant, token");
}

void AddQuotaOptions(CLI::App& app, Arguments& arguments) {
  app.add_option("--max-rate", arguments.options.call_limits.calls_per_second,
                 "calls a second of one token or certificate")
      ->check(hone::FromTo(1.0, 1e6, "calls"))
      ->capture_default_str();
  app.add_option("--max-streams", arguments.options.call_limits.streams,
                 "submissions, watches, listings, exports and imports of one at once")
      ->check(hone::FromTo(1, 100'000, "streams"))
      ->capture_default_str();
  app.add_option("--tenant-multiple", arguments.options.call_limits.tenant_multiple,
                 "calls a second and streams of all tokens and certificates of a tenant together, in allowances of one")
      ->check(hone::FromTo(1, 100'000, "allowances"))
      ->capture_default_str();
  app.add_option("--max-silence", arguments.silence_seconds,
                 "seconds that the caller of a submission, listing, export or import may send or take nothing")
      ->check(hone::FromTo(0.1, 3600.0, "seconds"))
      ->capture_default_str();
  app.add_option("--max-request-bytes", arguments.options.call_limits.request_bytes,
                 "memory for one tenant's jobs while they are submitted, as 16M or 1G: a larger job is refused")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--max-connections", arguments.options.connections.all, "connections to each HOST:PORT at once")
      ->check(hone::FromTo(1, 1'000'000, "connections"))
      ->capture_default_str();
  app.add_option("--max-peer-connections", arguments.options.connections.of_peer,
                 "of these, from one IPv4 address or IPv6 network (/64), never more than half of all; raise it where "
                 "many callers are behind one address")
      ->check(hone::FromTo(1, 1'000'000, "connections"))
      ->capture_default_str();
  app.add_option("--max-jobs", arguments.options.core.dispatch.max_jobs, "jobs of one tenant that wait or run")
      ->check(hone::FromTo(1, 1'000'000, "jobs"))
      ->capture_default_str();
  app.add_option(
         "--tenant-weight", arguments.tenant_weights,
         "NAME=W, a tenant's weight (0.01 to 100, else 1) where tenants share: search processes, and workers that "
         "serve every tenant; once for each")
      ->allow_extra_args(false);
  app.add_option("--max-tasks", arguments.options.core.dispatch.max_tasks, "kernels in those jobs")
      ->check(hone::FromTo(1, 100'000'000, "kernels"))
      ->capture_default_str();
  app.add_option("--keep-trials", arguments.options.core.dispatch.keep_trials,
                 "trials kept for each kernel when a job ends; older ones leave, records stay")
      ->check(CLI::Range(100, 100'000'000))
      ->capture_default_str();
  app.add_option(
         "--max-database-bytes", arguments.options.core.max_database_bytes,
         "what the database may take, as 500M or 20G: failed trials leave first, then the slowest records; best "
         "records and those of lock files never do (default: no limit)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 60));
}

void AddTrialOptions(CLI::App& app, Arguments& arguments) {
  app.add_option("--lease", arguments.lease_seconds, "seconds after which a silent worker's candidates go to another")
      ->check(hone::FromTo(1.0, 3600.0, "seconds"))
      ->capture_default_str();
  app.add_option("--build-limit", arguments.build_seconds, "seconds in which a candidate must be built")
      ->check(hone::FromTo(0.1, 3600.0, "seconds"))
      ->capture_default_str();
  app.add_option("--run-limit", arguments.run_seconds, "seconds in which one run of a candidate must end")
      ->check(hone::FromTo(0.1, 3600.0, "seconds"))
      ->capture_default_str();
  app.add_option("--memory-limit", arguments.memory_gib, "GiB of address space that a running candidate may have")
      ->check(hone::FromTo(0.1, 65536.0, "GiB"))
      ->capture_default_str();
  app.add_option("--stall", arguments.options.core.dispatch.stall_trials,
                 "trials without a gain after which a task is left alone")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void AddProcessOptions(CLI::App& app, Arguments& arguments) {
  app.add_option("--exit-when-idle", arguments.idle_seconds,
                 "end when there was no job and no client for this many seconds")
      ->check(hone::AboveZero("seconds"));
  app.add_option("--searches", arguments.options.core.search.processes,
                 "searches at once, each in the process of its task")
      ->check(hone::FromTo(1, 256, "processes"))
      ->capture_default_str();
  app.add_option(
         "--allow-missing-layer", arguments.missing_layers,
         "layers of the sandbox of searches that may be missing, by name, separated by commas, or all; any other that "
         "is missing ends the daemon")
      ->envname("HONE_ALLOW_MISSING_LAYER");
  app.add_option("--search-program", arguments.options.core.search.program.path, "the search program to start")
      ->group("");
  app.add_option("--search-argument", arguments.options.core.search.program.arguments, "what to give it")->group("");
  app.add_option("--http", arguments.options.http,
                 "PORT (of this machine alone) or HOST:PORT of /metrics, /healthz and /readyz: asks nobody who they "
                 "are, and tells nothing of a tenant "
                 "(default: none)");
  app.add_option("--log-format", arguments.log_format, "text, or json: an object a line")
      ->transform(CLI::CheckedTransformer(kLogFormats));
  app.add_flag("--verbose", arguments.verbose, "say more on standard error");
}

// Of NAME=W each. InvalidArgument names the flag.
absl::StatusOr<std::map<uint64_t, double>> ParseTenantWeights(const std::vector<std::string>& given) {
  std::map<uint64_t, double> weights;
  for (const std::string& text : given) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    double weight = 0;
    if (!hone::IsTenantName(parts.first) || !absl::SimpleAtod(parts.second, &weight) ||
        !(weight >= 0.01 && weight <= 100)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tenant-weight ", text, ": NAME=W is needed, a tenant's name and a number from 0.01 to 100"));
    }
    if (!weights.emplace(hone::TenantOf(parts.first).id, weight).second) {
      return absl::InvalidArgumentError(absl::StrCat("--tenant-weight ", text, ": the tenant is named twice"));
    }
  }
  return weights;
}

// Converts what is given in units of people. InvalidArgument names the flag.
absl::Status Settle(Arguments& arguments) {
  const absl::StatusOr<uint32_t> allowed = hone::ParseLayers(arguments.missing_layers);
  if (!allowed.ok())
    return absl::InvalidArgumentError("--allow-missing-layer: " + std::string(allowed.status().message()));
  hone::DaemonOptions& options = arguments.options;
  options.core.search.program.allowed_missing = *allowed;
  options.call_limits.silence = absl::Seconds(arguments.silence_seconds);
  if (arguments.idle_seconds > 0) options.exit_when_idle = absl::Seconds(arguments.idle_seconds);
  hone::DispatchOptions& dispatch = options.core.dispatch;
  dispatch.lease_ms = static_cast<uint32_t>(arguments.lease_seconds * 1e3);
  dispatch.build_limit_ms = static_cast<uint32_t>(arguments.build_seconds * 1e3);
  dispatch.run_limit_ms = static_cast<uint32_t>(arguments.run_seconds * 1e3);
  dispatch.memory_limit_bytes = static_cast<int64_t>(arguments.memory_gib * kGiB);
  absl::StatusOr<std::map<uint64_t, double>> weights = ParseTenantWeights(arguments.tenant_weights);
  if (!weights.ok()) return weights.status();
  dispatch.tenant_weights = *std::move(weights);
  dispatch.lease_key = RandomKey();
  dispatch.sync_hold_ms = std::min(dispatch.sync_hold_ms, dispatch.lease_ms / 3);
  return absl::OkStatus();
}

// Connections are descriptors: as many as the process may have.
void TakeAllDescriptors() {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  descriptors.rlim_cur = descriptors.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &descriptors);
}

// Signals that end the daemon, blocked in this thread and in those made from here on: one thread waits for them.
sigset_t BlockEndingSignals() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ending, number);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  return ending;
}

void StopOnSignal(hone::Daemon& daemon, const sigset_t& ending) {
  std::thread([ending, &daemon] {
    int number = 0;
    sigwait(&ending, &number);
    spdlog::info("signal {}: stopping", number);
    daemon.RequestStop();
    sigwait(&ending, &number);  // a second one does not wait for anybody
    _exit(128 + number);
  }).detach();
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "honed: %s\n", std::string(status.message()).c_str());
  return ExitCode(status);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("honed: keeps tuning jobs and records, and hands candidates to workers");
  app.footer(
      "Examples:\n"
      "  honed --db ~/tuning.db\n"
      "  honed --db fleet.db --listen 0.0.0.0:7171 --tls-ca ca.crt --tls-cert daemon-host.crt --tls-key "
      "daemon-host.key\n"
      "  honed --db fleet.db --listen 127.0.0.1:7171 --insecure --token-file token\n"
      "  honed --db postgres://hone@db.example/hone --listen 0.0.0.0:7171 --tls-ca ca.crt --tls-cert daemon-host.crt "
      "--tls-key daemon-host.key\n\n"
      "Exit codes: 0 stopped by SIGTERM or SIGINT, 1 a bug of Hone's, 2 usage, 5 another daemon has the database or "
      "the\n"
      "address, the database's server cannot be reached, or the disk is full, 8 not allowed, or a layer of the "
      "sandbox\n"
      "is missing, 9 the database is unreadable or corrupt.");
  Arguments arguments = DefaultArguments();
  AddPlaceOptions(app, arguments);
  AddQuotaOptions(app, arguments);
  AddTrialOptions(app, arguments);
  AddProcessOptions(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? 0 : 2; }
  if (const absl::Status settled = Settle(arguments); !settled.ok()) return Fail(settled);
  hone::StartLog("honed", arguments.log_format, arguments.verbose);
  // Debian's Abseil looks for lock cycles at every lock that gRPC takes, all threads behind one lock of its own.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  TakeAllDescriptors();
  const sigset_t ending = BlockEndingSignals();

  absl::StatusOr<std::unique_ptr<hone::Daemon>> daemon = hone::Daemon::Start(arguments.options);
  if (!daemon.ok()) return Fail(daemon.status());
  StopOnSignal(**daemon, ending);
  for (const std::string& address : (*daemon)->addresses()) std::printf("listening on %s\n", address.c_str());
  if (!arguments.options.http.empty()) std::printf("metrics at http://%s/metrics\n", (*daemon)->http_address().c_str());
  std::fflush(stdout);
  const absl::Status status = (*daemon)->Serve();
  if (!status.ok()) Fail(status);
  std::fflush(nullptr);
  // Not by way of gRPC's destructors: they remove the socket's name, which may be another daemon's by now.
  _exit(ExitCode(status));
}
