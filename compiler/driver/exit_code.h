// The exit codes of all of Hone's programs, and how a status carries one.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hone {

enum class ExitCode : int {
  kDone = 0,
  kOurBug = 1,
  kUsage = 2,
  kImport = 3,        // the model cannot be imported
  kNoSchedule = 4,    // no valid schedule was found
  kNoService = 5,     // no daemon or worker
  kMismatch = 6,      // results differ, or a bundle is not that of its lock file
  kProgramFault = 7,  // the program that was run or checked is at fault: it crashed, left its buffers, read an
                      // unwritten element, or is not proven to stay inside
  kNotAllowed = 8,
  kCorrupt = 9,        // a bundle, database or record file is unreadable or corrupt
  kWrongMachine = 10,  // this machine cannot run the bundle
  kInterrupted = 130,  // SIGINT
  kTerminated = 143,   // SIGTERM
};

// The same status with the exit code it should end the program with; the innermost code stays.
absl::Status WithExitCode(ExitCode code, absl::Status status);
// The status with `context` in front of its message; the exit code it would end the program with stays.
absl::Status AnnotateKeepingExitCode(const absl::Status& status, absl::string_view context);
// The code attached, or the one the status' own code stands for: InvalidArgument and NotFound are the user's (2),
// Unavailable, DeadlineExceeded and ResourceExhausted the service's (5), PermissionDenied and Unauthenticated 8,
// DataLoss 9, the rest ours (1).
int ExitCodeOf(const absl::Status& status);

}  // namespace hone
