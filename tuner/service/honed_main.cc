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

#include "CLI/CLI.hpp"
#include "compiler/log/log.h"
#include "compiler/sandbox/layers.h"
#include "compiler/support/file.h"
#include "compiler/support/option_checks.h"
#include "spdlog/spdlog.h"
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

}  // namespace

int main(int argc, char** argv) {
  hone::DaemonOptions options;
  options.core.search.program.path = hone::ProgramFolder() + "/hone-search";
  options.core.search.processes = DefaultSearches();
  double idle_seconds = 0;
  double lease_seconds = options.core.dispatch.lease_ms * 1e-3;
  double build_seconds = options.core.dispatch.build_limit_ms * 1e-3;
  double run_seconds = options.core.dispatch.run_limit_ms * 1e-3;
  double memory_gib = static_cast<double>(options.core.dispatch.memory_limit_bytes) / kGiB;
  std::string missing_layers;
  hone::LogFormat log_format = hone::LogFormat::kText;
  bool verbose = false;

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
      "address, the database's server cannot be reached, or the disk is full, 8 not allowed, 9 the database is "
      "unreadable or corrupt.");
  app.add_option("--db", options.db,
                 "SQLite file with jobs and records, made when there is none; or postgres://USER@HOST/DATABASE, which "
                 "several daemons may share: one leads, all answer look-ups")
      ->required();
  app.add_option("--listen", options.listen,
                 "unix:PATH (its owner alone) or HOST:PORT (needs TLS); may be given several times (default: a socket "
                 "beside the database)")
      ->allow_extra_args(false);
  app.add_option("--tls-ca", options.tls.ca, "certificate of the fleet's authority: callers show one of its own")
      ->envname("HONE_TLS_CA");
  app.add_option("--tls-cert", options.tls.certificate, "the daemon's certificate")->envname("HONE_TLS_CERT");
  app.add_option("--tls-key", options.tls.key, "its key; the three files are read again when they change")
      ->envname("HONE_TLS_KEY");
  app.add_option("--tls-crl", options.tls.revoked,
                 "the authority's revocation list (ca.crl): calls with a certificate on it are refused, on open "
                 "connections too; read again when it changes")
      ->envname("HONE_TLS_CRL");
  app.add_flag("--insecure", options.insecure, "allow HOST:PORT without TLS: everything is sent as plain text");
  app.add_option(
      "--token-file", options.token_file,
      "file with the secret that callers must show, or lines of role (admin, client, worker, viewer), tenant, token");
  app.add_option("--max-rate", options.call_limits.calls_per_second, "calls a second of one token or certificate")
      ->check(hone::FromTo(1.0, 1e6, "calls"))
      ->capture_default_str();
  app.add_option("--max-streams", options.call_limits.streams, "watches, listings, exports and imports of one at once")
      ->check(hone::FromTo(1, 100'000, "streams"))
      ->capture_default_str();
  app.add_option("--max-connections", options.max_connections, "connections to each HOST:PORT at once")
      ->check(hone::FromTo(1, 1'000'000, "connections"))
      ->capture_default_str();
  app.add_option("--max-jobs", options.core.dispatch.max_jobs, "jobs of one tenant that wait or run")
      ->check(hone::FromTo(1, 1'000'000, "jobs"))
      ->capture_default_str();
  app.add_option("--max-tasks", options.core.dispatch.max_tasks, "kernels in those jobs")
      ->check(hone::FromTo(1, 100'000'000, "kernels"))
      ->capture_default_str();
  app.add_option("--exit-when-idle", idle_seconds, "end when there was no job and no client for this many seconds")
      ->check(hone::AboveZero("seconds"));
  app.add_option("--lease", lease_seconds, "seconds after which a silent worker's candidates go to another")
      ->check(hone::FromTo(1.0, 3600.0, "seconds"))
      ->capture_default_str();
  app.add_option("--build-limit", build_seconds, "seconds in which a candidate must be built")
      ->check(hone::FromTo(0.1, 3600.0, "seconds"))
      ->capture_default_str();
  app.add_option("--run-limit", run_seconds, "seconds in which one run of a candidate must end")
      ->check(hone::FromTo(0.1, 3600.0, "seconds"))
      ->capture_default_str();
  app.add_option("--memory-limit", memory_gib, "GiB of address space that a running candidate may have")
      ->check(hone::FromTo(0.1, 65536.0, "GiB"))
      ->capture_default_str();
  app.add_option("--keep-trials", options.core.dispatch.keep_trials,
                 "trials kept for each kernel when a job ends; older ones leave, records stay")
      ->check(CLI::Range(100, 100'000'000))
      ->capture_default_str();
  app.add_option(
         "--max-database-bytes", options.core.max_database_bytes,
         "what the database may take, as 500M or 20G: failed trials leave first, then the slowest records; best "
         "records and those of lock files never do (default: no limit)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 60));
  app.add_option("--searches", options.core.search.processes, "search processes at most")
      ->check(hone::FromTo(1, 256, "processes"))
      ->capture_default_str();
  app.add_option("--allow-missing-layer", missing_layers,
                 "layers of the sandbox, by name, without which searches run all the same")
      ->envname("HONE_ALLOW_MISSING_LAYER");
  app.add_option("--stall", options.core.dispatch.stall_trials,
                 "trials without a gain after which a task is left alone")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--search-program", options.core.search.program.path, "the search program to start")->group("");
  app.add_option("--search-argument", options.core.search.program.arguments, "what to give it")->group("");
  app.add_option("--http", options.http,
                 "PORT (of this machine alone) or HOST:PORT of /metrics, /healthz and /readyz: asks nobody who they "
                 "are, and tells nothing of a tenant "
                 "(default: none)");
  app.add_option("--log-format", log_format, "text, or json: an object a line")
      ->transform(CLI::CheckedTransformer(kLogFormats));
  app.add_flag("--verbose", verbose, "say more on standard error");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? 0 : 2; }
  const absl::StatusOr<uint32_t> allowed = hone::ParseLayers(missing_layers);
  if (!allowed.ok()) {
    std::fprintf(stderr, "honed: --allow-missing-layer: %s\n", std::string(allowed.status().message()).c_str());
    return 2;
  }
  options.core.search.program.allowed_missing = *allowed;
  if (idle_seconds > 0) options.exit_when_idle = absl::Seconds(idle_seconds);
  options.core.dispatch.lease_ms = static_cast<uint32_t>(lease_seconds * 1e3);
  options.core.dispatch.build_limit_ms = static_cast<uint32_t>(build_seconds * 1e3);
  options.core.dispatch.run_limit_ms = static_cast<uint32_t>(run_seconds * 1e3);
  options.core.dispatch.memory_limit_bytes = static_cast<int64_t>(memory_gib * kGiB);
  options.core.dispatch.lease_key = RandomKey();
  options.core.dispatch.sync_hold_ms = std::min(options.core.dispatch.sync_hold_ms, options.core.dispatch.lease_ms / 3);

  hone::StartLog("honed", log_format, verbose);

  // Connections are descriptors: as many as the process may have.
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
    descriptors.rlim_cur = descriptors.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &descriptors);
  }

  // Signals are waited for by one thread; every thread made from here on has them blocked.
  signal(SIGPIPE, SIG_IGN);
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ending, number);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);

  absl::StatusOr<std::unique_ptr<hone::Daemon>> daemon = hone::Daemon::Start(options);
  if (!daemon.ok()) {
    std::fprintf(stderr, "honed: %s\n", std::string(daemon.status().message()).c_str());
    return ExitCode(daemon.status());
  }
  std::thread([&ending, raw = daemon->get()] {
    int number = 0;
    sigwait(&ending, &number);
    spdlog::info("signal {}: stopping", number);
    raw->RequestStop();
    sigwait(&ending, &number);  // a second one does not wait for anybody
    _exit(128 + number);
  }).detach();

  for (const std::string& address : (*daemon)->addresses()) std::printf("listening on %s\n", address.c_str());
  if (!options.http.empty()) std::printf("metrics at http://%s/metrics\n", (*daemon)->http_address().c_str());
  std::fflush(stdout);
  const absl::Status status = (*daemon)->Serve();
  if (!status.ok()) std::fprintf(stderr, "honed: %s\n", std::string(status.message()).c_str());
  std::fflush(nullptr);
  // Not by way of gRPC's destructors: they remove the socket's name, which may be another daemon's by now.
  _exit(ExitCode(status));
}
