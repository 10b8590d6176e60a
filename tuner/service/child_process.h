// A child process with pipes on its standard input and output, and messages over them: four bytes of length (little
// endian), then the message. It is killed when this goes away, and by the kernel when our process dies.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

class ChildProcess {
 public:
  // The thread that calls this must outlive the child: the kernel ties "dies with its parent" to it.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::string& program,
                                                             const std::vector<std::string>& arguments);
  ~ChildProcess();                              // kills and collects it

  absl::Status Send(const std::string& message, absl::Time deadline);
  // Unavailable when it closed its output or died (the message says how), DeadlineExceeded, DataLoss for nonsense.
  absl::StatusOr<std::string> Receive(absl::Time deadline);
  void Kill();                                  // from any thread: `Receive` then ends
  pid_t pid() const { return pid_; }

 private:
  ChildProcess(pid_t pid, int to, int from) : pid_(pid), to_(to), from_(from) {}
  absl::Status Fill(char* data, size_t size, absl::Time deadline);
  std::string HowItEnded();

  pid_t pid_;
  int to_, from_;
  bool collected_ = false;
};

}  // namespace hone
