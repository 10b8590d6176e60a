// The network side of a worker: Hello, then Sync after Sync until told to end.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/fleet.grpc.pb.h"
#include "proto/rpc/channel.h"
#include "worker/agent/work_queue.h"

namespace hone {

struct SessionOptions {
  std::string address;  // "unix:PATH" or "HOST:PORT"
  Credentials credentials;
  std::string name;  // stable over restarts
  v1::DeviceProfile profile;
  int threads = 1;
  std::vector<std::string> missing_layers;  // of the sandbox
  int capacity = 32;                        // leases held at most: one batch at work, one waiting
  bool exit_with_daemon = false;            // end when the daemon is gone, instead of waiting for it
};

class Session {
 public:
  Session(SessionOptions options, WorkQueue& queue);

  // Until the daemon says so (OK), `stop` is set (OK; leases under work were finished and reported first, as far as the
  // daemon answers), or it refuses us (Unauthenticated, PermissionDenied, FailedPrecondition). A daemon that is not
  // there is waited for, unless exit_with_daemon: then Unavailable after ten seconds without it.
  absl::Status Run(const std::atomic<bool>& stop);

  // The workload of a lease, from the daemon. Called by the measuring thread.
  absl::StatusOr<v1::Workload> GetWorkload(const std::string& hash);

 private:
  struct Call;
  absl::Status Hello();
  std::shared_ptr<Call> StartSync(bool draining);

  SessionOptions options_;
  WorkQueue& queue_;
  std::string session_;   // 16 random bytes
  std::string name_key_;  // as many: what the daemon knows us by when we say Hello again
  std::unique_ptr<v1::Fleet::Stub> stub_;
  uint64_t seq_ = 0;
  absl::Duration hold_ = absl::Seconds(10);
};

}  // namespace hone
