// The daemon and the worker of a command that names no server: children on the database's own socket, joined where they
// run already, started again when they are killed in the middle of a job. They serve their own user alone, so that
// their sandboxes may lack what not every system gives (LayersSomeSystemsLack).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/support/child_process.h"
#include "tuner/service/client.h"

namespace hone {

class PrivateService {
 public:
  // Joins the daemon of the database, or starts one; the same for a worker with that many threads, of a device where
  // one is named ("opencl:generic"). Exit codes 5 and 9.
  static absl::StatusOr<std::unique_ptr<PrivateService>> Start(const std::string& database, int threads,
                                                               const std::string& device = "");

  DaemonClient& client() {
    return *clients_.back();
  }  // another one after a daemon was started again; the old one stays

  // To be called when the daemon does not answer. Starts it again when it has ended; says what was done ("" when it
  // lives, and is only slow). Unavailable with the reason when it ends again and again. `give_up` ends the wait.
  absl::StatusOr<std::string> ReviveDaemon(const std::function<bool()>& give_up);
  // The same for a worker, when the daemon has had none that lives for that long.
  absl::StatusOr<std::string> ReviveWorker(absl::Duration without);

 private:
  PrivateService(std::string database, int threads, std::string device)
      : database_(std::move(database)), threads_(threads), device_(std::move(device)) {}
  absl::Status ConnectOrStart(const std::function<bool()>& give_up);
  absl::Status StartWorker();
  // False when there were too many of late.
  static bool Allow(std::vector<absl::Time>& restarts);

  std::string database_;
  int threads_;
  std::string device_;                                  // that the worker measures; "": the host
  std::vector<std::unique_ptr<DaemonClient>> clients_;  // a watch by an older one may still be in its call
  std::optional<ChildProcess> worker_;                  // that we started
  std::vector<absl::Time> daemon_restarts_, worker_restarts_;
};

}  // namespace hone
