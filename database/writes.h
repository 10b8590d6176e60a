// How each typed write becomes SQL. Called inside the store's transaction.
#pragma once

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "database/rows.h"
#include "database/sql.h"

namespace hone {

// `known`: the identifiers of keys met before, which never change. To be cleared when a transaction fails: the keys it
// made are gone.
absl::Status ApplyWrite(SqlConnection& connection, std::map<TuningKey, int64_t>& known, const Write& write);

}  // namespace hone
