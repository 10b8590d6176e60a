// The network side of a worker: Hello, then Sync after Sync until told to end.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/fleet.grpc.pb.h"
#include "proto/rpc/channel.h"
#include "worker/agent/session_work.h"

namespace hone {

// What a worker does for the daemon: see --role.
enum class AgentRole { kBoth, kBuild, kMeasure };

struct SessionOptions {
  std::string address;  // "unix:PATH" or "HOST:PORT"
  Credentials credentials;
  std::string name;      // stable over restarts
  std::string name_key;  // what the daemon knows us by when we say Hello again; "": random bytes
  v1::DeviceProfile profile;
  AgentRole role = AgentRole::kBoth;
  int threads = 1;
  std::vector<std::string> missing_layers;        // of the sandbox
  int capacity = 32;                              // leases held at most: one batch at work, one waiting
  bool exit_with_daemon = false;                  // end when the daemon is gone, instead of waiting for it
  absl::Duration drain_limit = absl::Minutes(1);  // once told to stop: what is under work then goes back
};

class Session {
 public:
  Session(SessionOptions options, SessionWork& queue);

  // Until the daemon says so (OK), or `stop` is set or the daemon asks it to drain (OK; leases that nobody worked on
  // went back, those under work were finished and reported within the drain limit, as far as the daemon answers), or it
  // refuses us (Unauthenticated, PermissionDenied, FailedPrecondition). A daemon that is not
  // there is waited for, unless exit_with_daemon: then Unavailable after ten seconds without it.
  absl::Status Run(const std::atomic<bool>& stop);

  // ---- from any thread ----
  // The workload of a lease, from the daemon.
  absl::StatusOr<v1::Workload> GetWorkload(const std::string& hash);
  const std::string& id() const { return session_; }
  v1::Fleet::Stub& stub() { return *stub_; }
  std::unique_ptr<grpc::ClientContext> Context(absl::Duration timeout) const;
  bool ends() const { return ends_; }  // Run has returned, or is about to

 private:
  struct Call;
  absl::Status Hello();
  std::shared_ptr<Call> StartSync(bool draining);
  // Parts of Run, each with what Run is to return; nullopt: it goes on. Greet says Hello once, and pauses after one
  // that failed. SyncOnce starts a Sync and waits until it is answered, or there is something new to say.
  std::optional<absl::Status> Greet(const std::atomic<bool>& stop_asked);
  std::optional<absl::Status> SyncOnce(const std::atomic<bool>& stop_asked);
  // Do what the answer says and drop the call. Also an older call's answer may lend something.
  void FollowOldest();
  std::optional<absl::Status> FollowNewest(bool draining);
  // While it drains: gives back what is to go back. True when it is time to leave without another word.
  bool DrainIsOver(bool daemon_answers);

  SessionOptions options_;
  SessionWork& queue_;
  std::string session_;   // 16 random bytes
  std::string name_key_;  // as many: what the daemon knows us by when we say Hello again
  std::unique_ptr<v1::Fleet::Stub> stub_;
  std::atomic<bool> ends_{false};
  uint64_t seq_ = 0;
  bool asked_to_drain_ = false;  // by the daemon
  bool told_draining_ = false;   // and answered
  absl::Time drain_by_ = absl::InfiniteFuture();
  absl::Duration hold_ = absl::Seconds(10);
  std::deque<std::shared_ptr<Call>> calls_;  // at most two: a newer one makes the daemon answer the older
  bool greeted_ = false;                     // the daemon knows this session
  std::string unreachable_;                  // why the daemon cannot be reached, as last told
  absl::Duration pause_;                     // before the next Hello
  absl::Time last_answer_ = absl::InfinitePast();
};

}  // namespace hone
