// What the database keeps, as plain values: the rows that the dispatcher writes and reads back after a restart.
// Identifiers are positive; 0 means "none". Text that came over the wire is valid UTF-8 (protobuf checks it).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "hone/v1/common.pb.h"
#include "hone/v1/tune.pb.h"

namespace hone {

// Who owns jobs and records: part of every key and id. What is another tenant's is not there.
struct Tenant {
  uint64_t id = 0;
  std::string name;
  auto operator<=>(const Tenant&) const = default;
};
inline constexpr uint64_t kLocalTenant = 1;  // of the owner of the database; its name is "local"
// Of workers that serve every tenant, and of nothing that is stored; its name is "*". Ids that follow from names are
// below.
inline constexpr uint64_t kAllTenants = uint64_t{1} << 63;
// The id follows from the name, so that a tenant has the same one in every database.
Tenant TenantOf(const std::string& name);

// What is tuned: two results compare, and a trial is not repeated, exactly when these are equal.
struct TuningKey {
  uint64_t tenant = kLocalTenant;
  std::string workload_hash;  // SHA-256 of the workload's text, 32 bytes
  std::string device_class;
  int threads = 1;
  v1::NumericLevel numeric = v1::NUMERIC_DEFAULT;
  uint32_t protocol = 1;  // version of the measuring protocol

  auto operator<=>(const TuningKey&) const = default;
};

// Bytes of a device class and of a model's hash: they are in indexes, whose entries PostgreSQL limits to 2704 bytes.
inline constexpr size_t kLongestName = 1024;

// Counts by outcome kind, by the name the JSON forms use: "wrong_result".
using FailureCounts = std::map<std::string, int64_t>;
// "ok", "build_error", "crash", "timeout", "out_of_memory", "wrong_result", "invalid_timing", "infra", "cancelled".
std::string OutcomeName(v1::OutcomeKind kind);

struct DeviceClassRow {
  std::string name;           // the canonical text
  v1::DeviceProfile profile;  // what is believed of it, and the probes that stands on
};

// Whether a job in that state waits or runs: it has not ended.
inline bool IsOpen(v1::JobState state) { return state == v1::JOB_WAITING || state == v1::JOB_RUNNING; }

struct JobRow {
  uint64_t id = 0;
  uint64_t tenant = kLocalTenant;
  v1::SubmitRequest request;  // without its tasks and plan, which have their own rows
  v1::JobState state = v1::JOB_WAITING;
  std::string reason;        // why it waits or failed; empty otherwise
  std::string device_class;  // of the workers it runs on; empty until the first one
  int threads = 0;           // resolved; 0 until the first worker
  uint32_t protocol = 0;
  std::string created;  // UTC, ISO 8601
  bool stop_requested = false;
  double seconds = 0;  // since it first ran
  double build_seconds = 0, verify_seconds = 0, measure_seconds = 0;
  double busy_seconds = 0;  // wall time in which something was built, verified or measured
  // Batches that a trained cost model ranked, and sums over them of (best time / time of the first pick), by the draft
  // and by the model.
  int64_t judged_batches = 0;
  double draft_first = 0, model_first = 0;
};

struct TaskRow {
  uint64_t id = 0;
  uint64_t job = 0;
  int index = 0;  // in the order of the request
  std::string workload_hash;
  std::string name;
  double weight = 1;
  double flop = 0, bytes = 0;
  double least_flop = 0;  // by the cheapest algorithm allowed: what the lower bound goes by
  std::string default_trace;
  int64_t trials = 0;  // verified, made for this job
  FailureCounts failed;
  double default_us = 0;
  double best_us = 0;
  double lower_bound_us = 0;
  uint64_t record = 0;
  std::string state = "open";  // "open", "at_limit", "stalled", "exhausted"
};

enum class TrialState { kLeased = 1, kDone = 2, kDropped = 3 };  // dropped: its job ended before it had an outcome

// A candidate that was lent to a worker at least once. (id, attempt, epoch) is the fencing token of its lease.
struct TrialRow {
  uint64_t id = 0;
  TuningKey key;
  uint64_t task = 0;  // the task it was made for
  std::string trace;
  std::string source;  // "default", "template", "mutate", ...: who proposed it
  bool duel = false;   // a duel repeats a trial against the champion; it is no new candidate
  TrialState state = TrialState::kLeased;
  uint32_t attempt = 0;
  uint64_t epoch = 0;
  std::string secret;                              // of the latest lease: who holds it can say it
  uint32_t lost_workers = 0;                       // workers that vanished while they worked on it
  v1::OutcomeKind kind = v1::OUTCOME_UNSPECIFIED;  // when done
  double median_us = 0;                            // when OK
};

// How one attempt ended. Append-only; (trial, attempt) is unique, a second report of the same attempt changes nothing.
struct MeasurementRow {
  uint64_t trial = 0;
  uint32_t attempt = 0;
  uint64_t epoch = 0;
  std::string worker;
  v1::Outcome outcome;  // without object and kernel set
};

// A verified trial. `record.id` is a function of the key, its tenant included, and the trace (RecordId), so that it
// survives export and import.
struct RecordRow {
  TuningKey key;
  v1::Record record;  // workload text and name, created, target included when read
  // "tuned": verified and measured by workers of this database. "imported": a claim of whoever wrote the file, until a
  // worker here has measured the same trace. "stale": measured here, as code that the present generator does not make.
  std::string origin;

  bool MeasuredHere() const { return origin == "tuned"; }
};
uint64_t RecordId(const TuningKey& key, const std::string& trace);

// ---- writes ----
struct PutTenant {
  Tenant tenant;
};  // no effect when it is there; before what is the tenant's
struct PutWorkload {
  v1::Workload workload;
};  // no effect when it is there
struct PutDeviceClass {
  DeviceClassRow row;
};  // replaces
// Inserts or replaces. The row is kept beside: it is by far the largest of all, and seldom among what an event writes.
class PutJob {
 public:
  PutJob(JobRow row) : row_(std::make_shared<const JobRow>(std::move(row))) {}  // NOLINT: a row is what it puts
  const JobRow& row() const { return *row_; }

 private:
  std::shared_ptr<const JobRow> row_;
};
struct PutPlan {
  uint64_t job = 0;
  std::string model_hash, plan;
};
struct PutTask {
  TaskRow row;
};  // inserts or replaces
struct PutTrial {
  TrialRow row;
};  // inserts or replaces; the trace of a trial never changes
struct AddMeasurement {
  MeasurementRow row;
};  // no effect when (trial, attempt) is there
// Replaces an imported or a stale one by one that was measured here; else no effect when it is there. Its object is
// kept when it comes with one.
struct PutRecord {
  RecordRow row;
};
struct PutObject {
  uint64_t record = 0;
  std::string digest, object, kernel_set;  // SHA-256 of the object
};  // no effect when the record is not there, states another digest, or has its object
struct SetBest {
  TuningKey key;
  uint64_t record = 0;
  double median_us = 0;
};  // replaces
struct PruneObjects {
  TuningKey key;
  int keep = 4;
};  // keeps the objects of `best` and of the fastest `keep` records
// Trials that ended, beyond the `keep` latest of the key, leave with their measurements; what the records say stays, so
// that of what leaves only failures may be tried again.
struct PruneTrials {
  TuningKey key;
  int keep = 0;
};
// What a quota takes: see TuningStore::FirstToPrune, which says what there is and in which order. A record takes its
// object, its choices and its ended trials along, a trial its measurements. No effect on what must not leave (trials
// that are lent, the latest trial, the best record of a key, records of lock files) and on what is gone.
struct Prune {
  std::vector<uint64_t> trials, records;
  std::vector<uint64_t> traces;  // of these, by their rows: they leave unless something else has them
};
struct PutCostModel {
  uint64_t tenant = kLocalTenant;
  std::string device_class;
  std::string kind;
  std::string bytes;
};  // replaces

// Which schedule of a kernel was the faster one inside a model: the record's or the default one.
struct PutChoice {
  uint64_t tenant = kLocalTenant;
  std::string model_hash;
  uint64_t record = 0;
  std::string faster_default;  // SHA-256 of the default's object; empty: the record's was faster
};                             // replaces; no effect when the record is not there or not the tenant's

// A lock file names the record: no quota takes it.
struct LockRecord {
  uint64_t tenant = kLocalTenant;
  uint64_t record = 0;
};  // no effect when the record is not there or not the tenant's

// What a code generator makes of a record's schedule: `object_digest` is of its code. Where that is the code that was
// measured, the record is that generator's from now on. Else the record is stale: its trials no longer count, so that
// the next job on its key measures the schedule again, and what the record says stays until then.
struct CheckRecord {
  uint64_t tenant = kLocalTenant;
  uint64_t record = 0;
  std::string generator, object_digest;
};  // no effect when the record is not there, not the tenant's, or not measured here

using Write = std::variant<PutTenant, PutWorkload, PutDeviceClass, PutJob, PutPlan, PutTask, PutTrial, AddMeasurement,
                           PutRecord, PutObject, SetBest, PruneObjects, PruneTrials, Prune, PutCostModel, PutChoice,
                           LockRecord, CheckRecord>;

// ---- what a restart reads ----
struct StoredState {
  uint64_t last_job = 0, last_task = 0, last_trial = 0;  // the highest identifiers in use
  std::vector<JobRow> jobs;                              // waiting or running, by id
  std::vector<TaskRow> tasks;                            // of those jobs, by id
  std::vector<v1::Workload> workloads;                   // of those tasks
  std::vector<TrialRow> leased;                          // by id
  std::vector<DeviceClassRow> device_classes;
  int corrupt = 0;  // rows that cannot be read as what they are, left out
};

struct PastTrial {
  std::string trace;
  v1::OutcomeKind kind = v1::OUTCOME_OK;
  double median_us = 0;
  bool claimed = false;  // of an imported or a stale record: this code was not measured here
  std::string worker;    // who reported that outcome; empty: nobody knows, as of a trial that was pruned
};
// All that is known of one key.
struct KeyHistory {
  std::vector<PastTrial> trials;  // done, in the order they ended; imported records last
  uint64_t best_record = 0;
  std::string best_trace;
  double best_us = 0;
  bool best_claimed = false;                // the best record is an imported or a stale one, not yet measured here
  std::string best_generator, best_digest;  // of the best record: what made its code, and the SHA-256 of that,
  std::string best_driver;                  // and the driver that it was measured with
  std::vector<std::string> duelled;         // traces that met the champion already, won or lost
  std::vector<std::string> seeds;           // best traces of the same workload under other keys
  int corrupt = 0;                          // rows whose checksums do not match, left out
};

}  // namespace hone
