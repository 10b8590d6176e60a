// The queries behind TuningStore's reads, each one function over a connection.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "database/rows.h"
#include "database/sqlite_connection.h"
#include "database/store.h"

namespace hone {

absl::StatusOr<StoredState> ReadState(SqliteConnection& connection);
absl::StatusOr<KeyHistory> ReadHistory(SqliteConnection& connection, const TuningKey& key);
absl::StatusOr<std::string> ReadCostModel(SqliteConnection& connection, uint64_t tenant,
                                          const std::string& device_class, const std::string& kind);
absl::StatusOr<v1::Workload> ReadWorkload(SqliteConnection& connection, const std::string& hash);
absl::StatusOr<JobRow> ReadJob(SqliteConnection& connection, uint64_t tenant, uint64_t id);
absl::StatusOr<std::optional<uint64_t>> ReadJobByRequest(SqliteConnection& connection, uint64_t tenant,
                                                         const std::string& request_id);
absl::StatusOr<std::vector<TaskRow>> ReadTasks(SqliteConnection& connection, uint64_t tenant, uint64_t job);
absl::StatusOr<std::string> ReadPlan(SqliteConnection& connection, uint64_t tenant, uint64_t job);
absl::StatusOr<std::vector<JobRow>> ReadJobs(SqliteConnection& connection, uint64_t tenant);
absl::StatusOr<std::optional<BestEntry>> ReadBest(SqliteConnection& connection, uint64_t tenant, const v1::BestKey& key,
                                                  int* corrupt);
absl::StatusOr<RecordPage> ReadRecords(SqliteConnection& connection, uint64_t tenant, const RecordFilter& filter);

}  // namespace hone
