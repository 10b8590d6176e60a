// What a quota takes first.
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "database/sql/reads.h"

namespace hone {
namespace {

constexpr char kNotLatest[] = " AND id <> (SELECT max(id) FROM trial) ORDER BY id LIMIT ?";

// The query gives rows of (id, row of its trace).
absl::Status Take(SqlConnection& c, const std::string& sql, int limit, std::vector<uint64_t>& ids, Prune& prune) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> q, c.Prepare(sql));
  q->Int(limit);
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool more, q->Next());
    if (!more) return absl::OkStatus();
    ids.push_back(q->GetInt(0));
    prune.traces.push_back(q->GetInt(1));
  }
}

}  // namespace

absl::StatusOr<Prune> ReadFirstToPrune(SqlConnection& c, int limit) {
  Prune prune;
  const std::string failed = absl::StrCat("SELECT id, trace FROM trial WHERE (state = 3 OR (state = 2 AND kind <> ",
                                          int{v1::OUTCOME_OK}, "))", kNotLatest);
  HONE_RETURN_IF_ERROR(Take(c, failed, limit, prune.trials, prune));
  if (!prune.trials.empty()) return prune;
  // Where a key has no best record yet, none is far from it.
  HONE_RETURN_IF_ERROR(Take(
      c,
      "SELECT r.id, r.trace FROM record r LEFT JOIN best b ON b.key = r.key WHERE (b.record IS NULL OR b.record <> "
      "r.id) AND NOT EXISTS (SELECT 1 FROM locked_record l WHERE l.record = r.id) ORDER BY r.median_us / "
      "coalesce(b.median_us, r.median_us) DESC, r.position LIMIT ?",
      limit, prune.records, prune));
  if (!prune.records.empty()) return prune;
  HONE_RETURN_IF_ERROR(
      Take(c, absl::StrCat("SELECT id, trace FROM trial WHERE state = 2", kNotLatest), limit, prune.trials, prune));
  return prune;
}

}  // namespace hone
