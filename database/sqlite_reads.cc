#include "database/sqlite_reads.h"

#include <regex.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "database/checksum.h"
#include "database/sqlite_writes.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

// The columns of a record joined with its key, trace and workload; ReadRecord reads them in this order.
constexpr char kRecordColumns[] =
    "r.position, r.id, k.tenant, w.hash, d.name, k.threads, k.numeric, k.protocol, t.text, r.median_us, r.low_us, "
    "r.high_us, r.program_hash, r.object_digest, r.generator, r.target, r.created, r.origin, r.checksum, w.name, "
    "w.text, "
    "w.flop, w.bytes, coalesce(b.record = r.id, 0)";
constexpr int kNumRecordColumns = 24;
constexpr char kRecordTables[] =
    " FROM record r JOIN tuning_key k ON k.id = r.key JOIN workload w ON w.id = k.workload "
    "JOIN device_class d ON d.id = k.device_class JOIN trace t ON t.id = r.trace LEFT JOIN best b ON b.key = r.key ";

struct ReadRow {
  RecordRow row;
  uint64_t position = 0;
  bool best = false;
  bool intact = false;
};

ReadRow ReadRecord(const SqliteQuery& q) {
  ReadRow read;
  read.position = q.GetInt(0);
  v1::Record& r = read.row.record;
  TuningKey& key = read.row.key;
  r.set_id(q.GetInt(1));
  key.tenant = q.GetInt(2);
  key.workload_hash = q.GetText(3);
  key.device_class = q.GetText(4);
  key.threads = static_cast<int>(q.GetInt(5));
  key.numeric = static_cast<v1::NumericLevel>(q.GetInt(6));
  key.protocol = static_cast<uint32_t>(q.GetInt(7));
  r.set_trace(q.GetText(8));
  r.set_median_us(q.GetReal(9));
  r.set_low_us(q.GetReal(10));
  r.set_high_us(q.GetReal(11));
  r.set_program_hash(q.GetText(12));
  r.set_object_digest(q.GetText(13));
  r.set_generator(q.GetText(14));
  r.set_target(q.GetText(15));
  r.set_created(q.GetText(16));
  read.row.origin = q.GetText(17);
  r.set_workload_hash(key.workload_hash);
  r.set_workload_name(q.GetText(19));
  r.set_workload_text(q.GetText(20));
  r.set_workload_flop(q.GetReal(21));
  r.set_workload_bytes(q.GetReal(22));
  r.set_device_class(key.device_class);
  r.set_threads(key.threads);
  r.set_numeric(key.numeric);
  r.set_protocol(key.protocol);
  read.best = q.GetInt(23) != 0;
  read.intact = q.GetText(18) == ChecksumOf(read.row) && Sha256(r.workload_text()) == key.workload_hash;
  return read;
}

// The object of a record, when one is stored and whole; its absence is no error: the trace builds it again.
absl::Status AddObject(SqliteConnection& c, v1::Record& record, int* corrupt) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery query,
                        c.Prepare("SELECT object, kernel_set, checksum FROM object WHERE record = ?"));
  query.Int(record.id());
  HONE_ASSIGN_OR_RETURN(const bool row, query.Next());
  if (!row) return absl::OkStatus();
  if (query.GetText(2) != ChecksumOfObject(record.id(), query.GetText(0), query.GetText(1))) {
    ++*corrupt;
    return absl::OkStatus();
  }
  record.set_object(query.GetText(0));
  record.set_kernel_set(query.GetText(1));
  return absl::OkStatus();
}

// Nothing when the request cannot be read.
std::optional<JobRow> ReadJobRow(const SqliteQuery& q) {
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

absl::Status DamagedJob(const SqliteConnection& c, uint64_t id) {
  return absl::DataLossError(absl::StrCat(c.path(), ": what job ", id, " asked for is damaged; submit it again"));
}

// A POSIX regular expression that is freed; no expression matches everything.
class NameFilter {
 public:
  static absl::StatusOr<std::unique_ptr<NameFilter>> Make(const std::string& text) {
    auto filter = std::make_unique<NameFilter>();
    if (text.empty()) return filter;
    const int error = regcomp(&filter->regex_, text.c_str(), REG_EXTENDED | REG_NOSUB);
    if (error != 0) {
      char reason[128] = "";
      regerror(error, &filter->regex_, reason, sizeof(reason));
      return absl::InvalidArgumentError(absl::StrCat("the expression \"", text, "\" cannot be read: ", reason));
    }
    filter->set_ = true;
    return filter;
  }
  ~NameFilter() {
    if (set_) regfree(&regex_);
  }
  bool Matches(const std::string& name) const { return !set_ || regexec(&regex_, name.c_str(), 0, nullptr, 0) == 0; }

 private:
  regex_t regex_{};
  bool set_ = false;
};

}  // namespace

absl::StatusOr<StoredState> ReadState(SqliteConnection& c) {
  StoredState state;
  HONE_ASSIGN_OR_RETURN(state.last_job, c.Number("SELECT max(id) FROM job"));
  HONE_ASSIGN_OR_RETURN(state.last_task, c.Number("SELECT max(id) FROM task"));
  HONE_ASSIGN_OR_RETURN(state.last_trial, c.Number("SELECT max(id) FROM trial"));
  {
    HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare("SELECT * FROM job WHERE state IN (1, 2) ORDER BY id"));
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
      if (!more) break;
      std::optional<JobRow> row = ReadJobRow(q);
      if (row.has_value()) state.jobs.push_back(*std::move(row));
      state.corrupt += !row.has_value();
    }
  }
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
  {
    HONE_ASSIGN_OR_RETURN(
        SqliteQuery q,
        c.Prepare("SELECT l.id, k.tenant, w.hash, d.name, k.threads, k.numeric, k.protocol, l.task, t.text, l.source, "
                  "l.duel, l.attempt, l.epoch, l.lost_workers, l.secret FROM trial l JOIN tuning_key k ON k.id = l.key "
                  "JOIN workload w ON w.id = k.workload JOIN device_class d ON d.id = k.device_class "
                  "JOIN trace t ON t.id = l.trace WHERE l.state = 1 ORDER BY l.id"));
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
      if (!more) break;
      TrialRow row;
      row.id = q.GetInt(0);
      row.key.tenant = q.GetInt(1);
      row.key.workload_hash = q.GetText(2);
      row.key.device_class = q.GetText(3);
      row.key.threads = static_cast<int>(q.GetInt(4));
      row.key.numeric = static_cast<v1::NumericLevel>(q.GetInt(5));
      row.key.protocol = static_cast<uint32_t>(q.GetInt(6));
      row.task = q.GetInt(7);
      row.trace = q.GetText(8);
      row.source = q.GetText(9);
      row.duel = q.GetInt(10) != 0;
      row.attempt = static_cast<uint32_t>(q.GetInt(11));
      row.epoch = q.GetInt(12);
      row.lost_workers = static_cast<uint32_t>(q.GetInt(13));
      row.secret = q.GetText(14);
      state.leased.push_back(std::move(row));
    }
  }
  HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare("SELECT name, profile FROM device_class ORDER BY name"));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
    if (!more) break;
    DeviceClassRow row;
    row.name = q.GetText(0);
    if (!row.profile.ParseFromString(q.GetText(1))) {  // the next worker of that class states it again
      ++state.corrupt;
      continue;
    }
    state.device_classes.push_back(std::move(row));
  }
  return state;
}

absl::StatusOr<KeyHistory> ReadHistory(SqliteConnection& c, const TuningKey& key) {
  KeyHistory history;
  int64_t id = 0;
  {
    HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare("SELECT k.id FROM tuning_key k JOIN workload w ON w.id = k.workload "
                                                   "JOIN device_class d ON d.id = k.device_class WHERE w.hash = ? AND "
                                                   "d.name = ? AND threads = ? AND numeric = ? AND protocol = ? AND "
                                                   "tenant = ?"));
    q.Blob(key.workload_hash)
        .Text(key.device_class)
        .Int(key.threads)
        .Int(key.numeric)
        .Int(key.protocol)
        .Int(key.tenant);
    HONE_ASSIGN_OR_RETURN(const bool row, q.Next());
    if (row) id = q.GetInt(0);
  }
  {
    // Seeds for a key that may be new: the best of the same workload on other devices, threads, levels.
    HONE_ASSIGN_OR_RETURN(SqliteQuery q,
                          c.Prepare("SELECT DISTINCT t.text FROM best b JOIN tuning_key k ON k.id = b.key "
                                    "JOIN workload w ON w.id = k.workload JOIN record r ON r.id = b.record "
                                    "JOIN trace t ON t.id = r.trace WHERE w.hash = ? AND k.id <> ? AND k.tenant = ? "
                                    "ORDER BY b.key LIMIT 8"));
    q.Blob(key.workload_hash).Int(id).Int(key.tenant);
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
      if (!more) break;
      history.seeds.push_back(q.GetText(0));
    }
  }
  if (id == 0) return history;
  {
    HONE_ASSIGN_OR_RETURN(SqliteQuery q,
                          c.Prepare("SELECT t.text, l.kind, l.median_us FROM trial l JOIN trace t ON t.id = l.trace "
                                    "WHERE l.key = ? AND l.state = 2 AND l.duel = 0 ORDER BY l.ended"));
    q.Int(id);
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
      if (!more) break;
      history.trials.push_back({q.GetText(0), static_cast<v1::OutcomeKind>(q.GetInt(1)), q.GetReal(2)});
    }
  }
  {
    HONE_ASSIGN_OR_RETURN(
        SqliteQuery q,
        c.Prepare(absl::StrCat("SELECT ", kRecordColumns, kRecordTables,
                               "WHERE r.key = ? AND NOT EXISTS (SELECT 1 FROM trial l WHERE l.key = r.key "
                               "AND l.trace = r.trace AND l.state = 2 AND l.duel = 0) ORDER BY r.position")));
    q.Int(id);
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
      if (!more) break;
      const ReadRow read = ReadRecord(q);
      if (!read.intact) {
        ++history.corrupt;
        continue;
      }
      history.trials.push_back({read.row.record.trace(), v1::OUTCOME_OK, read.row.record.median_us(),
                                /*claimed=*/read.row.origin == "imported"});
    }
  }
  {
    HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare("SELECT t.text FROM trial l JOIN trace t ON t.id = l.trace "
                                                   "WHERE l.key = ? AND l.state = 2 AND l.duel = 1 ORDER BY l.ended"));
    q.Int(id);
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
      if (!more) break;
      history.duelled.push_back(q.GetText(0));
    }
  }
  HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare(absl::StrCat("SELECT ", kRecordColumns, ", b.median_us", kRecordTables,
                                                              "WHERE b.record = r.id AND r.key = ?")));
  q.Int(id);
  HONE_ASSIGN_OR_RETURN(const bool row, q.Next());
  if (!row) return history;
  const ReadRow best = ReadRecord(q);
  if (!best.intact) {
    ++history.corrupt;
    return history;
  }
  history.best_record = best.row.record.id();
  history.best_us = q.GetReal(kNumRecordColumns);
  history.best_trace = best.row.record.trace();
  history.best_claimed = best.row.origin == "imported";
  return history;
}

absl::StatusOr<std::string> ReadCostModel(SqliteConnection& c, uint64_t tenant, const std::string& device_class,
                                          const std::string& kind) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery q,
                        c.Prepare("SELECT m.bytes, m.checksum FROM cost_model m JOIN device_class d "
                                  "ON d.id = m.device_class WHERE m.tenant = ? AND d.name = ? AND m.kind = ?"));
  q.Int(tenant).Text(device_class).Text(kind);
  HONE_ASSIGN_OR_RETURN(const bool row, q.Next());
  if (!row || q.GetText(1) != Digester().Add(q.GetText(0)).Short()) {
    return absl::NotFoundError(absl::StrCat("no cost model \"", kind, "\" of ", device_class));
  }
  return q.GetText(0);
}

absl::StatusOr<v1::Workload> ReadWorkload(SqliteConnection& c, const std::string& hash) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare("SELECT name, text, flop, bytes FROM workload WHERE hash = ?"));
  q.Blob(hash);
  HONE_ASSIGN_OR_RETURN(const bool row, q.Next());
  if (!row) return absl::NotFoundError(absl::StrCat("no workload with hash ", ToHex(hash)));
  v1::Workload workload;
  workload.set_hash(hash);
  workload.set_name(q.GetText(0));
  workload.set_text(q.GetText(1));
  workload.set_flop(q.GetReal(2));
  workload.set_bytes(q.GetReal(3));
  if (Sha256(workload.text()) != hash) {
    return absl::DataLossError(absl::StrCat(c.path(), ": the text of workload ", ToHex(hash), " is damaged"));
  }
  return workload;
}

absl::StatusOr<JobRow> ReadJob(SqliteConnection& c, uint64_t tenant, uint64_t id) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare("SELECT * FROM job WHERE tenant = ? AND id = ?"));
  q.Int(tenant).Int(id);
  HONE_ASSIGN_OR_RETURN(const bool row, q.Next());
  if (!row) return absl::NotFoundError(absl::StrCat("there is no job ", id));
  const std::optional<JobRow> job = ReadJobRow(q);
  if (!job.has_value()) return DamagedJob(c, id);
  return *job;
}

absl::StatusOr<std::optional<uint64_t>> ReadJobByRequest(SqliteConnection& c, uint64_t tenant,
                                                         const std::string& request_id) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare("SELECT id FROM job WHERE tenant = ? AND request_id = ?"));
  q.Int(tenant).Text(request_id);
  HONE_ASSIGN_OR_RETURN(const bool row, q.Next());
  if (!row) return std::optional<uint64_t>();
  return std::optional<uint64_t>(q.GetInt(0));
}

absl::StatusOr<std::vector<TaskRow>> ReadTasks(SqliteConnection& c, uint64_t tenant, uint64_t job) {
  HONE_ASSIGN_OR_RETURN(
      SqliteQuery q,
      c.Prepare("SELECT k.id, k.job, k.position, w.hash, k.name, k.weight, k.flop, k.bytes, k.default_trace, "
                "k.trials, k.failed, k.default_us, k.best_us, k.lower_bound_us, k.record, k.state, "
                "k.least_flop "
                "FROM task k JOIN workload w ON w.id = k.workload JOIN job j ON j.id = k.job "
                "WHERE k.job = ? AND j.tenant = ? ORDER BY k.position"));
  q.Int(job).Int(tenant);
  std::vector<TaskRow> rows;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
    if (!more) return rows;
    TaskRow row;
    row.id = q.GetInt(0);
    row.job = q.GetInt(1);
    row.index = static_cast<int>(q.GetInt(2));
    row.workload_hash = q.GetText(3);
    row.name = q.GetText(4);
    row.weight = q.GetReal(5);
    row.flop = q.GetReal(6);
    row.bytes = q.GetReal(7);
    row.default_trace = q.GetText(8);
    row.trials = q.GetInt(9);
    row.failed = ParseCounts(q.GetText(10));
    row.default_us = q.GetReal(11);
    row.best_us = q.GetReal(12);
    row.lower_bound_us = q.GetReal(13);
    row.record = q.GetInt(14);
    row.state = q.GetText(15);
    row.least_flop = q.GetReal(16);
    rows.push_back(std::move(row));
  }
}

absl::StatusOr<std::string> ReadPlan(SqliteConnection& c, uint64_t tenant, uint64_t job) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare("SELECT p.bytes FROM plan p JOIN job j ON j.id = p.job "
                                                 "WHERE p.job = ? AND j.tenant = ?"));
  q.Int(job).Int(tenant);
  HONE_ASSIGN_OR_RETURN(const bool row, q.Next());
  if (!row) return absl::NotFoundError(absl::StrCat("no plan of job ", job));
  return q.GetText(0);
}

absl::StatusOr<std::vector<JobRow>> ReadJobs(SqliteConnection& c, uint64_t tenant) {
  HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare("SELECT * FROM job WHERE tenant = ? ORDER BY id"));
  q.Int(tenant);
  std::vector<JobRow> rows;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
    if (!more) return rows;
    std::optional<JobRow> row = ReadJobRow(q);
    if (!row.has_value()) {  // listed all the same, with what can be read
      row.emplace();
      row->id = q.GetInt(0);
      row->tenant = tenant;
      row->state = v1::JOB_FAILED;
      row->reason = std::string(DamagedJob(c, row->id).message());
    }
    rows.push_back(*std::move(row));
  }
}

// What PutChoice says of the record in the model.
absl::StatusOr<std::string> ReadFasterDefault(SqliteConnection& c, uint64_t record, const std::string& model_hash,
                                              int* corrupt) {
  HONE_ASSIGN_OR_RETURN(
      SqliteQuery q,
      c.Prepare("SELECT faster_default, checksum FROM model_choice WHERE record = ? AND model_hash = ?"));
  q.Int(record).Blob(model_hash);
  HONE_ASSIGN_OR_RETURN(const bool there, q.Next());
  if (!there) return std::string();
  std::string digest = q.GetText(0);
  if (q.GetText(1) == ChecksumOfChoice(record, model_hash, digest)) return digest;
  ++*corrupt;
  return std::string();
}

absl::StatusOr<std::optional<BestEntry>> ReadBest(SqliteConnection& c, uint64_t tenant, const v1::BestKey& key,
                                                  int* corrupt) {
  std::string device_class = key.device_class();
  if (device_class.empty()) {
    HONE_ASSIGN_OR_RETURN(SqliteQuery q,
                          c.Prepare("SELECT name FROM device_class WHERE id IN (SELECT device_class FROM "
                                    "tuning_key WHERE tenant = ?) ORDER BY id LIMIT 2"));
    q.Int(tenant);
    HONE_ASSIGN_OR_RETURN(const bool one, q.Next());
    if (!one) return std::optional<BestEntry>();
    device_class = q.GetText(0);
    HONE_ASSIGN_OR_RETURN(const bool two, q.Next());
    if (two) return std::optional<BestEntry>();
  }
  // Levels are ordered from strict to loose, so a smaller one is always allowed.
  HONE_ASSIGN_OR_RETURN(SqliteQuery q,
                        c.Prepare(absl::StrCat("SELECT ", kRecordColumns, kRecordTables,
                                               "WHERE b.record = r.id AND w.hash = ? AND d.name = ? AND k.tenant = ? "
                                               "AND k.numeric <= ?")));
  q.Blob(key.workload_hash()).Text(device_class).Int(tenant).Int(key.numeric());
  std::optional<ReadRow> best;
  const auto rank = [&key](const ReadRow& r) {
    return std::tuple(std::abs(int64_t{r.row.key.threads} - key.threads()), -int64_t{r.row.key.threads},
                      key.numeric() - r.row.key.numeric, -int64_t{r.row.key.protocol}, r.row.record.median_us());
  };
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
    if (!more) break;
    ReadRow read = ReadRecord(q);
    if (!read.intact) {
      ++*corrupt;
      continue;
    }
    if (!best.has_value() || rank(read) < rank(*best)) best = std::move(read);
  }
  if (!best.has_value()) return std::optional<BestEntry>();
  const bool exact = best->row.key.threads == key.threads() && best->row.key.numeric == key.numeric();
  HONE_ASSIGN_OR_RETURN(std::string faster_default,
                        ReadFasterDefault(c, best->row.record.id(), key.model_hash(), corrupt));
  return std::optional<BestEntry>(BestEntry{std::move(best->row), exact, std::move(faster_default)});
}

absl::StatusOr<RecordPage> ReadRecords(SqliteConnection& c, uint64_t tenant, const RecordFilter& filter) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<NameFilter> names, NameFilter::Make(filter.workload_regex));
  RecordPage page;
  HONE_ASSIGN_OR_RETURN(SqliteQuery q, c.Prepare(absl::StrCat("SELECT ", kRecordColumns, kRecordTables,
                                                              "WHERE k.tenant = ? AND r.position > ? AND "
                                                              "(? = 0 OR b.record = r.id) ORDER BY r.position")));
  q.Int(tenant).Int(filter.after).Int(filter.best_only);
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q.Next());
    if (!more) {
      page.last = 0;
      return page;
    }
    ReadRow read = ReadRecord(q);
    page.last = read.position;
    if (!read.intact) {
      ++page.corrupt;
    } else if (names->Matches(read.row.record.workload_name())) {
      if (filter.with_objects) HONE_RETURN_IF_ERROR(AddObject(c, read.row.record, &page.corrupt));
      page.rows.push_back(std::move(read.row));
      page.best.push_back(read.best);
    }
    if (filter.limit > 0 && static_cast<int>(page.rows.size()) >= filter.limit) return page;
  }
}

}  // namespace hone
