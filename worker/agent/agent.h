// A worker: a network thread that keeps up with the daemon, and this thread, which does one batch after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "compiler/target/target.h"
#include "proto/rpc/channel.h"

namespace hone {

struct AgentOptions {
  std::string server;
  Credentials credentials;
  int threads = 0;  // 0: all cores
  bool exit_with_daemon = false;
  uint32_t allowed_missing_layers = 0;  // of the sandbox (compiler/sandbox/layers.h)
  std::string builder;                  // program that builds; "": hone-builder beside this program
  // Program that runs candidates by the runner's protocol, and the target it runs them on, such as an emulator of that;
  // "": hone-runner beside this program, on this machine.
  std::string runner, target;
};

// Until the daemon ends it or `stop` is set. Statuses as of Session::Run; PermissionDenied when a required layer of the
// sandbox is missing.
absl::Status RunAgent(const AgentOptions& options, const std::atomic<bool>& stop);

}  // namespace hone
