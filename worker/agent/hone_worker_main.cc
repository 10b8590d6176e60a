// `hone-worker`: measures candidates for a daemon on this machine.
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/sandbox/layers.h"
#include "compiler/support/option_checks.h"
#include "proto/rpc/address.h"
#include "proto/rpc/connection_flags.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"
#include "worker/agent/agent.h"

namespace {

std::atomic<bool> stop{false};

extern "C" void OnSignal(int) { stop = true; }

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("hone-worker: builds, verifies and measures candidates for a daemon.");
  hone::AgentOptions options;
  hone::ConnectionFlags connection;
  std::string missing_layers;
  app.add_option("--server", options.server, "address of the daemon: unix:PATH or HOST:PORT")->required();
  connection.AddTo(app);
  app.add_option("--threads", options.threads, "threads to measure with (default: all cores)")
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
  app.footer(
      "Examples:\n  hone-worker --server unix:/run/hone/honed.sock\n"
      "  hone-worker --server build-host:7171 --tls-ca ca.crt --tls-cert worker-edge1.crt --tls-key "
      "worker-edge1.key\n\n"
      "Exit codes: 0 done, 1 a bug of Hone's, 2 usage, 5 the daemon is gone, 8 not allowed, or a layer of "
      "the sandbox is missing.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? 0 : 2; }
  spdlog::set_default_logger(spdlog::stderr_color_mt("hone-worker"));
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
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return 5;
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ? 8 : 1;
}
