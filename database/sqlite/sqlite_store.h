// The embedded store: one SQLite file in WAL mode, every commit synced. The write handle owns FILE.lock, so that a
// second daemon on the same file is refused; readers need no lock and work while a daemon runs.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "database/store/store.h"

namespace hone {

enum class StoreMode {
  kWrite,  // creates the file when there is none; migrates an older schema
  kRead,   // NotFound when there is none; never changes anything
};

// FailedPrecondition when another process has the file open for writing: its message names the daemon's address when
// that is known. InvalidArgument for a file on a network file system, where SQLite's locks do not hold. DataLoss for a
// file that is not ours, is corrupt, or has a newer or another schema; the file stays as it was.
absl::StatusOr<std::unique_ptr<TuningStore>> OpenSqliteStore(const std::string& path, StoreMode mode);

// The address that the daemon which holds `path` published; empty when no daemon holds it.
std::string AddressOfDaemon(const std::string& path);
// For the daemon that holds `path`: publishes its address in FILE.lock, for clients that want to join it.
absl::Status PublishAddress(const std::string& path, const std::string& address);

// The name of a file system that is shared between machines, by the f_type that statfs gives; "" for all others.
std::string NetworkFileSystem(uint32_t type);

}  // namespace hone
