// The store of a fleet: one PostgreSQL database for several daemons. One of them leads and writes; all answer look-ups.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "database/store/store.h"

namespace hone {

// `url`: what IsPostgresUrl says yes to. The database is there; its tables are made, and brought to the newest schema,
// at the first opening. InvalidArgument, Unavailable, PermissionDenied and DataLoss as PostgresConnection::Open and
// Migrate.
absl::StatusOr<std::unique_ptr<TuningStore>> OpenPostgresStore(const std::string& url);

}  // namespace hone
