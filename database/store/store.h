// The truth of everything that lasts. One interface; SQLite (sqlite_store.h) and PostgreSQL (postgres_store.h) behind
// it; one conformance suite runs on every backend.
//
// One process writes. It waits until `TryLead` says yes, calls `BeginEpoch` once and states that epoch with every
// commit: a writer that was overtaken changes nothing. Any number of processes read at the same time, without waiting
// for the writer. All methods may be called from any thread, TryLead and WaitForChange from one at a time.
//
// Errors: DataLoss when it is not a database of ours, is corrupt, or was written by a newer release (exit code 9);
// ResourceExhausted when the disk is full, Unavailable when another program holds the file or the server cannot be
// reached (both: try again; what a commit wrote may be there then, and writing it again changes nothing);
// Aborted when the epoch is no longer current; FailedPrecondition when opened for reading; NotFound; Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "database/store/rows.h"

namespace hone {

struct BestEntry {
  RecordRow row;
  bool exact = true;           // false: measured with another thread count or at a stricter level
  std::string faster_default;  // what PutChoice says of this record in the key's model; empty when it says nothing
};

struct RecordFilter {
  std::string workload_regex;  // NameFilter's, searched in workload names; empty: all
  bool best_only = false;
  bool with_objects = false;
  uint64_t after = 0;  // only records whose position is above: for reading page by page
  int limit = 0;       // 0: no limit
};
struct RecordPage {
  std::vector<RecordRow> rows;  // in the order they were written
  std::vector<bool> best;       // beside `rows`: is it its key's best?
  uint64_t last = 0;            // `after` for the next page; 0 when this was the last
  int corrupt = 0;              // rows left out because their checksum does not match, objects too
};
// The first jobs, by id, of those whose id is above `after`.
struct JobFilter {
  uint64_t after = 0;
  int limit = 0;  // 0: all of them
};
// Best records that another code generator made than `generator`, or that were measured with another driver than
// `driver`, of keys that workers of one kind can measure.
struct OutdatedFilter {
  uint64_t tenant = kLocalTenant;  // kAllTenants: of every one
  std::string device_class;
  uint32_t protocol = 1;
  int most_threads = 1;
  std::string generator, driver;
  uint64_t after = 0;  // only keys whose position is above: for reading page by page
  int keys = 256;      // that a page looks at

  bool operator==(const OutdatedFilter&) const = default;
};
struct OutdatedRecord {
  TuningKey key;
  v1::Workload workload;
};
struct OutdatedPage {
  std::vector<OutdatedRecord> records;  // in the order of their keys, as those were made
  uint64_t last = 0;                    // `after` for the next page; 0 when this was the last
};
struct BestEntries {
  std::vector<std::optional<BestEntry>> entries;  // one for each key asked for
  int corrupt = 0;                                // rows not served because their checksum does not match
};

class TuningStore {
 public:
  virtual ~TuningStore() = default;

  // ---- the writer ----
  // True once this process may write: no other leads, or the one that did is gone. A file has one writer as long as it
  // is open, so whoever has it leads.
  virtual absl::StatusOr<bool> TryLead() { return true; }
  // For those who do not lead. Waits until another process has committed: true, perhaps without cause; false when
  // `limit` has passed. Some backends only wait.
  virtual absl::StatusOr<bool> WaitForChange(absl::Duration limit) {
    absl::SleepFor(limit);
    return false;
  }
  // Makes the caller the writer and returns its epoch, one above every earlier one.
  virtual absl::StatusOr<uint64_t> BeginEpoch() = 0;
  // All writes in order, or none. Durable when it returns OK.
  virtual absl::Status Commit(uint64_t epoch, std::span<const Write> writes) = 0;

  // ---- a quota ----
  // The bytes that rows take, indexes included, room that deleted ones left not counted. A backend that would have to
  // count may answer with a number up to `enough` where it knows that there are no more.
  virtual absl::StatusOr<int64_t> BytesInUse(int64_t enough) = 0;
  // What a quota takes first, at most `limit` of one kind; nothing when all that is left must stay. The kinds in turn:
  // trials that failed or were dropped, oldest first; records, those farthest from their key's best first, then the
  // oldest; what is left of other trials, oldest first.
  virtual absl::StatusOr<Prune> FirstToPrune(int limit) = 0;

  // ---- the dispatcher's reads ----
  virtual absl::StatusOr<StoredState> LoadState() = 0;
  virtual absl::StatusOr<KeyHistory> LoadHistory(const TuningKey& key) = 0;  // an unknown key is empty
  // One page, in the time of the keys that it looks at.
  virtual absl::StatusOr<OutdatedPage> Outdated(const OutdatedFilter& filter) = 0;
  // The latest cost model stored under that name; NotFound.
  virtual absl::StatusOr<std::string> CostModel(uint64_t tenant, const std::string& device_class,
                                                const std::string& kind) = 0;

  // ---- everybody's reads: what is not the tenant's is not there ----
  // Workloads alone are shared: whoever knows the digest of a text has the text. NotFound.
  virtual absl::StatusOr<v1::Workload> GetWorkload(const std::string& hash) = 0;
  virtual absl::StatusOr<JobRow> GetJob(uint64_t tenant, uint64_t id) = 0;  // NotFound
  virtual absl::StatusOr<std::optional<uint64_t>> FindJob(uint64_t tenant, const std::string& request_id) = 0;
  virtual absl::StatusOr<std::vector<TaskRow>> GetTasks(uint64_t tenant, uint64_t job) = 0;  // in the request's order
  virtual absl::StatusOr<std::string> GetPlan(uint64_t tenant, uint64_t job) = 0;            // NotFound
  virtual absl::StatusOr<std::vector<JobRow>> ListJobs(uint64_t tenant, const JobFilter& filter) = 0;  // by id
  // The best record of each key, without its object and what its workload says: the key has the digest of that. In the
  // same time however many records there are. Exact first; else one measured at a stricter numeric level or with
  // another number of threads (the nearest above all), and `exact` is false. A looser level never answers. An empty
  // device class stands for the only one the tenant has keys of. The newest measuring protocol wins. A row whose
  // checksum does not match is counted, not served.
  virtual absl::StatusOr<BestEntries> Best(uint64_t tenant, std::span<const v1::BestKey> keys) = 0;
  virtual absl::StatusOr<RecordPage> Records(uint64_t tenant, const RecordFilter& filter) = 0;
};

}  // namespace hone
