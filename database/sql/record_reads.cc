#include "database/sql/reads.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "database/sql/row_checksums.h"
#include "database/store/checksum.h"
#include "database/store/name_filter.h"

namespace hone {
namespace {

// The columns of a record joined with its key, trace and workload; ReadRecord reads them in this order.
constexpr char kRecordColumns[] =
    "r.position, r.id, k.tenant, w.hash, d.name, k.threads, k.numeric, k.protocol, t.text, r.median_us, r.low_us, "
    "r.high_us, r.program_hash, r.object_digest, r.generator, r.target, r.created, r.origin, r.checksum, w.name, "
    "w.text, "
    "w.flop, w.bytes, CASE WHEN b.record = r.id THEN 1 ELSE 0 END, r.driver";
constexpr int kNumRecordColumns = 25;
constexpr char kRecordTables[] =
    " FROM record r JOIN tuning_key k ON k.id = r.key JOIN workload w ON w.id = k.workload "
    "JOIN device_class d ON d.id = k.device_class JOIN trace t ON t.id = r.trace LEFT JOIN best b ON b.key = r.key ";

struct ReadRow {
  RecordRow row;
  uint64_t position = 0;
  bool best = false;
  bool intact = false;
};

void SetKey(const TuningKey& key, v1::Record& r) {
  r.set_workload_hash(key.workload_hash);
  r.set_device_class(key.device_class);
  r.set_threads(key.threads);
  r.set_numeric(key.numeric);
  r.set_protocol(key.protocol);
}

// What was measured and of what, in the columns from `first` on: trace, median_us, low_us, high_us, program_hash,
// object_digest, generator, target, created, origin.
void ReadMeasured(const SqlQuery& q, int first, RecordRow& row) {
  v1::Record& r = row.record;
  r.set_trace(q.GetText(first));
  r.set_median_us(q.GetReal(first + 1));
  r.set_low_us(q.GetReal(first + 2));
  r.set_high_us(q.GetReal(first + 3));
  r.set_program_hash(q.GetText(first + 4));
  r.set_object_digest(q.GetText(first + 5));
  r.set_generator(q.GetText(first + 6));
  r.set_target(q.GetText(first + 7));
  r.set_created(q.GetText(first + 8));
  row.origin = q.GetText(first + 9);
}

ReadRow ReadRecord(const SqlQuery& q) {
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
  ReadMeasured(q, 8, read.row);
  r.set_workload_name(q.GetText(19));
  r.set_workload_text(q.GetText(20));
  r.set_workload_flop(q.GetReal(21));
  r.set_workload_bytes(q.GetReal(22));
  SetKey(key, r);
  read.best = q.GetInt(23) != 0;
  r.set_driver(q.GetText(24));
  read.intact = q.GetText(18) == ChecksumOf(read.row) && Sha256(r.workload_text()) == key.workload_hash;
  return read;
}

// The columns of the record that a key is answered with; ReadServed and IsChoiceIntact read them in this order.
constexpr char kServedColumns[] =
    "s.id, k.threads, k.numeric, k.protocol, s.trace, s.median_us, s.low_us, s.high_us, s.program_hash, "
    "s.object_digest, s.generator, s.target, s.created, s.origin, s.checksum, m.faster_default, m.checksum, s.driver";
constexpr char kServedTables[] =
    " FROM workload w JOIN tuning_key k ON k.workload = w.id JOIN device_class d ON d.id = k.device_class "
    "JOIN served s ON s.key = k.id LEFT JOIN model_choice m ON m.record = s.id ";

// The device class of all the tenant's keys; nullopt where there is none, or more than one.
absl::StatusOr<std::optional<std::string>> ReadOnlyDeviceClass(SqlConnection& c, uint64_t tenant) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT d.name FROM device_class d WHERE EXISTS (SELECT 1 FROM tuning_key k WHERE "
                                  "k.tenant = ? AND k.device_class = d.id) ORDER BY d.id LIMIT 2"));
  q->Int(tenant);
  HONE_ASSIGN_OR_RETURN(const bool one, q->Next());
  if (!one) return std::optional<std::string>();
  std::string name = q->GetText(0);
  HONE_ASSIGN_OR_RETURN(const bool two, q->Next());
  return two ? std::nullopt : std::optional<std::string>(std::move(name));
}

// The record in a row, of whose key `key` has what was asked for; nullopt when its checksum does not match.
std::optional<BestEntry> ReadServed(const SqlQuery& q, TuningKey key) {
  key.threads = static_cast<int>(q.GetInt(1));
  key.numeric = static_cast<v1::NumericLevel>(q.GetInt(2));
  key.protocol = static_cast<uint32_t>(q.GetInt(3));
  BestEntry entry;
  v1::Record& r = entry.row.record;
  SetKey(key, r);
  entry.row.key = std::move(key);
  r.set_id(q.GetInt(0));
  ReadMeasured(q, 4, entry.row);
  r.set_driver(q.GetText(17));
  if (q.GetText(14) != ChecksumOf(entry.row)) return std::nullopt;
  entry.faster_default = q.GetText(15);
  return entry;
}

// Whether what the row says of the record in a model is whole, or nothing.
bool IsChoiceIntact(const SqlQuery& q, const BestEntry& entry, const std::string& model_hash) {
  const std::string checksum = q.GetText(16);  // empty: there is no choice
  return checksum.empty() || checksum == ChecksumOfChoice(entry.row.record.id(), model_hash, entry.faster_default);
}

// The object of a record, when one is stored and whole; its absence is no error: the trace builds it again.
absl::Status AddObject(SqlConnection& c, v1::Record& record, int* corrupt) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> query,
                        c.Prepare("SELECT object, kernel_set, checksum FROM object WHERE record = ?"));
  query->Int(record.id());
  HONE_ASSIGN_OR_RETURN(const bool row, query->Next());
  if (!row) return absl::OkStatus();
  if (query->GetText(2) != ChecksumOfObject(record.id(), query->GetText(0), query->GetText(1))) {
    ++*corrupt;
    return absl::OkStatus();
  }
  record.set_object(query->GetText(0));
  record.set_kernel_set(query->GetText(1));
  return absl::OkStatus();
}

// The number of the key; 0 when it is new.
absl::StatusOr<int64_t> FindKey(SqlConnection& c, const TuningKey& key) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT k.id FROM tuning_key k JOIN workload w ON w.id = k.workload "
                                  "JOIN device_class d ON d.id = k.device_class WHERE w.hash = ? AND "
                                  "d.name = ? AND threads = ? AND numeric = ? AND protocol = ? AND "
                                  "tenant = ?"));
  q->Blob(key.workload_hash).Text(key.device_class).Int(key.threads).Int(key.numeric).Int(key.protocol).Int(key.tenant);
  HONE_ASSIGN_OR_RETURN(const bool row, q->Next());
  return row ? q->GetInt(0) : 0;
}

// Seeds for a key that may be new: the best of the same workload on other devices, threads, levels.
absl::Status ReadSeeds(SqlConnection& c, const TuningKey& key, int64_t id, KeyHistory& history) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT t.text FROM best b JOIN tuning_key k ON k.id = b.key "
                                  "JOIN workload w ON w.id = k.workload JOIN record r ON r.id = b.record "
                                  "JOIN trace t ON t.id = r.trace WHERE w.hash = ? AND k.id <> ? AND k.tenant = ? "
                                  "GROUP BY t.text ORDER BY min(b.key) LIMIT 8"));
  q->Blob(key.workload_hash).Int(id).Int(key.tenant);
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) break;
    history.seeds.push_back(q->GetText(0));
  }
  return absl::OkStatus();
}

absl::Status ReadTrials(SqlConnection& c, int64_t id, KeyHistory& history) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT t.text, l.kind, l.median_us, coalesce(m.worker, '') FROM trial l "
                                  "JOIN trace t ON t.id = l.trace "
                                  "LEFT JOIN measurement m ON m.trial = l.id AND m.attempt = l.attempt "
                                  "WHERE l.key = ? AND l.state = 2 AND l.duel = 0 ORDER BY l.ended"));
  q->Int(id);
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) break;
    history.trials.push_back({.trace = q->GetText(0),
                              .kind = static_cast<v1::OutcomeKind>(q->GetInt(1)),
                              .median_us = q->GetReal(2),
                              .worker = q->GetText(3)});
  }
  return absl::OkStatus();
}

// Records that no trial of this database tells of: they were brought in, or the trial has left.
absl::Status ReadOtherRecords(SqlConnection& c, int64_t id, KeyHistory& history) {
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> q,
      c.Prepare(absl::StrCat("SELECT ", kRecordColumns, kRecordTables,
                             "WHERE r.key = ? AND NOT EXISTS (SELECT 1 FROM trial l WHERE l.key = r.key "
                             "AND l.trace = r.trace AND l.state = 2 AND l.duel = 0) ORDER BY r.position")));
  q->Int(id);
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) break;
    const ReadRow read = ReadRecord(*q);
    if (!read.intact) {
      ++history.corrupt;
      continue;
    }
    history.trials.push_back({.trace = read.row.record.trace(),
                              .kind = v1::OUTCOME_OK,
                              .median_us = read.row.record.median_us(),
                              .claimed = !read.row.MeasuredHere()});
  }
  return absl::OkStatus();
}

absl::Status ReadDuels(SqlConnection& c, int64_t id, KeyHistory& history) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT t.text FROM trial l JOIN trace t ON t.id = l.trace "
                                  "WHERE l.key = ? AND l.state = 2 AND l.duel = 1 ORDER BY l.ended"));
  q->Int(id);
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) break;
    history.duelled.push_back(q->GetText(0));
  }
  return absl::OkStatus();
}

absl::Status ReadBestOf(SqlConnection& c, int64_t id, KeyHistory& history) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare(absl::StrCat("SELECT ", kRecordColumns, ", b.median_us", kRecordTables,
                                               "WHERE b.record = r.id AND r.key = ?")));
  q->Int(id);
  HONE_ASSIGN_OR_RETURN(const bool row, q->Next());
  if (!row) return absl::OkStatus();
  const ReadRow best = ReadRecord(*q);
  if (!best.intact) {
    ++history.corrupt;
    return absl::OkStatus();
  }
  history.best_record = best.row.record.id();
  history.best_us = q->GetReal(kNumRecordColumns);
  history.best_trace = best.row.record.trace();
  history.best_claimed = !best.row.MeasuredHere();
  history.best_generator = best.row.record.generator();
  history.best_driver = best.row.record.driver();
  history.best_digest = best.row.record.object_digest();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KeyHistory> ReadHistory(SqlConnection& c, const TuningKey& key) {
  KeyHistory history;
  HONE_ASSIGN_OR_RETURN(const int64_t id, FindKey(c, key));
  HONE_RETURN_IF_ERROR(ReadSeeds(c, key, id, history));
  if (id == 0) return history;
  HONE_RETURN_IF_ERROR(ReadTrials(c, id, history));
  HONE_RETURN_IF_ERROR(ReadOtherRecords(c, id, history));
  HONE_RETURN_IF_ERROR(ReadDuels(c, id, history));
  HONE_RETURN_IF_ERROR(ReadBestOf(c, id, history));
  return history;
}

absl::StatusOr<OutdatedPage> ReadOutdated(SqlConnection& c, const OutdatedFilter& filter) {
  OutdatedPage page;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> seen,
                        c.Prepare("SELECT count(*), max(id) FROM (SELECT id FROM tuning_key WHERE id > ? ORDER BY id "
                                  "LIMIT ?) AS page"));
  seen->Int(filter.after).Int(filter.keys);
  HONE_ASSIGN_OR_RETURN(const bool any, seen->Next());
  if (!any || seen->GetInt(0) == 0) return page;
  const int64_t last = seen->GetInt(1);
  if (seen->GetInt(0) == filter.keys) page.last = last;
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> q,
      c.Prepare(
          "SELECT k.tenant, w.hash, k.threads, k.numeric, w.name, w.text, w.flop, w.bytes FROM tuning_key k "
          "JOIN served s ON s.key = k.id JOIN workload w ON w.id = k.workload JOIN device_class d ON d.id = "
          "k.device_class WHERE k.id > ? AND k.id <= ? AND d.name = ? AND k.protocol = ? AND k.threads <= ? AND "
          "(? = 1 OR k.tenant = ?) AND s.origin = 'tuned' AND (s.generator <> ? OR s.driver <> ?) ORDER BY k.id"));
  q->Int(filter.after).Int(last).Text(filter.device_class).Int(filter.protocol).Int(filter.most_threads);
  q->Int(filter.tenant == kAllTenants).Int(filter.tenant == kAllTenants ? 0 : filter.tenant);
  q->Text(filter.generator).Text(filter.driver);
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) return page;
    OutdatedRecord& outdated = page.records.emplace_back();
    outdated.key = {.tenant = static_cast<uint64_t>(q->GetInt(0)),
                    .workload_hash = q->GetText(1),
                    .device_class = filter.device_class,
                    .threads = static_cast<int>(q->GetInt(2)),
                    .numeric = static_cast<v1::NumericLevel>(q->GetInt(3)),
                    .protocol = filter.protocol};
    outdated.workload.set_hash(q->GetText(1));
    outdated.workload.set_name(q->GetText(4));
    outdated.workload.set_text(q->GetText(5));
    outdated.workload.set_flop(q->GetReal(6));
    outdated.workload.set_bytes(q->GetReal(7));
    // What cannot be read as what it says it is, is no workload to measure.
    if (Sha256(outdated.workload.text()) != outdated.key.workload_hash) page.records.pop_back();
  }
}

absl::StatusOr<std::string> ReadCostModel(SqlConnection& c, uint64_t tenant, const std::string& device_class,
                                          const std::string& kind) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT m.bytes, m.checksum FROM cost_model m JOIN device_class d "
                                  "ON d.id = m.device_class WHERE m.tenant = ? AND d.name = ? AND m.kind = ?"));
  q->Int(tenant).Text(device_class).Text(kind);
  HONE_ASSIGN_OR_RETURN(const bool row, q->Next());
  if (!row || q->GetText(1) != Digester().Add(q->GetText(0)).Short()) {
    return absl::NotFoundError(absl::StrCat("no cost model \"", kind, "\" of ", device_class));
  }
  return q->GetText(0);
}

absl::StatusOr<v1::Workload> ReadWorkload(SqlConnection& c, const std::string& hash) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                        c.Prepare("SELECT name, text, flop, bytes FROM workload WHERE hash = ?"));
  q->Blob(hash);
  HONE_ASSIGN_OR_RETURN(const bool row, q->Next());
  if (!row) return absl::NotFoundError(absl::StrCat("no workload with hash ", ToHex(hash)));
  v1::Workload workload;
  workload.set_hash(hash);
  workload.set_name(q->GetText(0));
  workload.set_text(q->GetText(1));
  workload.set_flop(q->GetReal(2));
  workload.set_bytes(q->GetReal(3));
  if (Sha256(workload.text()) != hash) {
    return absl::DataLossError(absl::StrCat(c.name(), ": the text of workload ", ToHex(hash), " is damaged"));
  }
  return workload;
}

absl::StatusOr<std::optional<BestEntry>> ReadBest(SqlConnection& c, uint64_t tenant, const v1::BestKey& key,
                                                  int* corrupt) {
  std::string device_class = key.device_class();
  if (device_class.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::optional<std::string> only, ReadOnlyDeviceClass(c, tenant));
    if (!only.has_value()) return std::optional<BestEntry>();
    device_class = *only;
  }
  // Levels are ordered from strict to loose, so a smaller one is always allowed. What follows is the order of those
  // that may answer: the first that is whole does.
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> q,
      c.Prepare(absl::StrCat("SELECT ", kServedColumns, kServedTables,
                             "AND m.model_hash = ?1 WHERE w.hash = ?2 AND d.name = ?3 AND k.tenant = ?4 AND k.numeric "
                             "<= ?5 ORDER BY abs(k.threads - ?6), k.threads DESC, k.numeric DESC, k.protocol DESC")));
  q->Blob(key.model_hash()).Blob(key.workload_hash()).Text(device_class).Int(tenant);
  q->Int(key.numeric()).Int(key.threads());
  TuningKey of{.tenant = tenant, .workload_hash = key.workload_hash(), .device_class = device_class};
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) return std::optional<BestEntry>();
    std::optional<BestEntry> entry = ReadServed(*q, of);
    if (!entry.has_value()) {
      ++*corrupt;
      continue;
    }
    const TuningKey& found = entry->row.key;
    entry->exact = found.threads == key.threads() && found.numeric == key.numeric();
    if (!IsChoiceIntact(*q, *entry, key.model_hash())) {
      ++*corrupt;
      entry->faster_default.clear();
    }
    return entry;
  }
}

absl::StatusOr<std::optional<RecordRow>> ReadRecordById(SqlConnection& c, uint64_t tenant, uint64_t id) {
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqlQuery> q,
      c.Prepare(absl::StrCat("SELECT ", kRecordColumns, kRecordTables, "WHERE r.id = ? AND k.tenant = ?")));
  q->Int(id).Int(tenant);
  HONE_ASSIGN_OR_RETURN(const bool row, q->Next());
  if (!row) return std::optional<RecordRow>();
  ReadRow read = ReadRecord(*q);
  return read.intact ? std::optional<RecordRow>(std::move(read.row)) : std::nullopt;
}

absl::StatusOr<RecordPage> ReadRecords(SqlConnection& c, uint64_t tenant, const RecordFilter& filter) {
  HONE_ASSIGN_OR_RETURN(const NameFilter names, NameFilter::Make(filter.workload_regex));
  constexpr int kAtOnce = 256;  // rows that a query brings: a backend may hold all of them in memory
  RecordPage page;
  for (uint64_t after = filter.after;;) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q,
                          c.Prepare(absl::StrCat("SELECT ", kRecordColumns, kRecordTables,
                                                 "WHERE k.tenant = ? AND r.position > ? AND (? = 0 OR b.record = r.id) "
                                                 "ORDER BY r.position LIMIT ?")));
    q->Int(tenant).Int(after).Int(filter.best_only).Int(kAtOnce);
    int seen = 0;
    for (;; ++seen) {
      HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
      if (!more) break;
      ReadRow read = ReadRecord(*q);
      after = page.last = read.position;
      if (!read.intact) {
        ++page.corrupt;
      } else if (names.Matches(read.row.record.workload_name())) {
        if (filter.with_objects) HONE_RETURN_IF_ERROR(AddObject(c, read.row.record, &page.corrupt));
        page.rows.push_back(std::move(read.row));
        page.best.push_back(read.best);
      }
      if (filter.limit > 0 && static_cast<int>(page.rows.size()) >= filter.limit) return page;
    }
    if (seen < kAtOnce) break;
  }
  page.last = 0;
  return page;
}

}  // namespace hone
