// `hone-worker`: measures candidates for a daemon on this machine.
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/support/option_checks.h"
#include "proto/rpc/address.h"
#include "proto/rpc/token.h"
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
  std::string token_file;
  app.add_option("--server", options.server, "address of the daemon: unix:PATH or HOST:PORT")->required();
  app.add_option("--token-file", token_file, "file with the daemon's token")->envname("HONE_TOKEN_FILE");
  app.add_option("--threads", options.threads, "threads to measure with (default: all cores)")
      ->check(hone::FromTo(1, 1024, "threads"));
  app.add_flag("--exit-with-daemon", options.exit_with_daemon,
               "end when the daemon is gone, instead of waiting for it");
  app.add_option("--builder", options.builder,
                 "program that builds candidates (default: hone-builder beside this one)");
  app.footer(
      "Examples:\n  hone-worker --server unix:/run/hone/honed.sock\n"
      "  hone-worker --server build-host:7171 --token-file token --threads 2\n\n"
      "Exit codes: 0 done, 1 a bug of Hone's, 2 usage, 5 the daemon is gone, 8 not allowed.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return app.exit(error) == 0 ? 0 : 2; }
  spdlog::set_default_logger(spdlog::stderr_color_mt("hone-worker"));
  if (!token_file.empty()) {
    absl::StatusOr<std::string> token = hone::ReadToken(token_file);
    if (!token.ok()) {
      std::fprintf(stderr, "hone-worker: --token-file: %s\n", std::string(token.status().message()).c_str());
      return 2;
    }
    options.token = *std::move(token);
  }
  if (const absl::Status address = hone::CheckAddress(options.server); !address.ok()) {
    std::fprintf(stderr, "hone-worker: --server: %s\n", std::string(address.message()).c_str());
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, OnSignal);
  ::signal(SIGTERM, OnSignal);
  const absl::Status status = hone::RunAgent(options, stop);
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-worker: %s\n", std::string(status.message()).c_str());
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return 5;
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ? 8 : 1;
}
