// Records as JSON lines, the form in which they leave and enter a database: one record a line, each with a checksum
// over everything else in it, so that a torn or edited line is refused and the others are not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "database/store/store.h"

namespace hone {

struct RecordLine {
  RecordRow row;
  v1::Workload workload;
  bool best = false;
};
std::string ToJsonLine(const RecordLine& line);                        // without the line feed
absl::StatusOr<RecordLine> RecordFromJsonLine(std::string_view line);  // InvalidArgument says what is wrong

// Every record of the tenant, page by page: whole lines, each with its line feed. Returns how many rows were left out
// because their checksums do not match.
absl::StatusOr<int> ExportRecords(TuningStore& store, uint64_t tenant,
                                  const std::function<absl::Status(std::string lines)>& sink);

std::string ToJsonLine(const CheckRecord& check);

// The writes that bring lines into a database, as claims: their times and their verification are somebody's word until
// the next job on that key has measured them here. A best record of the file becomes the key's best where the database
// has none yet; where it has one, the record is kept beside it, to be tried again by the next job on that key.
// A line may also say what a generator makes of a record that is there (CheckRecord); such lines are not counted.
// Unlike claims they change what was measured here: they are refused from whom that is not up to.
enum class CheckLines { kTaken, kRefused };
struct ImportPlan {
  std::vector<Write> writes;
  uint64_t records = 0;
  uint64_t duplicates = 0;
  std::vector<std::string> refused;  // "line 17: checksum does not match"
};
// Reads `text` line by line, numbered from `first_line`; empty lines are skipped. Pieces must end at a line's end.
absl::StatusOr<ImportPlan> PlanImport(TuningStore& store, uint64_t tenant, std::string_view text,
                                      uint64_t first_line = 1, CheckLines checks = CheckLines::kTaken);

}  // namespace hone
