#include "database/sql/migrations.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Version 1. Tenant and numeric level are part of every key from the start. Texts that repeat (traces) are stored once.
// `checksum` is over all other columns of its row, as the store computes it: a row whose bits changed is not served.
constexpr char kFirstSchema[] = R"sql(
CREATE TABLE migration (version INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL) STRICT;
CREATE TABLE term (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL) STRICT;
INSERT INTO term VALUES (1, 0);
CREATE TABLE tenant (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO tenant VALUES (1, 'local');

CREATE TABLE workload (
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  flop REAL NOT NULL,
  bytes REAL NOT NULL
) STRICT;

CREATE TABLE device_class (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  profile BLOB NOT NULL
) STRICT;

CREATE TABLE tuning_key (
  id INTEGER PRIMARY KEY,
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  visibility TEXT NOT NULL DEFAULT 'tenant',
  workload INTEGER NOT NULL REFERENCES workload (id),
  device_class INTEGER NOT NULL REFERENCES device_class (id),
  threads INTEGER NOT NULL,
  numeric INTEGER NOT NULL,
  protocol INTEGER NOT NULL,
  UNIQUE (workload, device_class, threads, numeric, protocol, tenant)
) STRICT;

CREATE TABLE trace (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  text TEXT NOT NULL
) STRICT;

CREATE TABLE job (
  id INTEGER PRIMARY KEY,
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  request_id TEXT NOT NULL,
  request BLOB NOT NULL,
  state INTEGER NOT NULL,
  reason TEXT NOT NULL,
  device_class TEXT NOT NULL,
  threads INTEGER NOT NULL,
  protocol INTEGER NOT NULL,
  created TEXT NOT NULL,
  stop_requested INTEGER NOT NULL,
  seconds REAL NOT NULL,
  build_seconds REAL NOT NULL,
  verify_seconds REAL NOT NULL,
  measure_seconds REAL NOT NULL,
  busy_seconds REAL NOT NULL,
  UNIQUE (tenant, request_id)
) STRICT;
CREATE INDEX open_job ON job (id) WHERE state IN (1, 2);

CREATE TABLE plan (
  job INTEGER PRIMARY KEY REFERENCES job (id),
  model_hash BLOB NOT NULL,
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE task (
  id INTEGER PRIMARY KEY,
  job INTEGER NOT NULL REFERENCES job (id),
  position INTEGER NOT NULL,
  workload INTEGER NOT NULL REFERENCES workload (id),
  name TEXT NOT NULL,
  weight REAL NOT NULL,
  flop REAL NOT NULL,
  bytes REAL NOT NULL,
  default_trace TEXT NOT NULL,
  trials INTEGER NOT NULL,
  failed TEXT NOT NULL,
  default_us REAL NOT NULL,
  best_us REAL NOT NULL,
  lower_bound_us REAL NOT NULL,
  record INTEGER NOT NULL,
  state TEXT NOT NULL,
  UNIQUE (job, position)
) STRICT;

CREATE TABLE trial (
  id INTEGER PRIMARY KEY,
  key INTEGER NOT NULL REFERENCES tuning_key (id),
  task INTEGER NOT NULL REFERENCES task (id),
  trace INTEGER NOT NULL REFERENCES trace (id),
  source TEXT NOT NULL,
  duel INTEGER NOT NULL,
  state INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  lost_workers INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  median_us REAL NOT NULL,
  ended INTEGER
) STRICT;
CREATE UNIQUE INDEX trial_once ON trial (key, trace) WHERE duel = 0 AND state <> 3;
CREATE INDEX trial_leased ON trial (id) WHERE state = 1;
CREATE INDEX trial_ended ON trial (key, ended) WHERE state = 2;

CREATE TABLE measurement (
  id INTEGER PRIMARY KEY,
  trial INTEGER NOT NULL REFERENCES trial (id),
  attempt INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  worker TEXT NOT NULL,
  outcome BLOB NOT NULL,
  checksum BLOB NOT NULL,
  UNIQUE (trial, attempt)
) STRICT;

CREATE TABLE record (
  position INTEGER PRIMARY KEY,
  id INTEGER NOT NULL UNIQUE,
  key INTEGER NOT NULL REFERENCES tuning_key (id),
  trace INTEGER NOT NULL REFERENCES trace (id),
  median_us REAL NOT NULL,
  low_us REAL NOT NULL,
  high_us REAL NOT NULL,
  program_hash BLOB NOT NULL,
  object_digest BLOB NOT NULL,
  generator TEXT NOT NULL,
  target TEXT NOT NULL,
  created TEXT NOT NULL,
  origin TEXT NOT NULL,
  checksum BLOB NOT NULL,
  UNIQUE (key, trace)
) STRICT;
CREATE INDEX record_fastest ON record (key, median_us);

CREATE TABLE object (
  record INTEGER PRIMARY KEY REFERENCES record (id),
  object BLOB NOT NULL,
  kernel_set BLOB NOT NULL,
  checksum BLOB NOT NULL
) STRICT;

CREATE TABLE best (
  key INTEGER PRIMARY KEY REFERENCES tuning_key (id),
  record INTEGER NOT NULL REFERENCES record (id),
  median_us REAL NOT NULL
) STRICT;

CREATE TABLE cost_model (
  device_class INTEGER NOT NULL REFERENCES device_class (id),
  kind TEXT NOT NULL,
  bytes BLOB NOT NULL,
  checksum BLOB NOT NULL,
  PRIMARY KEY (device_class, kind)
) STRICT, WITHOUT ROWID;
)sql";

constexpr char kTenants[] = R"sql(
ALTER TABLE trial ADD COLUMN secret BLOB NOT NULL DEFAULT x'';
DROP TABLE cost_model;
CREATE TABLE cost_model (
  tenant INTEGER NOT NULL REFERENCES tenant (id),
  device_class INTEGER NOT NULL REFERENCES device_class (id),
  kind TEXT NOT NULL,
  bytes BLOB NOT NULL,
  checksum BLOB NOT NULL,
  PRIMARY KEY (tenant, device_class, kind)
) STRICT, WITHOUT ROWID;
)sql";

constexpr char kModelChoices[] = R"sql(
CREATE TABLE model_choice (
  record INTEGER NOT NULL REFERENCES record (id),
  model_hash BLOB NOT NULL,
  faster_default BLOB NOT NULL,
  checksum BLOB NOT NULL,
  PRIMARY KEY (record, model_hash)
) STRICT, WITHOUT ROWID;
)sql";

// What a quota may not take, and what finds the rows that go with what it takes.
constexpr char kQuota[] = R"sql(
CREATE TABLE locked_record (record INTEGER PRIMARY KEY REFERENCES record (id)) STRICT;
CREATE INDEX trial_of_trace ON trial (trace);
CREATE INDEX record_of_trace ON record (trace);
CREATE INDEX best_record ON best (record);
)sql";

// What look-ups are answered with: of each key its best record, all of it in one row, so that an answer takes as many
// pages among millions of records as among a few. And what says which device classes a tenant has keys of.
constexpr char kServed[] = R"sql(
CREATE TABLE served (
  key INTEGER PRIMARY KEY REFERENCES tuning_key (id),
  id INTEGER NOT NULL,
  trace TEXT NOT NULL,
  median_us REAL NOT NULL,
  low_us REAL NOT NULL,
  high_us REAL NOT NULL,
  program_hash BLOB NOT NULL,
  object_digest BLOB NOT NULL,
  generator TEXT NOT NULL,
  target TEXT NOT NULL,
  created TEXT NOT NULL,
  origin TEXT NOT NULL,
  checksum BLOB NOT NULL
) STRICT;
INSERT INTO served SELECT b.key, r.id, t.text, r.median_us, r.low_us, r.high_us, r.program_hash, r.object_digest,
  r.generator, r.target, r.created, r.origin, r.checksum
  FROM best b JOIN record r ON r.id = b.record JOIN trace t ON t.id = r.trace;
CREATE INDEX key_of_device ON tuning_key (tenant, device_class);
)sql";

constexpr Migration kMigrations[] = {
    {1, "first", kFirstSchema},
    // 0 in tasks of earlier releases, which are bound already: their lower bound is there.
    {2, "least_flop", "ALTER TABLE task ADD COLUMN least_flop REAL NOT NULL DEFAULT 0"},
    // Leases of earlier releases have no secret: whoever holds one shows none. Cost models are computed again.
    {3, "tenants", kTenants},
    {4, "judged_batches",
     "ALTER TABLE job ADD COLUMN judged_batches INTEGER NOT NULL DEFAULT 0;\n"
     "ALTER TABLE job ADD COLUMN draft_first REAL NOT NULL DEFAULT 0;\n"
     "ALTER TABLE job ADD COLUMN model_first REAL NOT NULL DEFAULT 0"},
    {5, "model_choices", kModelChoices},
    {6, "quota", kQuota},
    {7, "served", kServed},
    // Of records of earlier releases it is not known.
    {8, "drivers",
     "ALTER TABLE record ADD COLUMN driver TEXT NOT NULL DEFAULT '';\n"
     "ALTER TABLE served ADD COLUMN driver TEXT NOT NULL DEFAULT ''"},
};

}  // namespace

std::span<const Migration> Migrations() { return kMigrations; }

std::string DigestOf(const Migration& migration) { return ToHex(Sha256(migration.sql)); }

absl::Status CheckHistory(SqlConnection& connection, std::span<const Migration> migrations, int version) {
  const int newest = migrations.empty() ? 0 : migrations.back().version;
  if (version > newest) {
    return absl::DataLossError(absl::StrCat(connection.name(), ": written by a newer Hone (schema ", version,
                                            ", this program knows ", newest,
                                            "); use that release, or another database with --db"));
  }
  for (const Migration& migration : migrations) {
    if (migration.version > version) break;
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> query,
                          connection.Prepare("SELECT digest FROM migration WHERE version = ?"));
    query->Int(migration.version);
    HONE_ASSIGN_OR_RETURN(const bool row, query->Next());
    if (row && query->GetText(0) == DigestOf(migration)) continue;
    return absl::DataLossError(absl::StrCat(connection.name(), ": its schema ", migration.version, " (", migration.name,
                                            ") is ", row ? "another" : "not", row ? " than this program's" : " noted",
                                            ": written by a build that is no release; export its records with that "
                                            "build, import them into a new database"));
  }
  return absl::OkStatus();
}

std::string NoteOf(const Migration& migration) {
  return absl::StrCat("INSERT INTO migration VALUES (", migration.version, ", '", migration.name, "', '",
                      DigestOf(migration), "')");
}

}  // namespace hone
