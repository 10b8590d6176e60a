// How each typed write becomes SQL. Called inside the store's transaction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "database/rows.h"
#include "database/sql.h"

namespace hone {

// The numbers of rows met before, which never change. To be forgotten when a transaction fails, for the rows it made
// are gone, and when a term begins, for what others did before it is not known.
struct KnownRows {
  std::map<TuningKey, int64_t> keys;
  // By their text: a trial's is written when it is lent, when it ends, and with its record.
  std::unordered_map<std::string, int64_t> traces;
};

absl::Status ApplyWrite(SqlConnection& connection, KnownRows& known, const Write& write);

}  // namespace hone
