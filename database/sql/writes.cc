#include "database/sql/writes.h"

#include <initializer_list>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "database/sql/reads.h"
#include "database/sql/row_checksums.h"
#include "database/store/checksum.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

constexpr size_t kMostKnownTasks = 65536;   // some 4 MiB; the open jobs of a large fleet have fewer
constexpr size_t kMostKnownTraces = 16384;  // some 30 MiB; a fleet has fewer trials under work

// The row of the key, made when there is none.
absl::StatusOr<int64_t> KeyId(SqlConnection& c, KnownRows& known, const TuningKey& key) {
  if (const auto found = known.keys.find(key); found != known.keys.end()) return found->second;
  {
    HONE_ASSIGN_OR_RETURN(
        const std::unique_ptr<SqlQuery> insert,
        c.Prepare("INSERT INTO tuning_key (workload, device_class, threads, numeric, protocol, tenant) SELECT w.id, "
                  "d.id, ?, ?, ?, ? FROM workload w, device_class d WHERE w.hash = ? AND d.name = ? "
                  "ON CONFLICT DO NOTHING"));
    insert->Int(key.threads).Int(key.numeric).Int(key.protocol).Int(key.tenant);
    insert->Blob(key.workload_hash).Text(key.device_class);
    HONE_RETURN_IF_ERROR(insert->Run());
  }
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> query,
      c.Prepare("SELECT k.id FROM tuning_key k JOIN workload w ON w.id = k.workload JOIN device_class d "
                "ON d.id = k.device_class WHERE k.threads = ? AND k.numeric = ? AND k.protocol = ? AND k.tenant = ? "
                "AND w.hash = ? AND d.name = ?"));
  query->Int(key.threads).Int(key.numeric).Int(key.protocol).Int(key.tenant);
  query->Blob(key.workload_hash).Text(key.device_class);
  HONE_ASSIGN_OR_RETURN(const bool row, query->Next());
  if (!row) return absl::InternalError("the workload and the device class of a key must be written before it");
  return known.keys[key] = query->GetInt(0);
}

// The digest by which statements find the trace's row, which is made when there is none. Its number is not read: from a
// server that is a round trip.
absl::StatusOr<std::string> TraceDigest(SqlConnection& c, KnownRows& known, const std::string& text) {
  if (const auto found = known.traces.find(text); found != known.traces.end()) return found->second;
  std::string digest = Sha256(text);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> insert,
                        c.Prepare("INSERT INTO trace (digest, text) VALUES (?, ?) ON CONFLICT DO NOTHING"));
  insert->Blob(digest).Text(text);
  HONE_RETURN_IF_ERROR(insert->Run());
  if (known.traces.size() >= kMostKnownTraces) known.traces.clear();
  known.traces.emplace(text, digest);
  return digest;
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutWorkload& write) {
  CrashPoint("write.workload");
  const v1::Workload& w = write.workload;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> insert,
                        c.Prepare("INSERT INTO workload (hash, name, text, flop, bytes) "
                                  "VALUES (?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING"));
  insert->Blob(w.hash()).Text(w.name()).Text(w.text()).Real(w.flop()).Real(w.bytes());
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutDeviceClass& write) {
  CrashPoint("write.device_class");
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> insert,
                        c.Prepare("INSERT INTO device_class (name, profile) VALUES (?, ?) "
                                  "ON CONFLICT (name) DO UPDATE SET profile = excluded.profile"));
  insert->Text(write.row.name).Blob(write.row.profile.SerializeAsString());
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutJob& write) {
  CrashPoint("write.job");
  const JobRow& row = write.row();
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> insert,
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
  insert->Int(row.id).Int(row.tenant).Text(row.request.request_id()).Blob(row.request.SerializeAsString());
  insert->Int(row.state).Text(row.reason).Text(row.device_class).Int(row.threads).Int(row.protocol).Text(row.created);
  insert->Int(row.stop_requested).Real(row.seconds).Real(row.build_seconds).Real(row.verify_seconds);
  insert->Real(row.measure_seconds).Real(row.busy_seconds);
  insert->Int(row.judged_batches).Real(row.draft_first).Real(row.model_first);
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutPlan& write) {
  CrashPoint("write.plan");
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> insert,
      c.Prepare("INSERT INTO plan (job, model_hash, bytes) VALUES (?, ?, ?) ON CONFLICT (job) DO NOTHING"));
  insert->Int(write.job).Blob(write.model_hash).Blob(write.plan);
  return insert->Run();
}

// Of a task that is known to be there. What it is of does not change.
absl::Status UpdateTask(SqlConnection& c, const TaskRow& row) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> update,
                        c.Prepare("UPDATE task SET trials = ?2, failed = ?3, default_us = ?4, best_us = ?5, "
                                  "lower_bound_us = ?6, record = ?7, state = ?8 WHERE id = ?1"));
  update->Int(row.id).Int(row.trials).Text(nlohmann::json(row.failed).dump()).Real(row.default_us).Real(row.best_us);
  update->Real(row.lower_bound_us).Int(row.record).Text(row.state);
  return update->Run();
}

absl::Status InsertTask(SqlConnection& c, const TaskRow& row) {
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> insert,
      c.Prepare("INSERT INTO task VALUES (?, ?, ?, (SELECT id FROM workload WHERE hash = ?), ?, ?, ?, ?, ?, ?, ?, ?, "
                "?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "trials = excluded.trials, failed = excluded.failed, default_us = excluded.default_us, "
                "best_us = excluded.best_us, lower_bound_us = excluded.lower_bound_us, record = excluded.record, "
                "state = excluded.state"));
  insert->Int(row.id).Int(row.job).Int(row.index).Blob(row.workload_hash).Text(row.name).Real(row.weight);
  insert->Real(row.flop).Real(row.bytes).Text(row.default_trace).Int(row.trials);
  insert->Text(nlohmann::json(row.failed).dump()).Real(row.default_us).Real(row.best_us).Real(row.lower_bound_us);
  insert->Int(row.record).Text(row.state).Real(row.least_flop);
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutTask& write) {
  CrashPoint("write.task");
  if (known.tasks.contains(write.row.id)) return UpdateTask(c, write.row);
  HONE_RETURN_IF_ERROR(InsertTask(c, write.row));
  if (known.tasks.size() >= kMostKnownTasks) known.tasks.clear();
  known.tasks.insert(write.row.id);
  return absl::OkStatus();
}

// Of a trial that is known to be lent. What it is of, and was made of, does not change.
absl::Status UpdateLent(SqlConnection& c, const TrialRow& row) {
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> update,
      c.Prepare("UPDATE trial SET task = ?2, state = ?3, attempt = ?4, epoch = ?5, lost_workers = ?6, kind = ?7, "
                "median_us = ?8, secret = ?9, ended = coalesce(ended, CASE WHEN ?3 = 2 THEN (SELECT "
                "coalesce(max(t.ended), 0) + 1 FROM trial t WHERE t.key = trial.key AND t.state = 2) END) WHERE id = "
                "?1"));
  update->Int(row.id).Int(row.task).Int(static_cast<int>(row.state)).Int(row.attempt).Int(row.epoch);
  update->Int(row.lost_workers).Int(row.kind).Real(row.median_us).Blob(row.secret);
  return update->Run();
}

absl::Status InsertTrial(SqlConnection& c, KnownRows& known, const TrialRow& row) {
  HONE_ASSIGN_OR_RETURN(const int64_t key, KeyId(c, known, row.key));
  HONE_ASSIGN_OR_RETURN(const std::string trace, TraceDigest(c, known, row.trace));
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> insert,
      c.Prepare(
          "INSERT INTO trial VALUES (?1, ?2, ?3, (SELECT id FROM trace WHERE digest = ?4), ?5, ?6, ?7, ?8, ?9, ?10, "
          "?11, ?12, CASE WHEN ?7 = 2 "
          "THEN (SELECT coalesce(max(ended), 0) + 1 FROM trial WHERE key = ?2 AND state = 2) END, ?13) "
          "ON CONFLICT (id) DO UPDATE SET task = excluded.task, state = excluded.state, attempt = excluded.attempt, "
          "epoch = excluded.epoch, secret = excluded.secret, lost_workers = excluded.lost_workers, kind = "
          "excluded.kind, "
          "median_us = excluded.median_us, ended = coalesce(trial.ended, excluded.ended)"));
  insert->Int(row.id).Int(key).Int(row.task).Blob(trace).Text(row.source).Int(row.duel);
  insert->Int(static_cast<int>(row.state)).Int(row.attempt).Int(row.epoch).Int(row.lost_workers).Int(row.kind);
  insert->Real(row.median_us).Blob(row.secret);
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutTrial& write) {
  CrashPoint("write.trial");
  const TrialRow& row = write.row;
  HONE_RETURN_IF_ERROR(known.lent.contains(row.id) ? UpdateLent(c, row) : InsertTrial(c, known, row));
  if (row.state == TrialState::kLeased) {
    known.lent.insert(row.id);
  } else {
    known.lent.erase(row.id);
  }
  return absl::OkStatus();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const AddMeasurement& write) {
  CrashPoint("write.measurement");
  const MeasurementRow& row = write.row;
  v1::Outcome outcome = row.outcome;
  outcome.clear_object();
  outcome.clear_kernel_set();
  const std::string bytes = outcome.SerializeAsString();
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> insert,
                        c.Prepare("INSERT INTO measurement (trial, attempt, epoch, worker, outcome, checksum) "
                                  "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (trial, attempt) DO NOTHING"));
  insert->Int(row.trial).Int(row.attempt).Int(row.epoch).Text(row.worker).Blob(bytes).Blob(ChecksumOf(row, bytes));
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutObject& write) {
  CrashPoint("write.object");
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> insert,
                        c.Prepare("INSERT INTO object (record, object, kernel_set, checksum) SELECT ?1, ?2, ?3, ?4 "
                                  "WHERE EXISTS (SELECT 1 FROM record WHERE id = ?1 AND object_digest = ?5) "
                                  "ON CONFLICT (record) DO NOTHING"));
  insert->Int(write.record).Blob(write.object).Blob(write.kernel_set);
  insert->Blob(ChecksumOfObject(write.record, write.object, write.kernel_set)).Blob(write.digest);
  return insert->Run();
}

// Copies the record to `served`, which look-ups read, where it is the best of its key. For every write that changes a
// record, or which one is the best.
absl::Status ServeBest(SqlConnection& c, uint64_t record) {
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> insert,
      c.Prepare("INSERT INTO served SELECT b.key, r.id, t.text, r.median_us, r.low_us, r.high_us, r.program_hash, "
                "r.object_digest, r.generator, r.target, r.created, r.origin, r.checksum, r.driver FROM best b JOIN "
                "record r ON "
                "r.id = b.record JOIN trace t ON t.id = r.trace WHERE b.record = ? "
                "ON CONFLICT (key) DO UPDATE SET id = excluded.id, trace = excluded.trace, median_us = "
                "excluded.median_us, low_us = excluded.low_us, high_us = excluded.high_us, program_hash = "
                "excluded.program_hash, object_digest = excluded.object_digest, generator = excluded.generator, target "
                "= excluded.target, created = excluded.created, origin = excluded.origin, checksum = "
                "excluded.checksum, driver = excluded.driver"));
  insert->Int(record);
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutRecord& write) {
  CrashPoint("write.record");
  const v1::Record& r = write.row.record;
  HONE_ASSIGN_OR_RETURN(const int64_t key, KeyId(c, known, write.row.key));
  HONE_ASSIGN_OR_RETURN(const std::string trace, TraceDigest(c, known, r.trace()));
  if (write.row.MeasuredHere()) {  // a claim that is replaced takes its object along
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> remove,
                          c.Prepare("DELETE FROM object WHERE record = ?1 AND EXISTS (SELECT 1 FROM record r WHERE "
                                    "r.id = object.record AND r.origin <> 'tuned' AND r.object_digest <> ?2)"));
    remove->Int(r.id()).Blob(r.object_digest());
    HONE_RETURN_IF_ERROR(remove->Run());
  }
  {
    HONE_ASSIGN_OR_RETURN(
        const std::unique_ptr<SqlQuery> insert,
        c.Prepare(
            "INSERT INTO record (id, key, trace, median_us, low_us, high_us, program_hash, object_digest, "
            "generator, target, created, origin, checksum, driver) VALUES (?, ?, (SELECT id FROM trace WHERE digest = "
            "?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET median_us = excluded.median_us, low_us = excluded.low_us, "
            "high_us = excluded.high_us, program_hash = excluded.program_hash, "
            "object_digest = excluded.object_digest, generator = excluded.generator, target = excluded.target, "
            "created = excluded.created, origin = excluded.origin, checksum = excluded.checksum, driver = "
            "excluded.driver "
            "WHERE record.origin <> 'tuned' AND excluded.origin = 'tuned'"));
    insert->Int(r.id()).Int(key).Blob(trace).Real(r.median_us()).Real(r.low_us()).Real(r.high_us());
    insert->Blob(r.program_hash()).Blob(r.object_digest()).Text(r.generator()).Text(r.target()).Text(r.created());
    CrashPoint("write.record.traced");
    insert->Text(write.row.origin).Blob(ChecksumOf(write.row)).Text(r.driver());
    HONE_RETURN_IF_ERROR(insert->Run());
  }
  const auto best = known.best.find(key);
  if (best == known.best.end() || best->second == r.id()) HONE_RETURN_IF_ERROR(ServeBest(c, r.id()));
  if (r.object().empty()) return absl::OkStatus();
  return Apply(c, known, PutObject{r.id(), r.object_digest(), r.object(), r.kernel_set()});
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const SetBest& write) {
  CrashPoint("write.best");
  HONE_ASSIGN_OR_RETURN(const int64_t key, KeyId(c, known, write.key));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> insert,
                        c.Prepare("INSERT INTO best (key, record, median_us) VALUES (?, ?, ?) ON CONFLICT (key) "
                                  "DO UPDATE SET record = excluded.record, median_us = excluded.median_us"));
  insert->Int(key).Int(write.record).Real(write.median_us);
  HONE_RETURN_IF_ERROR(insert->Run());
  known.best[key] = write.record;
  return ServeBest(c, write.record);
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PruneObjects& write) {
  CrashPoint("write.prune_objects");
  HONE_ASSIGN_OR_RETURN(const int64_t key, KeyId(c, known, write.key));
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> remove,
      c.Prepare("DELETE FROM object WHERE record IN (SELECT id FROM record WHERE key = ?1) "
                "AND record NOT IN (SELECT record FROM best WHERE key = ?1) "
                "AND record NOT IN (SELECT r.id FROM record r JOIN object o ON o.record = r.id WHERE r.key = ?1 "
                "ORDER BY r.median_us, r.position LIMIT ?2)"));
  remove->Int(key).Int(write.keep);
  return remove->Run();
}

// The latest trial of all stays, so that its number is not given to another after a restart.
absl::Status Apply(SqlConnection& c, KnownRows& known, const PruneTrials& write) {
  CrashPoint("write.prune_trials");
  HONE_ASSIGN_OR_RETURN(const int64_t key, KeyId(c, known, write.key));
  constexpr char kLeaving[] =
      "(SELECT id FROM trial WHERE key = ?1 AND state = 2 AND ended <= (SELECT max(ended) FROM trial WHERE key = ?1 "
      "AND state = 2) - ?2 AND id <> (SELECT max(id) FROM trial))";
  for (const char* table : {"measurement WHERE trial", "trial WHERE id"}) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> remove,
                          c.Prepare(absl::StrCat("DELETE FROM ", table, " IN ", kLeaving)));
    remove->Int(key).Int(write.keep);
    HONE_RETURN_IF_ERROR(remove->Run());
  }
  return absl::OkStatus();
}

// Each of the statements once for each of the numbers, as its parameter ?1.
absl::Status RunForEach(SqlConnection& c, std::initializer_list<std::string> statements,
                        std::span<const uint64_t> numbers) {
  for (const uint64_t number : numbers) {
    for (const std::string& statement : statements) {
      HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> query, c.Prepare(statement));
      query->Int(static_cast<int64_t>(number));
      HONE_RETURN_IF_ERROR(query->Run());
    }
  }
  return absl::OkStatus();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const Prune& write) {
  constexpr char kTrialMayGo[] = "state <> 1 AND id <> (SELECT max(id) FROM trial)";
  constexpr char kRecordMayGo[] =
      "NOT EXISTS (SELECT 1 FROM best WHERE record = ?1) AND NOT EXISTS (SELECT 1 FROM locked_record WHERE record = "
      "?1)";
  const std::string with_record = absl::StrCat(
      "(SELECT id FROM trial WHERE (key, trace) = (SELECT key, trace FROM "
      "record WHERE id = ?1) AND ",
      kTrialMayGo, " AND ", kRecordMayGo, ")");
  HONE_RETURN_IF_ERROR(
      RunForEach(c,
                 {absl::StrCat("DELETE FROM measurement WHERE trial IN (SELECT id FROM trial WHERE id = ?1 AND ",
                               kTrialMayGo, ")"),
                  absl::StrCat("DELETE FROM trial WHERE id = ?1 AND ", kTrialMayGo)},
                 write.trials));
  CrashPoint("write.prune.trials");
  HONE_RETURN_IF_ERROR(RunForEach(c,
                                  {absl::StrCat("DELETE FROM measurement WHERE trial IN ", with_record),
                                   absl::StrCat("DELETE FROM trial WHERE id IN ", with_record),
                                   absl::StrCat("DELETE FROM model_choice WHERE record = ?1 AND ", kRecordMayGo),
                                   absl::StrCat("DELETE FROM object WHERE record = ?1 AND ", kRecordMayGo),
                                   absl::StrCat("DELETE FROM record WHERE id = ?1 AND ", kRecordMayGo)},
                                  write.records));
  CrashPoint("write.prune.records");
  known.traces.clear();
  return RunForEach(c,
                    {"DELETE FROM trace WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM trial WHERE trace = ?1) AND NOT "
                     "EXISTS (SELECT 1 FROM record WHERE trace = ?1)"},
                    write.traces);
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const LockRecord& write) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> insert,
                        c.Prepare("INSERT INTO locked_record SELECT r.id FROM record r JOIN tuning_key k ON k.id = "
                                  "r.key WHERE r.id = ?1 AND k.tenant = ?2 ON CONFLICT DO NOTHING"));
  insert->Int(write.record).Int(write.tenant);
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutTenant& write) {
  CrashPoint("write.tenant");
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> insert,
                        c.Prepare("INSERT INTO tenant VALUES (?, ?) ON CONFLICT DO NOTHING"));
  insert->Int(write.tenant.id).Text(write.tenant.name);
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutCostModel& write) {
  CrashPoint("write.cost_model");
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> insert,
      c.Prepare("INSERT INTO cost_model (tenant, device_class, kind, bytes, checksum) VALUES (?, (SELECT id FROM "
                "device_class WHERE name = ?), ?, ?, ?) ON CONFLICT (tenant, device_class, kind) DO UPDATE SET bytes = "
                "excluded.bytes, checksum = excluded.checksum"));
  insert->Int(write.tenant)
      .Text(write.device_class)
      .Text(write.kind)
      .Blob(write.bytes)
      .Blob(Digester().Add(write.bytes).Short());
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const PutChoice& write) {
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> insert,
      c.Prepare("INSERT INTO model_choice (record, model_hash, faster_default, checksum) SELECT ?1, ?2, ?3, ?4 WHERE "
                "EXISTS (SELECT 1 FROM record r JOIN tuning_key k ON k.id = r.key WHERE r.id = ?1 AND k.tenant = ?5) "
                "ON CONFLICT (record, model_hash) DO UPDATE SET faster_default = excluded.faster_default, checksum = "
                "excluded.checksum"));
  insert->Int(write.record).Blob(write.model_hash).Blob(write.faster_default);
  insert->Blob(ChecksumOfChoice(write.record, write.model_hash, write.faster_default)).Int(write.tenant);
  return insert->Run();
}

absl::Status Apply(SqlConnection& c, KnownRows& known, const CheckRecord& write) {
  CrashPoint("write.check");
  HONE_ASSIGN_OR_RETURN(std::optional<RecordRow> row, ReadRecordById(c, write.tenant, write.record));
  if (!row.has_value() || !row->MeasuredHere()) return absl::OkStatus();
  if (row->record.object_digest() == write.object_digest) {
    row->record.set_generator(write.generator);
  } else {
    row->origin = "stale";
    // Duels too: it has to win its place again.
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> drop,
                          c.Prepare("UPDATE trial SET state = 3 WHERE state = 2 AND (key, trace) = (SELECT key, trace "
                                    "FROM record WHERE id = ?)"));
    drop->Int(write.record);
    HONE_RETURN_IF_ERROR(drop->Run());
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> update,
                        c.Prepare("UPDATE record SET generator = ?, origin = ?, checksum = ? WHERE id = ?"));
  update->Text(row->record.generator()).Text(row->origin).Blob(ChecksumOf(*row)).Int(write.record);
  HONE_RETURN_IF_ERROR(update->Run());
  return ServeBest(c, write.record);
}

}  // namespace

absl::Status ApplyWrite(SqlConnection& connection, KnownRows& known, const Write& write) {
  return std::visit([&](const auto& w) { return Apply(connection, known, w); }, write);
}

}  // namespace hone
