// The reader of records, which come in files from anybody: any line gives a record or one message. What is accepted is
// written and reads back as the same record, and what an import makes of it is told apart from what was measured here.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/match.h"
#include "compiler/support/check.h"
#include "compiler/support/sha256.h"
#include "database/store/record_json.h"
#include "nlohmann/json.hpp"
#include "tests/database/memory_store.h"
#include "tests/fuzz/memory_limit.h"

namespace {

// The same line with the checksum that belongs to it, which no mutation would hit; as it was where it is no object.
std::string WithChecksum(std::string_view line) {
  nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::string(line);
  json.erase("checksum");
  const auto dump = [&] { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); };
  json["checksum"] = hone::ToHex(hone::Sha256(dump())).substr(0, 16);
  return dump();
}

void CheckLine(const std::string& line) {
  const auto record = hone::RecordFromJsonLine(line);
  if (!record.ok()) {
    HONE_CHECK(absl::IsInvalidArgument(record.status()) && !record.status().message().empty()) << record.status();
    return;
  }
  const std::string written = hone::ToJsonLine(*record);
  const auto again = hone::RecordFromJsonLine(written);
  HONE_CHECK(again.ok()) << again.status() << "\n" << written;
  HONE_CHECK(hone::ToJsonLine(*again) == written) << written;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckLine(std::string(text));
  const std::string line = WithChecksum(text);
  CheckLine(line);
  hone::MemoryStore store;
  const uint64_t epoch = *store.BeginEpoch();
  const auto plan = hone::PlanImport(store, hone::kLocalTenant, line);
  HONE_CHECK(plan.ok()) << plan.status();
  for (const hone::Write& write : plan->writes) {
    const hone::PutRecord* put = std::get_if<hone::PutRecord>(&write);
    HONE_CHECK(put == nullptr || (!put->row.MeasuredHere() && put->row.key.tenant == hone::kLocalTenant));
  }
  HONE_CHECK(store.Commit(epoch, plan->writes).ok());
  return 0;
}
