// The schema, as numbered steps that only go forward, in SQLite's words (PostgreSQL's follow from them,
// postgres_schema.h). Each runs in one transaction together with the note that it ran, so an interrupted one never
// happened; what a step was is remembered by its digest.
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "database/sql/sql.h"

namespace hone {

struct Migration {
  int version;  // 1, 2, 3, ...
  const char* name;
  const char* sql;
};
std::span<const Migration> Migrations();  // all, in order

std::string DigestOf(const Migration& migration);
std::string NoteOf(const Migration& migration);  // the statement that notes in the database that it ran

// DataLoss when a database of that version is newer than the newest migration, or a migration it went through was
// another than ours of that number (by its digest).
absl::Status CheckHistory(SqlConnection& connection, std::span<const Migration> migrations, int version);

}  // namespace hone
