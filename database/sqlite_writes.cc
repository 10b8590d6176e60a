#include "database/sqlite_writes.h"

#include "absl/strings/str_cat.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "database/checksum.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

absl::StatusOr<int64_t> IdOf(SqliteQuery query, const char* what) {
  HONE_ASSIGN_OR_RETURN(const bool row, query.Next());
  if (!row) return absl::InternalError(absl::StrCat("no ", what, " with that name: it must be written first"));
  return query.GetInt(0);
}

absl::StatusOr<int64_t> WorkloadId(SqliteConnection& c, const std::string& hash) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery query, c.Prepare("SELECT id FROM workload WHERE hash = ?"));
  query.Blob(hash);
  return IdOf(std::move(query), "workload");
}

absl::StatusOr<int64_t> DeviceClassId(SqliteConnection& c, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery query, c.Prepare("SELECT id FROM device_class WHERE name = ?"));
  query.Text(name);
  return IdOf(std::move(query), "device class");
}

// The row of the key, made when there is none.
absl::StatusOr<int64_t> KeyId(SqliteConnection& c, const TuningKey& key) {
  HONE_ASSIGN_OR_RETURN(const int64_t workload, WorkloadId(c, key.workload_hash));
  HONE_ASSIGN_OR_RETURN(const int64_t device_class, DeviceClassId(c, key.device_class));
  {
    HONE_ASSIGN_OR_RETURN(
        SqliteQuery insert,
        c.Prepare("INSERT INTO tuning_key (workload, device_class, threads, numeric, protocol, tenant) "
                  "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"));
    insert.Int(workload).Int(device_class).Int(key.threads).Int(key.numeric).Int(key.protocol).Int(key.tenant);
    HONE_RETURN_IF_ERROR(insert.Run());
  }
  HONE_ASSIGN_OR_RETURN(SqliteQuery query,
                        c.Prepare("SELECT id FROM tuning_key WHERE workload = ? AND device_class = ? AND threads = ? "
                                  "AND numeric = ? AND protocol = ? AND tenant = ?"));
  query.Int(workload).Int(device_class).Int(key.threads).Int(key.numeric).Int(key.protocol).Int(key.tenant);
  return IdOf(std::move(query), "tuning key");
}

absl::StatusOr<int64_t> TraceId(SqliteConnection& c, const std::string& text) {
  const std::string digest = Sha256(text);
  {
    HONE_ASSIGN_OR_RETURN(SqliteQuery insert,
                          c.Prepare("INSERT INTO trace (digest, text) VALUES (?, ?) ON CONFLICT DO NOTHING"));
    insert.Blob(digest).Text(text);
    HONE_RETURN_IF_ERROR(insert.Run());
  }
  HONE_ASSIGN_OR_RETURN(SqliteQuery query, c.Prepare("SELECT id FROM trace WHERE digest = ?"));
  query.Blob(digest);
  return IdOf(std::move(query), "trace");
}

absl::Status Apply(SqliteConnection& c, const PutWorkload& write) {
  const v1::Workload& w = write.workload;
  HONE_ASSIGN_OR_RETURN(SqliteQuery insert, c.Prepare("INSERT INTO workload (hash, name, text, flop, bytes) "
                                                      "VALUES (?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING"));
  insert.Blob(w.hash()).Text(w.name()).Text(w.text()).Real(w.flop()).Real(w.bytes());
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const PutDeviceClass& write) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery insert, c.Prepare("INSERT INTO device_class (name, profile) VALUES (?, ?) "
                                                      "ON CONFLICT (name) DO UPDATE SET profile = excluded.profile"));
  insert.Text(write.row.name).Blob(write.row.profile.SerializeAsString());
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const PutJob& write) {
  const JobRow& row = write.row;
  HONE_ASSIGN_OR_RETURN(
      SqliteQuery insert,
      c.Prepare(
          "INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
          "SET "
          "request = excluded.request, state = excluded.state, reason = excluded.reason, "
          "device_class = excluded.device_class, threads = excluded.threads, protocol = excluded.protocol, "
          "stop_requested = excluded.stop_requested, seconds = excluded.seconds, "
          "build_seconds = excluded.build_seconds, verify_seconds = excluded.verify_seconds, "
          "measure_seconds = excluded.measure_seconds, busy_seconds = excluded.busy_seconds, "
          "judged_batches = excluded.judged_batches, draft_first = excluded.draft_first, "
          "model_first = excluded.model_first"));
  insert.Int(row.id).Int(row.tenant).Text(row.request.request_id()).Blob(row.request.SerializeAsString());
  insert.Int(row.state).Text(row.reason).Text(row.device_class).Int(row.threads).Int(row.protocol).Text(row.created);
  insert.Int(row.stop_requested).Real(row.seconds).Real(row.build_seconds).Real(row.verify_seconds);
  insert.Real(row.measure_seconds).Real(row.busy_seconds);
  insert.Int(row.judged_batches).Real(row.draft_first).Real(row.model_first);
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const PutPlan& write) {
  HONE_ASSIGN_OR_RETURN(
      SqliteQuery insert,
      c.Prepare("INSERT INTO plan (job, model_hash, bytes) VALUES (?, ?, ?) ON CONFLICT (job) DO NOTHING"));
  insert.Int(write.job).Blob(write.model_hash).Blob(write.plan);
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const PutTask& write) {
  const TaskRow& row = write.row;
  HONE_ASSIGN_OR_RETURN(const int64_t workload, WorkloadId(c, row.workload_hash));
  HONE_ASSIGN_OR_RETURN(
      SqliteQuery insert,
      c.Prepare(
          "INSERT INTO task VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
          "trials = excluded.trials, failed = excluded.failed, default_us = excluded.default_us, "
          "best_us = excluded.best_us, lower_bound_us = excluded.lower_bound_us, record = excluded.record, "
          "state = excluded.state"));
  insert.Int(row.id).Int(row.job).Int(row.index).Int(workload).Text(row.name).Real(row.weight).Real(row.flop);
  insert.Real(row.bytes).Text(row.default_trace).Int(row.trials).Text(nlohmann::json(row.failed).dump());
  insert.Real(row.default_us).Real(row.best_us).Real(row.lower_bound_us).Int(row.record).Text(row.state);
  insert.Real(row.least_flop);
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const PutTrial& write) {
  const TrialRow& row = write.row;
  HONE_ASSIGN_OR_RETURN(const int64_t key, KeyId(c, row.key));
  HONE_ASSIGN_OR_RETURN(const int64_t trace, TraceId(c, row.trace));
  HONE_ASSIGN_OR_RETURN(
      SqliteQuery insert,
      c.Prepare(
          "INSERT INTO trial VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, CASE WHEN ?7 = 2 "
          "THEN (SELECT coalesce(max(ended), 0) + 1 FROM trial WHERE key = ?2 AND state = 2) END, ?13) "
          "ON CONFLICT (id) DO UPDATE SET task = excluded.task, state = excluded.state, attempt = excluded.attempt, "
          "epoch = excluded.epoch, secret = excluded.secret, lost_workers = excluded.lost_workers, kind = "
          "excluded.kind, "
          "median_us = excluded.median_us, ended = coalesce(trial.ended, excluded.ended)"));
  insert.Int(row.id).Int(key).Int(row.task).Int(trace).Text(row.source).Int(row.duel).Int(static_cast<int>(row.state));
  insert.Int(row.attempt).Int(row.epoch).Int(row.lost_workers).Int(row.kind).Real(row.median_us).Blob(row.secret);
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const AddMeasurement& write) {
  const MeasurementRow& row = write.row;
  v1::Outcome outcome = row.outcome;
  outcome.clear_object();
  outcome.clear_kernel_set();
  const std::string bytes = outcome.SerializeAsString();
  HONE_ASSIGN_OR_RETURN(SqliteQuery insert,
                        c.Prepare("INSERT INTO measurement (trial, attempt, epoch, worker, outcome, checksum) "
                                  "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (trial, attempt) DO NOTHING"));
  insert.Int(row.trial).Int(row.attempt).Int(row.epoch).Text(row.worker).Blob(bytes).Blob(ChecksumOf(row, bytes));
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const PutObject& write) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery insert,
                        c.Prepare("INSERT INTO object (record, object, kernel_set, checksum) SELECT ?1, ?2, ?3, ?4 "
                                  "WHERE EXISTS (SELECT 1 FROM record WHERE id = ?1 AND object_digest = ?5) "
                                  "ON CONFLICT (record) DO NOTHING"));
  insert.Int(write.record).Blob(write.object).Blob(write.kernel_set);
  insert.Blob(ChecksumOfObject(write.record, write.object, write.kernel_set)).Blob(write.digest);
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const PutRecord& write) {
  const v1::Record& r = write.row.record;
  HONE_ASSIGN_OR_RETURN(const int64_t key, KeyId(c, write.row.key));
  HONE_ASSIGN_OR_RETURN(const int64_t trace, TraceId(c, r.trace()));
  if (write.row.origin != "imported") {  // a claim that is replaced takes its object along
    HONE_ASSIGN_OR_RETURN(SqliteQuery remove,
                          c.Prepare("DELETE FROM object WHERE record = ?1 AND EXISTS (SELECT 1 FROM record WHERE "
                                    "id = ?1 AND origin = 'imported' AND object_digest <> ?2)"));
    remove.Int(r.id()).Blob(r.object_digest());
    HONE_RETURN_IF_ERROR(remove.Run());
  }
  {
    HONE_ASSIGN_OR_RETURN(
        SqliteQuery insert,
        c.Prepare("INSERT INTO record (id, key, trace, median_us, low_us, high_us, program_hash, object_digest, "
                  "generator, target, created, origin, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                  "ON CONFLICT (id) DO UPDATE SET median_us = excluded.median_us, low_us = excluded.low_us, "
                  "high_us = excluded.high_us, program_hash = excluded.program_hash, "
                  "object_digest = excluded.object_digest, generator = excluded.generator, target = excluded.target, "
                  "created = excluded.created, origin = excluded.origin, checksum = excluded.checksum "
                  "WHERE record.origin = 'imported' AND excluded.origin <> 'imported'"));
    insert.Int(r.id()).Int(key).Int(trace).Real(r.median_us()).Real(r.low_us()).Real(r.high_us());
    insert.Blob(r.program_hash()).Blob(r.object_digest()).Text(r.generator()).Text(r.target()).Text(r.created());
    insert.Text(write.row.origin).Blob(ChecksumOf(write.row));
    HONE_RETURN_IF_ERROR(insert.Run());
  }
  if (r.object().empty()) return absl::OkStatus();
  return Apply(c, PutObject{r.id(), r.object_digest(), r.object(), r.kernel_set()});
}

absl::Status Apply(SqliteConnection& c, const SetBest& write) {
  HONE_ASSIGN_OR_RETURN(const int64_t key, KeyId(c, write.key));
  HONE_ASSIGN_OR_RETURN(SqliteQuery insert,
                        c.Prepare("INSERT INTO best (key, record, median_us) VALUES (?, ?, ?) ON CONFLICT (key) "
                                  "DO UPDATE SET record = excluded.record, median_us = excluded.median_us"));
  insert.Int(key).Int(write.record).Real(write.median_us);
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const PruneObjects& write) {
  HONE_ASSIGN_OR_RETURN(const int64_t key, KeyId(c, write.key));
  HONE_ASSIGN_OR_RETURN(
      SqliteQuery remove,
      c.Prepare("DELETE FROM object WHERE record IN (SELECT id FROM record WHERE key = ?1) "
                "AND record NOT IN (SELECT record FROM best WHERE key = ?1) "
                "AND record NOT IN (SELECT r.id FROM record r JOIN object o ON o.record = r.id WHERE r.key = ?1 "
                "ORDER BY r.median_us, r.position LIMIT ?2)"));
  remove.Int(key).Int(write.keep);
  return remove.Run();
}

// The latest trial of all stays, so that its number is not given to another after a restart.
absl::Status Apply(SqliteConnection& c, const PruneTrials& write) {
  HONE_ASSIGN_OR_RETURN(const int64_t key, KeyId(c, write.key));
  constexpr char kLeaving[] =
      "(SELECT id FROM trial WHERE key = ?1 AND state = 2 AND ended <= (SELECT max(ended) FROM trial WHERE key = ?1 "
      "AND state = 2) - ?2 AND id <> (SELECT max(id) FROM trial))";
  for (const char* table : {"measurement WHERE trial", "trial WHERE id"}) {
    HONE_ASSIGN_OR_RETURN(SqliteQuery remove, c.Prepare(absl::StrCat("DELETE FROM ", table, " IN ", kLeaving)));
    remove.Int(key).Int(write.keep);
    HONE_RETURN_IF_ERROR(remove.Run());
  }
  return absl::OkStatus();
}

absl::Status Apply(SqliteConnection& c, const PutTenant& write) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery insert, c.Prepare("INSERT INTO tenant VALUES (?, ?) ON CONFLICT DO NOTHING"));
  insert.Int(write.tenant.id).Text(write.tenant.name);
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const PutCostModel& write) {
  HONE_ASSIGN_OR_RETURN(const int64_t device_class, DeviceClassId(c, write.device_class));
  HONE_ASSIGN_OR_RETURN(
      SqliteQuery insert,
      c.Prepare("INSERT INTO cost_model (tenant, device_class, kind, bytes, checksum) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET bytes = excluded.bytes, checksum = excluded.checksum"));
  insert.Int(write.tenant)
      .Int(device_class)
      .Text(write.kind)
      .Blob(write.bytes)
      .Blob(Digester().Add(write.bytes).Short());
  return insert.Run();
}

absl::Status Apply(SqliteConnection& c, const PutChoice& write) {
  HONE_ASSIGN_OR_RETURN(
      SqliteQuery insert,
      c.Prepare("INSERT INTO model_choice (record, model_hash, faster_default, checksum) SELECT ?1, ?2, ?3, ?4 WHERE "
                "EXISTS (SELECT 1 FROM record r JOIN tuning_key k ON k.id = r.key WHERE r.id = ?1 AND k.tenant = ?5) "
                "ON CONFLICT DO UPDATE SET faster_default = excluded.faster_default, checksum = excluded.checksum"));
  insert.Int(write.record).Blob(write.model_hash).Blob(write.faster_default);
  insert.Blob(ChecksumOfChoice(write.record, write.model_hash, write.faster_default)).Int(write.tenant);
  return insert.Run();
}

}  // namespace

absl::Status ApplyWrite(SqliteConnection& connection, const Write& write) {
  return std::visit([&](const auto& w) { return Apply(connection, w); }, write);
}

std::string ChecksumOf(const RecordRow& row) {
  const v1::Record& r = row.record;
  return Digester()
      .Add(int64_t(r.id()))
      .Add(int64_t(row.key.tenant))
      .Add(row.key.workload_hash)
      .Add(row.key.device_class)
      .Add(int64_t{row.key.threads})
      .Add(int64_t{row.key.numeric})
      .Add(int64_t{row.key.protocol})
      .Add(r.trace())
      .Add(r.median_us())
      .Add(r.low_us())
      .Add(r.high_us())
      .Add(r.program_hash())
      .Add(r.object_digest())
      .Add(r.generator())
      .Add(r.target())
      .Add(r.created())
      .Add(row.origin)
      .Short();
}

std::string ChecksumOf(const MeasurementRow& row, const std::string& outcome) {
  return Digester().Add(int64_t(row.trial)).Add(int64_t{row.attempt}).Add(row.worker).Add(outcome).Short();
}

std::string ChecksumOfChoice(uint64_t record, const std::string& model_hash, const std::string& faster_default) {
  return Digester().Add(int64_t(record)).Add(model_hash).Add(faster_default).Short();
}

std::string ChecksumOfObject(uint64_t record, const std::string& object, const std::string& kernel_set) {
  return Digester().Add(int64_t(record)).Add(object).Add(kernel_set).Short();
}

}  // namespace hone
