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
#include "compiler/support/status_macros.h"
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

constexpr char kFooter[] =
    "Examples:\n  hone-worker --server unix:/run/hone/honed.sock\n"
    "  hone-worker --server build-host:7171 --tls-ca ca.crt --tls-cert worker-edge1.crt --tls-key "
    "worker-edge1.key\n"
    "  hone-worker --server unix:/run/hone/honed.sock --target opencl:generic\n"
    "  hone-worker --server build-host:7171 --role build --threads 16\n"
    "  hone-worker --server build-host:7171 --spool /var/lib/hone/spool --hours 22:00-06:00 --quiet-below 20\n\n"
    "SIGTERM and SIGINT: what is under work is finished and reported, what only waits goes back; a second one ends it "
    "at once.\n"
    "Exit codes: 0 done, 1 a bug of Hone's, 2 usage, 5 the daemon is gone or another worker has the spool, 8 not "
    "allowed, or a layer of the sandbox is missing.";

// The options of the command line, and what they come to.
class Flags {
 public:
  void AddTo(CLI::App& app) {
    app.add_option("--server", options_.server, "address of the daemon: unix:PATH or HOST:PORT")->required();
    connection_.AddTo(app);
    app.add_option(
           "--role", options_.role,
           "build: for workers that only measure, whatever their device; measure: what such workers build; both: "
           "measure what it builds itself (default)")
        ->transform(CLI::CheckedTransformer(kRoles));
    app.add_option("--threads", options_.threads, "threads to measure with, or builds at once (default: all cores)")
        ->check(hone::FromTo(1, 1024, "threads"));
    app.add_flag("--exit-with-daemon", options_.exit_with_daemon,
                 "end when the daemon is gone, instead of waiting for it");
    app.add_option("--builder", options_.builder,
                   "program that builds candidates (default: hone-builder beside this one)");
    app.add_option("--runner", options_.runner,
                   "program that runs candidates of another device, such as hone-runner in an emulator")
        ->check(CLI::ExistingFile);
    app.add_option(
        "--target", options_.target,
        "what --runner runs them on, such as cpu:cortex-a76,cores=4; or, without it, a device of this machine: "
        "opencl:generic");
    app.add_option(
           "--allow-missing-layer", missing_layers_,
           "layers of the sandbox that may be missing, by name, separated by commas, or all; any other that is missing "
           "ends the worker")
        ->envname("HONE_ALLOW_MISSING_LAYER");
    app.add_option(
           "--spool", options_.spool,
           "folder that keeps results until the daemon has them, so that they outlive this worker; the worker has "
           "the same name whenever it is started on it")
        ->envname("HONE_SPOOL");
    app.add_option("--spool-limit", spool_mib_, "MiB that it may take; work stops before it is full")
        ->check(hone::FromTo(1.0, 1e6, "MiB"))
        ->capture_default_str();
    app.add_option("--drain-limit", drain_seconds_,
                   "seconds that a candidate under work has to end after SIGTERM or hone workers drain; the others go "
                   "back at once")
        ->check(hone::FromTo(0.0, 86400.0, "seconds"))
        ->capture_default_str();
    app.add_option("--hours", hours_,
                   "hours of the day in which this machine measures: 22:00-06:00 (default: all day)");
    app.add_option("--quiet-below", foreign_percent_,
                   "percent of the processor that other programs may take while this worker measures; it waits while "
                   "they take more")
        ->check(hone::FromTo(0.0, 100.0, "percent"))
        ->capture_default_str();
    app.add_option("--log-format", log_format_, "text, or json: an object a line")
        ->transform(CLI::CheckedTransformer(kLogFormats));
    app.add_flag("--verbose", verbose_, "say more on standard error");
  }

  hone::LogFormat log_format() const { return log_format_; }
  bool verbose() const { return verbose_; }

  // InvalidArgument or PermissionDenied; the message names the option.
  absl::StatusOr<hone::AgentOptions> Read(const CLI::App& app) const {
    hone::AgentOptions options = options_;
    absl::StatusOr<uint32_t> allowed = hone::ParseLayers(missing_layers_);
    if (!allowed.ok()) return hone::Annotate(allowed.status(), "--allow-missing-layer");
    options.allowed_missing_layers = *allowed;
    HONE_RETURN_IF_ERROR(CheckRole(app));
    options.drain_limit = absl::Seconds(drain_seconds_);
    options.spool_bytes = static_cast<int64_t>(spool_mib_ * (1 << 20));
    if (foreign_percent_ < 100) options.quiet.most_foreign = foreign_percent_ / 100;
    if (!hours_.empty()) {
      absl::StatusOr<hone::Hours> parsed = hone::ParseHours(hours_);
      if (!parsed.ok()) return hone::Annotate(parsed.status(), "--hours");
      options.quiet.hours = *parsed;
    }
    HONE_RETURN_IF_ERROR(hone::Annotate(hone::CheckAddress(options.server), "--server"));
    HONE_ASSIGN_OR_RETURN(options.credentials, connection_.Read(options.server));
    return options;
  }

 private:
  // Options that the worker's role has no use for are a misunderstanding.
  absl::Status CheckRole(const CLI::App& app) const {
    if (!options_.runner.empty() && options_.target.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--runner ", options_.runner, ": say what it runs on: --target cpu:..."));
    }
    if (options_.runner.empty() && !options_.target.empty() && !options_.MeasuresDevice()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--target ", options_.target, ": a CPU that is not this one needs --runner PROGRAM"));
    }
    if (options_.role == hone::AgentRole::kMeasure && !options_.builder.empty()) {
      return absl::InvalidArgumentError("--builder is for workers that build; leave it away with --role measure");
    }
    if (options_.role != hone::AgentRole::kBuild) return absl::OkStatus();
    for (const char* flag : {"--runner", "--target", "--spool", "--hours", "--quiet-below"}) {
      if (app.get_option(flag)->count() == 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " is for workers that measure; leave it away with --role build"));
    }
    return absl::OkStatus();
  }

  hone::AgentOptions options_;
  hone::ConnectionFlags connection_;
  std::string missing_layers_, hours_;
  double drain_seconds_ = absl::ToDoubleSeconds(options_.drain_limit);
  double spool_mib_ = static_cast<double>(options_.spool_bytes >> 20);
  double foreign_percent_ = 100;
  hone::LogFormat log_format_ = hone::LogFormat::kText;
  bool verbose_ = false;
};

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "hone-worker: %s\n", std::string(status.message()).c_str());
  return code;
}

// Of a worker that ran.
int ExitCode(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return 2;
  if (absl::IsFailedPrecondition(status) || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return 5;
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ? 8 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("hone-worker: builds, verifies and measures candidates for a daemon.");
  Flags flags;
  flags.AddTo(app);
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? 0 : 2; }
  hone::StartLog("hone-worker", flags.log_format(), flags.verbose());
  const absl::StatusOr<hone::AgentOptions> options = flags.Read(app);
  if (!options.ok()) return Fail(options.status(), absl::IsPermissionDenied(options.status()) ? 8 : 2);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, OnSignal);
  ::signal(SIGTERM, OnSignal);
  const absl::Status status = hone::RunAgent(*options, stop);
  return status.ok() ? 0 : Fail(status, ExitCode(status));
}
