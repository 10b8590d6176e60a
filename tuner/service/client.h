// How a client reaches a daemon: a channel connected within a deadline, what every call carries, and gRPC's statuses as
// ours. Unavailable and DeadlineExceeded mean "no daemon" (exit code 5), Unauthenticated and
// PermissionDenied "not allowed" (8).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/fleet.grpc.pb.h"
#include "hone/v1/tune.grpc.pb.h"
#include "proto/rpc/channel.h"
#include "proto/rpc/status.h"

namespace hone {

class DaemonClient {
 public:
  // `address` is "unix:PATH" or "HOST:PORT". Waits for the connection, but makes no call.
  static absl::StatusOr<std::unique_ptr<DaemonClient>> Connect(const std::string& address,
                                                               const Credentials& credentials, absl::Duration timeout);

  const std::shared_ptr<grpc::Channel>& channel() { return channel_; }
  v1::Tune::Stub& tune() { return *tune_; }
  v1::Fleet::Stub& fleet() { return *fleet_; }
  const std::string& address() const { return address_; }
  // What every call carries: the token, and a deadline.
  std::unique_ptr<grpc::ClientContext> Context(absl::Duration timeout = absl::Seconds(60)) const {
    return MakeContext(credentials_, timeout);
  }

  // Submits a job, in several messages where it is too large for one. The call has `timeout`, and a second more for
  // each MiB of the request; `go_on` is asked several times a second, and the call is given up (Cancelled) when it
  // returns false. May be repeated after any error: one request_id makes one job. InvalidArgument also for a kernel
  // that no message can hold, ResourceExhausted for a job that the daemon has no room for.
  absl::StatusOr<v1::SubmitReply> Submit(
      const v1::SubmitRequest& request, absl::Duration timeout,
      const std::function<bool()>& go_on = [] { return true; });

  // A job with all its tasks, of which a message holds some twenty thousand: the rest comes page by page. All calls
  // together have `timeout`.
  absl::StatusOr<v1::JobSnapshot> GetJob(uint64_t job, absl::Duration timeout = absl::Seconds(60));
  // The tasks that an answer about a job had no room for.
  absl::Status GetTasksThatFollow(v1::JobSnapshot& job, absl::Duration timeout = absl::Seconds(60));

  struct Sight {
    const v1::JobSnapshot* snapshot = nullptr;  // the latest; nullptr until one came
    bool fresh = false;                         // not shown before
    absl::Duration silence;                     // since the daemon was heard: it says something every `interval`
    std::string away;  // why it is not heard; empty while the connection holds (a daemon that hangs keeps its own)
  };
  // Calls `seen` at least five times a second, until the job has ended or `seen` returns false; a daemon that went away
  // is asked again and again. Returns the last snapshot, an empty one when there was none; with all tasks where the
  // job has ended, while those shown have as many as a message holds. Errors are refusals alone
  // (NotFound, PermissionDenied, ...).
  absl::StatusOr<v1::JobSnapshot> Watch(uint64_t job, absl::Duration interval,
                                        const std::function<bool(const Sight&)>& seen);

 private:
  DaemonClient() = default;
  std::string address_;
  Credentials credentials_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Tune::Stub> tune_;
  std::unique_ptr<v1::Fleet::Stub> fleet_;
};

}  // namespace hone
