// The schema of a file: its version is PRAGMA user_version, that it is ours says PRAGMA application_id.
#pragma once

#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "database/sql/migrations.h"
#include "database/sqlite/sqlite_connection.h"

namespace hone {

inline constexpr int kApplicationId = 0x486F6E65;  // "Hone", in the file's header

// DataLoss when the file is not ours (another application's, or tables without our mark) or CheckHistory refuses it;
// otherwise its version, 0 for a file without tables.
absl::StatusOr<int> SchemaVersion(SqliteConnection& connection, std::span<const Migration> migrations);

// Brings the file to the newest version. A file with data is first copied to FILE.before-vN,
// which its owner alone may read.
absl::Status Migrate(SqliteConnection& connection, std::span<const Migration> migrations);

}  // namespace hone
