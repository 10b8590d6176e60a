// How each typed write becomes SQL. Called inside the store's transaction.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "database/rows.h"
#include "database/sqlite_connection.h"

namespace hone {

absl::Status ApplyWrite(SqliteConnection& connection, const Write& write);

// What the `checksum` columns hold.
std::string ChecksumOf(const RecordRow& row);
std::string ChecksumOf(const MeasurementRow& row, const std::string& outcome);
std::string ChecksumOfChoice(uint64_t record, const std::string& model_hash, const std::string& faster_default);
std::string ChecksumOfObject(uint64_t record, const std::string& object, const std::string& kernel_set);

}  // namespace hone
