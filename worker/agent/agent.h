// A worker: a network thread that keeps up with the daemon, and beside it one thread that measures one batch after the
// other, or several that build for others.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compiler/target/gpu_target.h"
#include "compiler/target/target.h"
#include "proto/rpc/channel.h"
#include "worker/agent/quiet.h"
#include "worker/agent/session/session.h"

namespace hone {

struct AgentOptions {
  std::string server;
  Credentials credentials;
  AgentRole role = AgentRole::kBoth;
  int threads = 0;  // that it measures or builds with; 0: all cores
  bool exit_with_daemon = false;
  uint32_t allowed_missing_layers = 0;  // of its sandboxes (compiler/sandbox/layers.h)
  std::string builder;                  // program that builds; "": hone-builder beside this program
  // Program that runs candidates by the runner's protocol, and the target it runs them on, such as an emulator of that;
  // "": hone-runner beside this program, on this machine. A target that names a kind of devices ("opencl:generic") is
  // the device of that kind on this machine, and `runner` what runs its candidates.
  std::string runner, target;
  bool MeasuresDevice() const { return NamesGpu(target); }
  std::string spool;  // folder of results that the daemon does not have yet; "": in memory
  int64_t spool_bytes = int64_t{256} << 20;
  absl::Duration drain_limit = absl::Minutes(1);  // once stopped: what is under work then goes back
  QuietRules quiet;
};

// Until the daemon ends it or `stop` is set: then what is under work is finished within the drain limit. Statuses as of
// Session::Run; PermissionDenied when a layer of the sandbox is missing that may not be; those of Spool::Open.
absl::Status RunAgent(const AgentOptions& options, const std::atomic<bool>& stop);

}  // namespace hone
