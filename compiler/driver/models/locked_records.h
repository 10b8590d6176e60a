// Tells a database which of its records a lock file names.
#pragma once

#include "absl/status/status.h"
#include "compiler/driver/models/lock_file.h"
#include "compiler/driver/service_options.h"

namespace hone {

// From now on no quota takes them (honed --max-database-bytes): through the daemon that is named or has the file, else
// into the file. No effect on records that are not there.
absl::Status KeepLockedRecords(const ServiceOptions& service, const LockFile& lock);

}  // namespace hone
