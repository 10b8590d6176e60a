#include "database/sql/sql_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/status_macros.h"
#include "database/sql/reads.h"
#include "database/sql/writes.h"

namespace hone {

template <class Body>
absl::Status SqlStore::Transaction(Body body) {
  const std::lock_guard<std::mutex> guard(write_mutex_);
  HONE_ASSIGN_OR_RETURN(SqlConnection * writer, Writer());
  absl::Status status = writer->Begin(SqlConnection::Access::kWrite);
  CrashPoint("store.begun");
  if (status.ok()) status = body(*writer);
  if (status.ok()) status = BeforeCommit(*writer);
  CrashPoint("store.before_commit");
  if (status.ok()) status = writer->Commit();
  CrashPoint("store.committed");
  if (status.ok()) return status;
  writer->Rollback();
  known_ = {};
  return Explain(status);
}

template <class Body>
auto SqlStore::Read(Body body) -> decltype(body(std::declval<SqlConnection&>())) {
  for (int attempt = 0;; ++attempt) {
    absl::StatusOr<ConnectionPool::Lease> connection = readers_.Take();
    if (!connection.ok()) return Explain(connection.status());
    SqlConnection& reader = **connection;
    absl::Status status = reader.Begin(SqlConnection::Access::kRead);
    if (status.ok()) {
      auto result = body(reader);
      if (result.ok()) {
        reader.Commit().IgnoreError();  // nothing was written
        return result;
      }
      status = result.status();
      reader.Rollback();
    }
    // A server that was started again has ended the connections in the pool: they are tried until one is new.
    if (reader.usable() || attempt > most_readers_) return Explain(status);
  }
}

absl::StatusOr<uint64_t> SqlStore::BeginEpoch() {
  uint64_t epoch = 0;
  HONE_RETURN_IF_ERROR(Transaction([&](SqlConnection& c) -> absl::Status {
    known_ = {};
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> next, c.Prepare("UPDATE term SET epoch = epoch + 1"));
    HONE_RETURN_IF_ERROR(next->Run());
    CrashPoint("store.epoch");
    HONE_ASSIGN_OR_RETURN(epoch, c.Number(read_epoch_));
    return absl::OkStatus();
  }));
  return epoch;
}

absl::Status SqlStore::Commit(uint64_t epoch, std::span<const Write> writes) {
  return Transaction([&](SqlConnection& c) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const int64_t current, c.Number(read_epoch_));
    if (static_cast<uint64_t>(current) != epoch) {
      return absl::AbortedError(
          absl::StrCat("another daemon has taken over this database: its term is ", current, ", ours was ", epoch));
    }
    for (const Write& write : writes) HONE_RETURN_IF_ERROR(ApplyWrite(c, known_, write));
    return absl::OkStatus();
  });
}

absl::StatusOr<int64_t> SqlStore::BytesInUse(int64_t enough) {
  return Read([&](SqlConnection& c) { return CountBytes(c, enough); });
}
absl::StatusOr<Prune> SqlStore::FirstToPrune(int limit) {
  return Read([&](SqlConnection& c) { return ReadFirstToPrune(c, limit); });
}
absl::StatusOr<StoredState> SqlStore::LoadState() {
  return Read([&](SqlConnection& c) { return ReadState(c); });
}
absl::StatusOr<KeyHistory> SqlStore::LoadHistory(const TuningKey& key) {
  return Read([&](SqlConnection& c) { return ReadHistory(c, key); });
}
absl::StatusOr<OutdatedPage> SqlStore::Outdated(const OutdatedFilter& filter) {
  return Read([&](SqlConnection& c) { return ReadOutdated(c, filter); });
}
absl::StatusOr<std::string> SqlStore::CostModel(uint64_t tenant, const std::string& device_class,
                                                const std::string& kind) {
  return Read([&](SqlConnection& c) { return ReadCostModel(c, tenant, device_class, kind); });
}
absl::StatusOr<v1::Workload> SqlStore::GetWorkload(const std::string& hash) {
  return Read([&](SqlConnection& c) { return ReadWorkload(c, hash); });
}
absl::StatusOr<JobRow> SqlStore::GetJob(uint64_t tenant, uint64_t id) {
  return Read([&](SqlConnection& c) { return ReadJob(c, tenant, id); });
}
absl::StatusOr<std::optional<uint64_t>> SqlStore::FindJob(uint64_t tenant, const std::string& request_id) {
  return Read([&](SqlConnection& c) { return ReadJobByRequest(c, tenant, request_id); });
}
absl::StatusOr<std::vector<TaskRow>> SqlStore::GetTasks(uint64_t tenant, uint64_t job) {
  return Read([&](SqlConnection& c) { return ReadTasks(c, tenant, job); });
}
absl::StatusOr<std::string> SqlStore::GetPlan(uint64_t tenant, uint64_t job) {
  return Read([&](SqlConnection& c) { return ReadPlan(c, tenant, job); });
}
absl::StatusOr<std::vector<JobRow>> SqlStore::ListJobs(uint64_t tenant, const JobFilter& filter) {
  return Read([&](SqlConnection& c) { return ReadJobs(c, tenant, filter); });
}
absl::StatusOr<BestEntries> SqlStore::Best(uint64_t tenant, std::span<const v1::BestKey> keys) {
  return Read([&](SqlConnection& c) -> absl::StatusOr<BestEntries> {
    BestEntries answers;
    for (const v1::BestKey& key : keys) {
      HONE_ASSIGN_OR_RETURN(std::optional<BestEntry> entry, ReadBest(c, tenant, key, &answers.corrupt));
      answers.entries.push_back(std::move(entry));
    }
    return answers;
  });
}
absl::StatusOr<RecordPage> SqlStore::Records(uint64_t tenant, const RecordFilter& filter) {
  return Read([&](SqlConnection& c) { return ReadRecords(c, tenant, filter); });
}

}  // namespace hone
