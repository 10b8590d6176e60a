#include "database/sqlite/sqlite_schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<int> SchemaVersion(SqliteConnection& connection, std::span<const Migration> migrations) {
  HONE_ASSIGN_OR_RETURN(const int64_t application, connection.Number("PRAGMA application_id"));
  HONE_ASSIGN_OR_RETURN(const int64_t version, connection.Number("PRAGMA user_version"));
  HONE_ASSIGN_OR_RETURN(const int64_t tables, connection.Number("SELECT count(*) FROM sqlite_schema"));
  if (application == 0 && version == 0 && tables == 0) return 0;
  if (application != kApplicationId) {
    return absl::DataLossError(absl::StrCat(
        connection.name(), ": an SQLite database of another program, not Hone's; give another file with --db"));
  }
  HONE_RETURN_IF_ERROR(CheckHistory(connection, migrations, static_cast<int>(version)));
  return static_cast<int>(version);
}

absl::Status Migrate(SqliteConnection& connection, std::span<const Migration> migrations) {
  HONE_ASSIGN_OR_RETURN(const int version, SchemaVersion(connection, migrations));
  const int newest = migrations.empty() ? 0 : migrations.back().version;
  if (version == newest) return absl::OkStatus();
  if (version > 0) { HONE_RETURN_IF_ERROR(connection.BackUpTo(absl::StrCat(connection.name(), ".before-v", newest))); }
  CrashPoint("migrate.copied");
  for (const Migration& migration : migrations) {
    if (migration.version <= version) continue;
    absl::Status status = connection.Execute(
        absl::StrCat("BEGIN IMMEDIATE;\n", migration.sql, "\n;\n", NoteOf(migration),
                     ";\nPRAGMA application_id = ", kApplicationId, ";\nPRAGMA user_version = ", migration.version));
    CrashPoint("migrate.before_commit");
    if (status.ok()) status = connection.Commit();
    CrashPoint("migrate.committed");
    if (!status.ok()) {
      connection.Rollback();
      return Annotate(status, absl::StrCat("migration ", migration.version, " (", migration.name, ")"));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone
