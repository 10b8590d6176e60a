// One hone-search process, spoken to in framed messages (compiler/support/frame.h) over its standard input and output.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/support/child_process.h"

namespace hone {

class SearchProcess {
 public:
  // The thread that calls this must outlive the child: the kernel ties "dies with its parent" to it.
  static absl::StatusOr<std::unique_ptr<SearchProcess>> Start(const std::string& program,
                                                              const std::vector<std::string>& arguments);

  // DeadlineExceeded when the child does not take it in time.
  absl::Status Send(const std::string& message, absl::Time deadline);
  // Unavailable when it closed its output or died (the message says how), DeadlineExceeded, DataLoss for nonsense.
  absl::StatusOr<std::string> Receive(absl::Time deadline);
  void Kill();  // from any thread: `Receive` then ends
  pid_t pid() const { return child_.pid(); }

 private:
  explicit SearchProcess(ChildProcess child) : child_(std::move(child)) {}
  absl::Status HowItEnded(absl::Status status);

  ChildProcess child_;
};

}  // namespace hone
