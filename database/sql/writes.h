// How each typed write becomes SQL. Called inside the store's transaction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "absl/status/status.h"
#include "database/sql/sql.h"
#include "database/store/rows.h"

namespace hone {

// What is known of rows met before, which only the writer's own writes change. To be forgotten when a transaction
// fails, for the rows it made are gone, and when a term begins, for what others did before it is not known.
struct KnownRows {
  std::map<TuningKey, int64_t> keys;  // their numbers
  // Traces that are there: by their texts the digests that find them. A trial's is met when it is lent and with its
  // record.
  std::unordered_map<std::string, std::string> traces;
  std::unordered_set<uint64_t> tasks;          // that are there
  std::unordered_set<uint64_t> lent;           // trials whose row says so
  std::unordered_map<int64_t, uint64_t> best;  // by key, where it was written: the id of its best record
};

absl::Status ApplyWrite(SqlConnection& connection, KnownRows& known, const Write& write);

}  // namespace hone
