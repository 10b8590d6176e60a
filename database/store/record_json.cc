#include "database/store/record_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"
#include "proto/numeric_level.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr int kPage = 256;
constexpr size_t kLongestLine = size_t{64} << 20;
constexpr size_t kLongestCheck = 4096;

std::string Base64(const std::string& bytes) {
  std::string text;
  absl::Base64Escape(bytes, &text);
  return text;
}

// nlohmann::json keeps its keys sorted and prints the shortest digits that read back the same, so equal values have
// equal text whoever wrote them, with whatever white space.
std::string Checksum(const json& without_checksum) {
  return ToHex(Sha256(without_checksum.dump(-1, ' ', false, json::error_handler_t::replace))).substr(0, 16);
}

// Takes the fields of one line out, one by one, and keeps the first complaint.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}

  std::string Text(const char* name, bool required = true) {
    const json* value = Find(name, required);
    if (value == nullptr) return "";
    if (!value->is_string()) return Complain(name, "is not text"), "";
    return value->get<std::string>();
  }
  std::string Hex(const char* name, size_t bytes) {
    const std::string text = Text(name);
    if (!error_.empty()) return "";
    if (bytes != 0 && text.size() != 2 * bytes)
      return Complain(name, absl::StrCat("is not ", bytes, " bytes in hex")), "";
    if (text.size() % 2 != 0 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return Complain(name, "is not hex"), "";
    }
    return absl::HexStringToBytes(text);
  }
  std::string Blob(const char* name) {
    std::string bytes;
    if (!absl::Base64Unescape(Text(name, false), &bytes)) Complain(name, "is not base64");
    return bytes;
  }
  double Real(const char* name) {
    const json* value = Find(name, true);
    if (value == nullptr) return 0;
    if (!value->is_number()) return Complain(name, "is not a number"), 0;
    return value->get<double>();
  }
  int64_t Int(const char* name, int64_t low, int64_t high) {
    const json* value = Find(name, true);
    if (value == nullptr) return low;
    if (!value->is_number_integer()) return Complain(name, "is not an integer"), low;
    const int64_t number = value->get<int64_t>();
    if (number < low || number > high) return Complain(name, absl::StrCat("is outside ", low, "..", high)), low;
    return number;
  }
  void Complain(const std::string& name, const std::string& reason) {
    if (error_.empty()) error_ = absl::StrCat("\"", name, "\" ", reason);
  }
  absl::Status status() const { return error_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(error_); }

 private:
  const json* Find(const char* name, bool required) {
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    if (required) Complain(name, "is missing");
    return nullptr;
  }

  const json& object_;
  std::string error_;
};

// An object of numbers and texts; discarded where the line is none. What is nested has no place in a line, and would
// take as much stack as it is deep to be copied, compared or printed.
json ParseFlat(std::string_view text) {
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool flat = object.is_object() && std::ranges::none_of(object, [](const json& v) { return v.is_structured(); });
  return flat ? std::move(object) : json(json::value_t::discarded);
}

// nullopt for every other line.
std::optional<CheckRecord> CheckFromJsonLine(uint64_t tenant, std::string_view text) {
  if (text.substr(0, kLongestCheck).find("\"hone_check\"") == std::string_view::npos) return std::nullopt;
  const json object = ParseFlat(text);
  if (!object.is_object() || object.value("hone_check", json()) != kFormat) return std::nullopt;
  CheckRecord check{.tenant = tenant};
  Fields fields(object);
  const bool numbered = absl::SimpleAtoi(fields.Text("record"), &check.record);
  check.generator = fields.Text("generator");
  check.object_digest = fields.Hex("object_digest", 0);
  return numbered && fields.status().ok() ? std::optional(check) : std::nullopt;
}

// The fields of a line of a known format, whose checksum matches.
absl::StatusOr<json> CheckedObject(std::string_view text) {
  if (text.size() > kLongestLine) return absl::InvalidArgumentError("longer than 64 MiB");
  json object = ParseFlat(text);
  if (!object.is_object())
    return absl::InvalidArgumentError("not a JSON object of numbers and texts: torn or not a record");
  if (!object.contains("hone_record")) return absl::InvalidArgumentError("not a Hone record");
  if (object["hone_record"] != kFormat) {
    return absl::InvalidArgumentError("a record of a newer format than this program knows; use a newer Hone");
  }
  const json checksum = object.value("checksum", json());
  object.erase("checksum");
  if (!checksum.is_string() || checksum.get<std::string>() != Checksum(object)) {
    return absl::InvalidArgumentError("checksum does not match");
  }
  return object;
}

absl::StatusOr<RecordLine> ReadFields(const json& object) {
  Fields fields(object);
  RecordLine line;
  TuningKey& key = line.row.key;
  key.workload_hash = fields.Hex("workload", 32);
  key.device_class = fields.Text("device_class");
  key.threads = static_cast<int>(fields.Int("threads", 1, 1 << 16));
  const std::string numeric = fields.Text("numeric");
  key.numeric = NumericLevelOfName(numeric);
  if (key.numeric == v1::NUMERIC_LEVEL_UNSPECIFIED) fields.Complain("numeric", "is none of strict, default, bf16");
  key.protocol = static_cast<uint32_t>(fields.Int("protocol", 1, 1 << 16));
  line.workload.set_hash(key.workload_hash);
  line.workload.set_name(fields.Text("workload_name"));
  line.workload.set_text(fields.Text("workload_text"));
  line.workload.set_flop(fields.Real("flop"));
  line.workload.set_bytes(fields.Real("bytes"));
  v1::Record& r = line.row.record;
  r.set_target(fields.Text("target"));
  r.set_trace(fields.Text("trace"));
  r.set_median_us(fields.Real("median_us"));
  r.set_low_us(fields.Real("low_us"));
  r.set_high_us(fields.Real("high_us"));
  r.set_program_hash(fields.Hex("program_hash", 0));
  r.set_object_digest(fields.Hex("object_digest", 0));
  r.set_generator(fields.Text("generator"));
  r.set_driver(fields.Text("driver", /*required=*/false));
  r.set_created(fields.Text("created"));
  r.set_object(fields.Blob("object"));
  r.set_kernel_set(fields.Blob("kernel_set"));
  line.best = object.value("best", json(false)) == json(true);
  HONE_RETURN_IF_ERROR(fields.status());
  return line;
}

// What the types of the fields do not say: ranges, lengths and digests.
absl::Status CheckValues(const RecordLine& line) {
  const v1::Record& r = line.row.record;
  const TuningKey& key = line.row.key;
  if (!(std::isfinite(r.median_us()) && r.median_us() > 0)) {
    return absl::InvalidArgumentError("\"median_us\" is not a positive time");
  }
  if (key.device_class.empty()) return absl::InvalidArgumentError("\"device_class\" is empty");
  if (key.device_class.size() > kLongestName) {
    return absl::InvalidArgumentError(absl::StrCat("\"device_class\" has more than ", kLongestName, " bytes"));
  }
  if (Sha256(line.workload.text()) != key.workload_hash) {
    return absl::InvalidArgumentError("\"workload\" is not the digest of the workload's text");
  }
  if (!r.object().empty() && !r.object_digest().empty() && Sha256(r.object()) != r.object_digest()) {
    return absl::InvalidArgumentError("\"object\" does not have the digest stated");
  }
  return absl::OkStatus();
}

// Collects the writes of an import, line by line, beside what the store has already.
class ImportPlanner {
 public:
  ImportPlanner(TuningStore& store, uint64_t tenant, CheckLines checks)
      : store_(store), tenant_(tenant), checks_(checks) {}

  absl::Status ReadDeviceClasses() {
    HONE_ASSIGN_OR_RETURN(const StoredState state, store_.LoadState());
    for (const DeviceClassRow& row : state.device_classes) device_classes_.insert(row.name);
    return absl::OkStatus();
  }

  // A line that cannot be taken is refused in the plan; an error is the store's.
  absl::Status Add(std::string_view text, uint64_t number) {
    if (const std::optional<CheckRecord> check = CheckFromJsonLine(tenant_, text); check.has_value()) {
      AddCheck(*check, number);
      return absl::OkStatus();
    }
    absl::StatusOr<RecordLine> line = RecordFromJsonLine(text);
    if (!line.ok()) {
      Refuse(number, std::string(line.status().message()));
      return absl::OkStatus();
    }
    line->row.key.tenant = tenant_;
    line->row.record.set_id(RecordId(line->row.key, line->row.record.trace()));
    return AddRecord(*line);
  }

  ImportPlan Take() { return std::move(plan_); }

 private:
  struct Known {
    std::set<std::string> traces;
    bool has_best = false;
  };

  void Refuse(uint64_t number, const std::string& why) {
    plan_.refused.push_back(absl::StrCat("line ", number, ": ", why));
  }

  void AddCheck(const CheckRecord& check, uint64_t number) {
    if (checks_ == CheckLines::kTaken) {
      plan_.writes.push_back(check);
    } else {
      Refuse(number,
             "what another build makes of a record is an admin's to say; the daemon finds it out by itself while no "
             "job is open");
    }
  }

  // What is measured of the key, and what was added to the plan.
  absl::StatusOr<Known*> FindKnown(const TuningKey& key) {
    const auto [entry, is_new] = known_.try_emplace(key);
    if (is_new) {
      const absl::StatusOr<KeyHistory> history = store_.LoadHistory(key);
      if (!history.ok()) return history.status();
      entry->second.has_best = history->best_record != 0;
      for (const PastTrial& trial : history->trials) {
        if (trial.kind == v1::OUTCOME_OK) entry->second.traces.insert(trial.trace);
      }
    }
    return &entry->second;
  }

  absl::Status AddRecord(const RecordLine& line) {
    const TuningKey& key = line.row.key;
    const v1::Record& record = line.row.record;
    HONE_ASSIGN_OR_RETURN(Known* const known, FindKnown(key));
    if (!known->traces.insert(record.trace()).second) {
      plan_.duplicates += 1;
      return absl::OkStatus();
    }
    plan_.records += 1;
    plan_.writes.push_back(PutWorkload{line.workload});
    if (device_classes_.insert(key.device_class).second) {
      DeviceClassRow row{.name = key.device_class, .profile = {}};
      row.profile.set_device_class(key.device_class);
      row.profile.set_target(record.target());
      plan_.writes.push_back(PutDeviceClass{std::move(row)});
    }
    plan_.writes.push_back(PutRecord{line.row});
    if (line.best && !known->has_best) {
      known->has_best = true;
      plan_.writes.push_back(SetBest{key, record.id(), record.median_us()});
    }
    return absl::OkStatus();
  }

  TuningStore& store_;
  uint64_t tenant_;
  CheckLines checks_;
  ImportPlan plan_;
  std::set<std::string> device_classes_;
  std::map<TuningKey, Known> known_;
};

}  // namespace

std::string ToJsonLine(const RecordLine& line) {
  const v1::Record& r = line.row.record;
  const TuningKey& key = line.row.key;
  json object = {
      {"hone_record", kFormat},
      {"workload", ToHex(key.workload_hash)},
      {"workload_name", line.workload.name()},
      {"workload_text", line.workload.text()},
      {"flop", line.workload.flop()},
      {"bytes", line.workload.bytes()},
      {"device_class", key.device_class},
      {"target", r.target()},
      {"threads", key.threads},
      {"numeric", NumericLevelName(key.numeric)},
      {"protocol", key.protocol},
      {"trace", r.trace()},
      {"median_us", r.median_us()},
      {"low_us", r.low_us()},
      {"high_us", r.high_us()},
      {"program_hash", ToHex(r.program_hash())},
      {"object_digest", ToHex(r.object_digest())},
      {"generator", r.generator()},
      {"created", r.created()},
      {"best", line.best},
  };
  if (!r.driver().empty()) object["driver"] = r.driver();
  if (!r.object().empty()) {
    object["object"] = Base64(r.object());
    object["kernel_set"] = Base64(r.kernel_set());
  }
  const std::string checksum = Checksum(object);
  object["checksum"] = checksum;
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string ToJsonLine(const CheckRecord& check) {
  return json{{"hone_check", kFormat},
              {"record", std::to_string(check.record)},
              {"generator", check.generator},
              {"object_digest", ToHex(check.object_digest)}}
      .dump();
}

absl::StatusOr<RecordLine> RecordFromJsonLine(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(const json object, CheckedObject(text));
  HONE_ASSIGN_OR_RETURN(RecordLine line, ReadFields(object));
  HONE_RETURN_IF_ERROR(CheckValues(line));
  v1::Record& r = line.row.record;
  r.set_id(RecordId(line.row.key, r.trace()));
  line.row.origin = "imported";
  return line;
}

absl::StatusOr<int> ExportRecords(TuningStore& store, uint64_t tenant,
                                  const std::function<absl::Status(std::string)>& sink) {
  int corrupt = 0;
  RecordFilter filter;
  filter.limit = kPage;
  filter.with_objects = true;
  do {
    HONE_ASSIGN_OR_RETURN(const RecordPage page, store.Records(tenant, filter));
    std::string lines;
    for (size_t i = 0; i < page.rows.size(); ++i) {
      RecordLine line{.row = page.rows[i], .workload = {}, .best = page.best[i]};
      line.workload.set_name(line.row.record.workload_name());
      line.workload.set_text(line.row.record.workload_text());
      line.workload.set_flop(line.row.record.workload_flop());
      line.workload.set_bytes(line.row.record.workload_bytes());
      absl::StrAppend(&lines, ToJsonLine(line), "\n");
    }
    if (!lines.empty()) HONE_RETURN_IF_ERROR(sink(std::move(lines)));
    corrupt += page.corrupt;
    filter.after = page.last;
  } while (filter.after != 0);
  return corrupt;
}

absl::StatusOr<ImportPlan> PlanImport(TuningStore& store, uint64_t tenant, std::string_view text, uint64_t first_line,
                                      CheckLines checks) {
  ImportPlanner planner(store, tenant, checks);
  HONE_RETURN_IF_ERROR(planner.ReadDeviceClasses());
  for (uint64_t number = first_line; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    HONE_RETURN_IF_ERROR(planner.Add(line, number));
  }
  return planner.Take();
}

}  // namespace hone
