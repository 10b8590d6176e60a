// `hone-worker`: measures candidates for a daemon on this machine.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/log/log.h"
#include "compiler/sandbox/layers.h"
#include "compiler/support/option_checks.h"
#include "proto/rpc/address.h"
#include "proto/rpc/connection_flags.h"
#include "worker/agent/agent.h"

namespace {

const std::map<std::string, hone::LogFormat> kLogFormats = {{"text", hone::LogFormat::kText},
                                                            {"json", hone::LogFormat::kJson}};
const std::map<std::string, hone::AgentRole> kRoles = {
    {"both", hone::AgentRole::kBoth}, {"build", hone::AgentRole::kBuild}, {"measure", hone::AgentRole::kMeasure}};
std::atomic<bool> stop{false};

// A second one does not wait for anybody.
extern "C" void OnSignal(int number) {
  if (stop.exchange(true)) ::_exit(128 + number);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("hone-worker: builds, verifies and measures candidates for a daemon.");
  hone::AgentOptions options;
  hone::ConnectionFlags connection;
  std::string missing_layers, hours;
  double drain_seconds = absl::ToDoubleSeconds(options.drain_limit);
  double spool_mib = static_cast<double>(options.spool_bytes >> 20);
  double foreign_percent = 100;
  hone::LogFormat log_format = hone::LogFormat::kText;
  bool verbose = false;
  app.add_option("--server", options.server, "address of the daemon: unix:PATH or HOST:PORT")->required();
  connection.AddTo(app);
  app.add_option("--role", options.role,
                 "build: for workers that only measure, whatever their device; measure: what such workers build; both: "
                 "measure what it builds itself (default)")
      ->transform(CLI::CheckedTransformer(kRoles));
  app.add_option("--threads", options.threads, "threads to measure with, or builds at once (default: all cores)")
      ->check(hone::FromTo(1, 1024, "threads"));
  app.add_flag("--exit-with-daemon", options.exit_with_daemon,
               "end when the daemon is gone, instead of waiting for it");
  app.add_option("--builder", options.builder,
                 "program that builds candidates (default: hone-builder beside this one)");
  CLI::Option* runner =
      app.add_option("--runner", options.runner,
                     "program that runs candidates of another device, such as hone-runner in an emulator")
          ->check(CLI::ExistingFile);
  app.add_option("--target", options.target, "what --runner runs them on, such as cpu:cortex-a76,cores=4")
      ->needs(runner);
  app.add_option("--allow-missing-layer", missing_layers,
                 "layers of the sandbox, by name, without which candidates are run and built all the same")
      ->envname("HONE_ALLOW_MISSING_LAYER");
  app.add_option(
         "--spool", options.spool,
         "folder that keeps results until the daemon has them, so that they outlive this worker; the worker has "
         "the same name whenever it is started on it")
      ->envname("HONE_SPOOL");
  app.add_option("--spool-limit", spool_mib, "MiB that it may take; work stops before it is full")
      ->check(hone::FromTo(1.0, 1e6, "MiB"))
      ->capture_default_str();
  app.add_option("--drain-limit", drain_seconds,
                 "seconds that a candidate under work has to end after SIGTERM or hone workers drain; the others go "
                 "back at once")
      ->check(hone::FromTo(0.0, 86400.0, "seconds"))
      ->capture_default_str();
  app.add_option("--hours", hours, "hours of the day in which this machine measures: 22:00-06:00 (default: all day)");
  app.add_option("--quiet-below", foreign_percent,
                 "percent of the processor that other programs may take while this worker measures; it waits while "
                 "they take more")
      ->check(hone::FromTo(0.0, 100.0, "percent"))
      ->capture_default_str();
  app.add_option("--log-format", log_format, "text, or json: an object a line")
      ->transform(CLI::CheckedTransformer(kLogFormats));
  app.add_flag("--verbose", verbose, "say more on standard error");
  app.footer(
      "Examples:\n  hone-worker --server unix:/run/hone/honed.sock\n"
      "  hone-worker --server build-host:7171 --tls-ca ca.crt --tls-cert worker-edge1.crt --tls-key "
      "worker-edge1.key\n"
      "  hone-worker --server build-host:7171 --role build --threads 16\n"
      "  hone-worker --server build-host:7171 --spool /var/lib/hone/spool --hours 22:00-06:00 --quiet-below 20\n\n"
      "SIGTERM and SIGINT: what is under work is finished and reported, what only waits goes back; a second one ends "
      "it "
      "at once.\n"
      "Exit codes: 0 done, 1 a bug of Hone's, 2 usage, 5 the daemon is gone or another worker has the spool, 8 not "
      "allowed, or a layer of "
      "the sandbox is missing.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? 0 : 2; }
  hone::StartLog("hone-worker", log_format, verbose);
  const absl::StatusOr<uint32_t> allowed = hone::ParseLayers(missing_layers);
  if (!allowed.ok()) {
    std::fprintf(stderr, "hone-worker: --allow-missing-layer: %s\n", std::string(allowed.status().message()).c_str());
    return 2;
  }
  options.allowed_missing_layers = *allowed;
  if (!options.runner.empty() && options.target.empty()) {
    std::fprintf(stderr, "hone-worker: --runner %s: say what it runs on: --target cpu:...\n", options.runner.c_str());
    return 2;
  }
  if (options.role == hone::AgentRole::kBuild) {
    for (const char* flag : {"--runner", "--spool", "--hours", "--quiet-below"}) {
      if (app.get_option(flag)->count() == 0) continue;
      std::fprintf(stderr, "hone-worker: %s is for workers that measure; leave it away with --role build\n", flag);
      return 2;
    }
  } else if (options.role == hone::AgentRole::kMeasure && !options.builder.empty()) {
    std::fprintf(stderr, "hone-worker: --builder is for workers that build; leave it away with --role measure\n");
    return 2;
  }
  options.drain_limit = absl::Seconds(drain_seconds);
  options.spool_bytes = static_cast<int64_t>(spool_mib * (1 << 20));
  if (foreign_percent < 100) options.quiet.most_foreign = foreign_percent / 100;
  if (!hours.empty()) {
    absl::StatusOr<hone::Hours> parsed = hone::ParseHours(hours);
    if (!parsed.ok()) {
      std::fprintf(stderr, "hone-worker: --hours: %s\n", std::string(parsed.status().message()).c_str());
      return 2;
    }
    options.quiet.hours = *parsed;
  }
  if (const absl::Status address = hone::CheckAddress(options.server); !address.ok()) {
    std::fprintf(stderr, "hone-worker: --server: %s\n", std::string(address.message()).c_str());
    return 2;
  }
  absl::StatusOr<hone::Credentials> credentials = connection.Read(options.server);
  if (!credentials.ok()) {
    std::fprintf(stderr, "hone-worker: %s\n", std::string(credentials.status().message()).c_str());
    return absl::IsPermissionDenied(credentials.status()) ? 8 : 2;
  }
  options.credentials = *std::move(credentials);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, OnSignal);
  ::signal(SIGTERM, OnSignal);
  const absl::Status status = hone::RunAgent(options, stop);
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-worker: %s\n", std::string(status.message()).c_str());
  if (absl::IsInvalidArgument(status)) return 2;
  if (absl::IsFailedPrecondition(status) || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return 5;
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ? 8 : 1;
}
