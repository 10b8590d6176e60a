// The schema in a PostgreSQL database: the same migrations, in the schema "hone", so that other tables may be beside
// it.
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "database/postgres/postgres_connection.h"
#include "database/sql/migrations.h"

namespace hone {

// SQLite's words for types and tables as PostgreSQL's. Texts become BYTEA: any bytes, compared as bytes, as in SQLite
// (TEXT here refuses U+0000, which a text over the wire may hold).
std::string InPostgresWords(const std::string& sql);

// Brings the database to the newest version, in one transaction; of several daemons that start, one does it. What it
// finds at an older version may have a leader of an older build, which knows nothing of what is new: its term ends, and
// nothing of its is written afterwards. DataLoss when CheckHistory refuses it, PermissionDenied when the user may make
// no schema.
absl::Status Migrate(PostgresConnection& connection, std::span<const Migration> migrations);

}  // namespace hone
