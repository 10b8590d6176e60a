// What the stores over SQL share: every read through a pool of connections, every commit as one transaction that states
// its epoch. A backend says how connections are opened and what its errors mean.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "database/sql/connection_pool.h"
#include "database/sql/sql.h"
#include "database/sql/writes.h"
#include "database/store/store.h"

namespace hone {

class SqlStore : public TuningStore {
 public:
  absl::StatusOr<uint64_t> BeginEpoch() override;
  absl::Status Commit(uint64_t epoch, std::span<const Write> writes) override;

  absl::StatusOr<int64_t> BytesInUse(int64_t enough) override;
  absl::StatusOr<Prune> FirstToPrune(int limit) override;
  absl::StatusOr<StoredState> LoadState() override;
  absl::StatusOr<KeyHistory> LoadHistory(const TuningKey& key) override;
  absl::StatusOr<OutdatedPage> Outdated(const OutdatedFilter& filter) override;
  absl::StatusOr<std::string> CostModel(uint64_t tenant, const std::string& device_class,
                                        const std::string& kind) override;
  absl::StatusOr<v1::Workload> GetWorkload(const std::string& hash) override;
  absl::StatusOr<JobRow> GetJob(uint64_t tenant, uint64_t id) override;
  absl::StatusOr<std::optional<uint64_t>> FindJob(uint64_t tenant, const std::string& request_id) override;
  absl::StatusOr<std::vector<TaskRow>> GetTasks(uint64_t tenant, uint64_t job) override;
  absl::StatusOr<std::string> GetPlan(uint64_t tenant, uint64_t job) override;
  absl::StatusOr<std::vector<JobRow>> ListJobs(uint64_t tenant, const JobFilter& filter) override;
  absl::StatusOr<BestEntries> Best(uint64_t tenant, std::span<const v1::BestKey> keys) override;
  absl::StatusOr<RecordPage> Records(uint64_t tenant, const RecordFilter& filter) override;

 protected:
  // `read_epoch`: the statement that reads the epoch inside a transaction that writes. Where several may write at once
  // it locks the row, so that the epoch stays until the commit.
  SqlStore(ConnectionPool::Open open_reader, int readers, const char* read_epoch)
      : readers_(std::move(open_reader), readers), most_readers_(readers), read_epoch_(read_epoch) {}

  void CloseReaders() { readers_.CloseFree(); }

  // The connection to write through, open; used by one thread at a time.
  virtual absl::StatusOr<SqlConnection*> Writer() = 0;
  virtual absl::Status Explain(const absl::Status& status) const { return status; }  // says what can be done about it
  virtual absl::Status BeforeCommit(SqlConnection&) { return absl::OkStatus(); }     // in every transaction that writes
  virtual absl::StatusOr<int64_t> CountBytes(SqlConnection& reader, int64_t enough) = 0;  // BytesInUse

 private:
  template <class Body>  // absl::Status(SqlConnection&)
  absl::Status Transaction(Body body);
  template <class Body>  // absl::StatusOr<T>(SqlConnection&); one snapshot for all its queries
  auto Read(Body body) -> decltype(body(std::declval<SqlConnection&>()));

  ConnectionPool readers_;
  const int most_readers_;
  const char* const read_epoch_;
  std::mutex write_mutex_;
  KnownRows known_;  // of the writer
};

}  // namespace hone
