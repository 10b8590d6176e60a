// The queries behind TuningStore's reads, each one function over a connection.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "database/sql/sql.h"
#include "database/store/rows.h"
#include "database/store/store.h"

namespace hone {

absl::StatusOr<StoredState> ReadState(SqlConnection& connection);
absl::StatusOr<Prune> ReadFirstToPrune(SqlConnection& connection, int limit);
absl::StatusOr<KeyHistory> ReadHistory(SqlConnection& connection, const TuningKey& key);
absl::StatusOr<OutdatedPage> ReadOutdated(SqlConnection& connection, const OutdatedFilter& filter);
absl::StatusOr<std::string> ReadCostModel(SqlConnection& connection, uint64_t tenant, const std::string& device_class,
                                          const std::string& kind);
absl::StatusOr<v1::Workload> ReadWorkload(SqlConnection& connection, const std::string& hash);
absl::StatusOr<JobRow> ReadJob(SqlConnection& connection, uint64_t tenant, uint64_t id);
absl::StatusOr<std::optional<uint64_t>> ReadJobByRequest(SqlConnection& connection, uint64_t tenant,
                                                         const std::string& request_id);
absl::StatusOr<std::vector<TaskRow>> ReadTasks(SqlConnection& connection, uint64_t tenant, uint64_t job);
absl::StatusOr<std::string> ReadPlan(SqlConnection& connection, uint64_t tenant, uint64_t job);
absl::StatusOr<std::vector<JobRow>> ReadJobs(SqlConnection& connection, uint64_t tenant, const JobFilter& filter);
absl::StatusOr<std::optional<BestEntry>> ReadBest(SqlConnection& connection, uint64_t tenant, const v1::BestKey& key,
                                                  int* corrupt);
// nullopt when the tenant has none of that number, or one whose checksum does not match.
absl::StatusOr<std::optional<RecordRow>> ReadRecordById(SqlConnection& connection, uint64_t tenant, uint64_t id);
absl::StatusOr<RecordPage> ReadRecords(SqlConnection& connection, uint64_t tenant, const RecordFilter& filter);

}  // namespace hone
