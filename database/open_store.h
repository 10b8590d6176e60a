// The store that a `--db` names: a file, or the URL of a PostgreSQL database.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "database/sqlite/sqlite_store.h"
#include "database/store/store.h"

namespace hone {

bool IsFile(const std::string& db);

// As OpenSqliteStore and OpenPostgresStore do. The mode is of files: a PostgreSQL database is read by whoever does not
// lead.
absl::StatusOr<std::unique_ptr<TuningStore>> OpenStore(const std::string& db, StoreMode mode);

}  // namespace hone
