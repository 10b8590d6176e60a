#include "database/sql/reads.h"

#include <cstdint>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

// Nothing when the request cannot be read.
std::optional<JobRow> ReadJobRow(const SqlQuery& q) {
  JobRow row;
  row.id = q.GetInt(0);
  row.tenant = q.GetInt(1);
  if (!row.request.ParseFromString(q.GetText(3))) return std::nullopt;
  row.state = static_cast<v1::JobState>(q.GetInt(4));
  row.reason = q.GetText(5);
  row.device_class = q.GetText(6);
  row.threads = static_cast<int>(q.GetInt(7));
  row.protocol = static_cast<uint32_t>(q.GetInt(8));
  row.created = q.GetText(9);
  row.stop_requested = q.GetInt(10) != 0;
  row.seconds = q.GetReal(11);
  row.build_seconds = q.GetReal(12);
  row.verify_seconds = q.GetReal(13);
  row.measure_seconds = q.GetReal(14);
  row.busy_seconds = q.GetReal(15);
  row.judged_batches = q.GetInt(16);
  row.draft_first = q.GetReal(17);
  row.model_first = q.GetReal(18);
  return row;
}

FailureCounts ParseCounts(const std::string& text) {
  FailureCounts counts;
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return counts;
  for (const auto& [name, count] : json.items()) {
    if (count.is_number_integer()) counts[name] = count.get<int64_t>();
  }
  return counts;
}

absl::Status DamagedJob(const SqlConnection& c, uint64_t id) {
  return absl::DataLossError(absl::StrCat(c.name(), ": what job ", id, " asked for is damaged; submit it again"));
}

absl::Status ReadOpenJobs(SqlConnection& c, StoredState& state) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT * FROM job WHERE state IN (1, 2) ORDER BY id"));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) break;
    std::optional<JobRow> row = ReadJobRow(*q);
    if (row.has_value()) state.jobs.push_back(*std::move(row));
    state.corrupt += !row.has_value();
  }
  return absl::OkStatus();
}

// The tasks of the jobs that were read, and their workloads, each once.
absl::Status ReadTheirTasks(SqlConnection& c, StoredState& state) {
  for (const JobRow& job : state.jobs) {
    HONE_ASSIGN_OR_RETURN(std::vector<TaskRow> tasks, ReadTasks(c, job.tenant, job.id));
    for (TaskRow& task : tasks) state.tasks.push_back(std::move(task));
  }
  std::set<std::string> hashes;
  for (const TaskRow& task : state.tasks) {
    if (!hashes.insert(task.workload_hash).second) continue;
    HONE_ASSIGN_OR_RETURN(v1::Workload workload, ReadWorkload(c, task.workload_hash));
    state.workloads.push_back(std::move(workload));
  }
  return absl::OkStatus();
}

absl::Status ReadLeasedTrials(SqlConnection& c, StoredState& state) {
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> q,
      c.Prepare("SELECT l.id, k.tenant, w.hash, d.name, k.threads, k.numeric, k.protocol, l.task, t.text, l.source, "
                "l.duel, l.attempt, l.epoch, l.lost_workers, l.secret FROM trial l JOIN tuning_key k ON k.id = l.key "
                "JOIN workload w ON w.id = k.workload JOIN device_class d ON d.id = k.device_class "
                "JOIN trace t ON t.id = l.trace WHERE l.state = 1 ORDER BY l.id"));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) break;
    TrialRow row;
    row.id = q->GetInt(0);
    row.key.tenant = q->GetInt(1);
    row.key.workload_hash = q->GetText(2);
    row.key.device_class = q->GetText(3);
    row.key.threads = static_cast<int>(q->GetInt(4));
    row.key.numeric = static_cast<v1::NumericLevel>(q->GetInt(5));
    row.key.protocol = static_cast<uint32_t>(q->GetInt(6));
    row.task = q->GetInt(7);
    row.trace = q->GetText(8);
    row.source = q->GetText(9);
    row.duel = q->GetInt(10) != 0;
    row.attempt = static_cast<uint32_t>(q->GetInt(11));
    row.epoch = q->GetInt(12);
    row.lost_workers = static_cast<uint32_t>(q->GetInt(13));
    row.secret = q->GetText(14);
    state.leased.push_back(std::move(row));
  }
  return absl::OkStatus();
}

absl::Status ReadDeviceClasses(SqlConnection& c, StoredState& state) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT name, profile FROM device_class ORDER BY name"));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) break;
    DeviceClassRow row;
    row.name = q->GetText(0);
    if (!row.profile.ParseFromString(q->GetText(1))) {  // the next worker of that class states it again
      ++state.corrupt;
      continue;
    }
    state.device_classes.push_back(std::move(row));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StoredState> ReadState(SqlConnection& c) {
  StoredState state;
  HONE_ASSIGN_OR_RETURN(state.last_job, c.Number("SELECT max(id) FROM job"));
  HONE_ASSIGN_OR_RETURN(state.last_task, c.Number("SELECT max(id) FROM task"));
  HONE_ASSIGN_OR_RETURN(state.last_trial, c.Number("SELECT max(id) FROM trial"));
  HONE_RETURN_IF_ERROR(ReadOpenJobs(c, state));
  HONE_RETURN_IF_ERROR(ReadTheirTasks(c, state));
  HONE_RETURN_IF_ERROR(ReadLeasedTrials(c, state));
  HONE_RETURN_IF_ERROR(ReadDeviceClasses(c, state));
  return state;
}

absl::StatusOr<JobRow> ReadJob(SqlConnection& c, uint64_t tenant, uint64_t id) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q, c.Prepare("SELECT * FROM job WHERE tenant = ? AND id = ?"));
  q->Int(tenant).Int(id);
  HONE_ASSIGN_OR_RETURN(const bool row, q->Next());
  if (!row) return absl::NotFoundError(absl::StrCat("there is no job ", id));
  const std::optional<JobRow> job = ReadJobRow(*q);
  if (!job.has_value()) return DamagedJob(c, id);
  return *job;
}

absl::StatusOr<std::optional<uint64_t>> ReadJobByRequest(SqlConnection& c, uint64_t tenant,
                                                         const std::string& request_id) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT id FROM job WHERE tenant = ? AND request_id = ?"));
  q->Int(tenant).Text(request_id);
  HONE_ASSIGN_OR_RETURN(const bool row, q->Next());
  if (!row) return std::optional<uint64_t>();
  return std::optional<uint64_t>(q->GetInt(0));
}

absl::StatusOr<std::vector<TaskRow>> ReadTasks(SqlConnection& c, uint64_t tenant, uint64_t job) {
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> q,
      c.Prepare("SELECT k.id, k.job, k.position, w.hash, k.name, k.weight, k.flop, k.bytes, k.default_trace, "
                "k.trials, k.failed, k.default_us, k.best_us, k.lower_bound_us, k.record, k.state, "
                "k.least_flop "
                "FROM task k JOIN workload w ON w.id = k.workload JOIN job j ON j.id = k.job "
                "WHERE k.job = ? AND j.tenant = ? ORDER BY k.position"));
  q->Int(job).Int(tenant);
  std::vector<TaskRow> rows;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) return rows;
    TaskRow row;
    row.id = q->GetInt(0);
    row.job = q->GetInt(1);
    row.index = static_cast<int>(q->GetInt(2));
    row.workload_hash = q->GetText(3);
    row.name = q->GetText(4);
    row.weight = q->GetReal(5);
    row.flop = q->GetReal(6);
    row.bytes = q->GetReal(7);
    row.default_trace = q->GetText(8);
    row.trials = q->GetInt(9);
    row.failed = ParseCounts(q->GetText(10));
    row.default_us = q->GetReal(11);
    row.best_us = q->GetReal(12);
    row.lower_bound_us = q->GetReal(13);
    row.record = q->GetInt(14);
    row.state = q->GetText(15);
    row.least_flop = q->GetReal(16);
    rows.push_back(std::move(row));
  }
}

absl::StatusOr<std::string> ReadPlan(SqlConnection& c, uint64_t tenant, uint64_t job) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT p.bytes FROM plan p JOIN job j ON j.id = p.job "
                                  "WHERE p.job = ? AND j.tenant = ?"));
  q->Int(job).Int(tenant);
  HONE_ASSIGN_OR_RETURN(const bool row, q->Next());
  if (!row) return absl::NotFoundError(absl::StrCat("no plan of job ", job));
  return q->GetText(0);
}

absl::StatusOr<std::vector<JobRow>> ReadJobs(SqlConnection& c, uint64_t tenant, const JobFilter& filter) {
  // The index that begins with the tenant has no jobs in order: SQLite does not look at it for `+tenant`.
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT * FROM job WHERE +tenant = ? AND id > ? ORDER BY id LIMIT ?"));
  q->Int(tenant).Int(filter.after).Int(filter.limit > 0 ? filter.limit : std::numeric_limits<int32_t>::max());
  std::vector<JobRow> rows;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) return rows;
    std::optional<JobRow> row = ReadJobRow(*q);
    if (!row.has_value()) {  // listed all the same, with what can be read
      row.emplace();
      row->id = q->GetInt(0);
      row->tenant = tenant;
      row->state = v1::JOB_FAILED;
      row->reason = std::string(DamagedJob(c, row->id).message());
    }
    rows.push_back(*std::move(row));
  }
}

}  // namespace hone
