// The network side of a worker: Hello, then Sync after Sync until told to end. Makes the calls that its rules ask for
// (session_rules.h), and waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/fleet.grpc.pb.h"
#include "proto/rpc/channel.h"
#include "worker/agent/session/session_rules.h"
#include "worker/agent/session/session_work.h"

namespace hone {

class Session {
 public:
  // `address`: "unix:PATH" or "HOST:PORT". Without a name_key random bytes are one.
  Session(std::string address, Credentials credentials, SessionOptions options, SessionWork& work);

  // Until the daemon says so (OK), or `stop` is set or the daemon asks it to drain (OK; leases that nobody worked on
  // went back, those under work were finished and reported within the drain limit, as far as the daemon answers), or it
  // refuses us (Unauthenticated, PermissionDenied, FailedPrecondition). A daemon that is not
  // there is waited for, unless exit_with_daemon: then Unavailable after ten seconds without it.
  absl::Status Run(const std::atomic<bool>& stop);

  // ---- from any thread ----
  // The workload of a lease, from the daemon.
  absl::StatusOr<v1::Workload> GetWorkload(const std::string& hash);
  const std::string& id() const { return rules_.session(); }
  v1::Fleet::Stub& stub() { return *stub_; }
  std::unique_ptr<grpc::ClientContext> Context(absl::Duration timeout) const;
  bool ends() const { return ends_; }  // Run has returned, or is about to

 private:
  struct Call;
  absl::StatusOr<v1::HelloReply> Hello(const v1::HelloRequest& request);
  void StartSync(const SaySync& sync);
  void HandOverAnswers();
  void Cancel();  // the calls that are out

  const std::string address_;
  const Credentials credentials_;
  SessionWork& work_;
  SessionRules rules_;
  std::unique_ptr<v1::Fleet::Stub> stub_;
  std::atomic<bool> ends_{false};
  std::map<uint64_t, std::shared_ptr<Call>> calls_;  // that are out
  std::string unreachable_;                          // why the daemon cannot be reached, as last told
};

}  // namespace hone
