// The schema, as numbered steps that only go forward. Each runs in one transaction together with the new version number
// (PRAGMA user_version), so an interrupted one never happened; what a step was is remembered by its digest.
#pragma once

#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "database/sqlite_connection.h"

namespace hone {

inline constexpr int kApplicationId = 0x486F6E65;  // "Hone", in the file's header

struct Migration {
  int version;  // 1, 2, 3, ...
  const char* name;
  const char* sql;
};
std::span<const Migration> Migrations();  // all, in order

// DataLoss when the file is not ours (another application's, or tables without our mark), its schema is newer than the
// newest migration, or a migration it went through was another than ours of that number (by its digest); otherwise its
// version, 0 for a file without tables.
absl::StatusOr<int> SchemaVersion(SqliteConnection& connection, std::span<const Migration> migrations);

// Brings the file to the newest version. A file with data is first copied to FILE.before-vN,
// which its owner alone may read.
absl::Status Migrate(SqliteConnection& connection, std::span<const Migration> migrations);

}  // namespace hone
