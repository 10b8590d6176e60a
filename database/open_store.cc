#include "database/open_store.h"

#include "database/postgres/postgres_connection.h"
#include "database/postgres/postgres_store.h"

namespace hone {

bool IsFile(const std::string& db) { return !IsPostgresUrl(db); }

absl::StatusOr<std::unique_ptr<TuningStore>> OpenStore(const std::string& db, StoreMode mode) {
  return IsFile(db) ? OpenSqliteStore(db, mode) : OpenPostgresStore(db);
}

}  // namespace hone
