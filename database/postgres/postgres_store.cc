#include "database/postgres/postgres_store.h"

#include <unistd.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/support/status_macros.h"
#include "database/postgres/postgres_connection.h"
#include "database/postgres/postgres_leader.h"
#include "database/postgres/postgres_schema.h"
#include "database/sql/migrations.h"
#include "database/sql/sql_store.h"

namespace hone {
namespace {

// Header and line pointer of a row, and an entry of a b-tree for a number or two at the fill that inserts leave
// (https://www.postgresql.org/docs/15/storage-page-layout.html).
constexpr int kBytesOfRow = 28, kBytesOfIndexEntry = 32;
constexpr int kReaders = 16;  // sessions at the server for look-ups, of one daemon

// A new name for each store, so that its sessions can be told from others': "honed on build7, process 12, 5f0c...".
std::string ApplicationName() {
  char host[24] = "";
  ::gethostname(host, sizeof(host) - 1);
  std::random_device random;
  return absl::StrCat("honed on ", host, ", process ", ::getpid(), ", ", absl::StrFormat("%08x", random()));
}

class PostgresStore : public SqlStore {
 public:
  PostgresStore(const std::string& url, const std::string& application, std::unique_ptr<PostgresConnection> writer)
      : SqlStore([url, application] { return PostgresConnection::Open(url, application); }, kReaders,
                 // The lock lasts to the end of the transaction: whoever takes over waits for it, or ends our session.
                 "SELECT epoch FROM term FOR SHARE"),
        url_(url),
        application_(application),
        writer_(std::move(writer)),
        leader_(url, application) {}

  absl::StatusOr<bool> TryLead() override { return leader_.TryLead(); }
  absl::StatusOr<uint64_t> BeginEpoch() override {
    const absl::StatusOr<uint64_t> epoch = SqlStore::BeginEpoch();
    if (epoch.ok()) leader_.SetEpoch(*epoch);
    return epoch;
  }

  absl::StatusOr<bool> WaitForChange(absl::Duration limit) override {
    if (listener_ == nullptr || !listener_->usable()) {
      HONE_ASSIGN_OR_RETURN(listener_, PostgresConnection::Open(url_, application_));
      HONE_RETURN_IF_ERROR(listener_->Execute("LISTEN hone_change"));
    }
    return listener_->WaitForNotice(limit);
  }

 private:
  absl::StatusOr<SqlConnection*> Writer() override {
    if (!writer_->usable()) { HONE_ASSIGN_OR_RETURN(writer_, PostgresConnection::Open(url_, application_)); }
    return writer_.get();
  }
  absl::Status BeforeCommit(SqlConnection& writer) override {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> notify, writer.Prepare("NOTIFY hone_change"));
    return notify->Run();
  }

  // The files of a table keep the room that deleted rows left, so they say how much it is at most; beyond `enough` the
  // rows are counted: what they hold, and what the server takes for each and for its entry in an index.
  absl::StatusOr<int64_t> CountBytes(SqlConnection& reader, int64_t enough) override {
    HONE_ASSIGN_OR_RETURN(
        const int64_t files,
        reader.Number("SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c "
                      "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'hone' AND "
                      "c.relkind = 'r'"));
    if (files <= enough) return files;
    int64_t bytes = 0;
    for (const char* table : {"trial", "measurement", "trace", "record", "object", "workload", "task", "plan", "job"}) {
      HONE_ASSIGN_OR_RETURN(
          const int64_t of_table,
          reader.Number(absl::StrCat("SELECT coalesce(sum(pg_column_size(t.*) + ", kBytesOfRow, " + ",
                                     kBytesOfIndexEntry, " * (SELECT count(*) FROM pg_index WHERE indrelid = '", table,
                                     "'::regclass)), 0)::bigint FROM ", table, " t")));
      bytes += of_table;
    }
    return bytes;
  }

  const std::string url_, application_;
  std::unique_ptr<PostgresConnection> writer_;
  std::unique_ptr<PostgresConnection> listener_;
  PostgresLeader leader_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TuningStore>> OpenPostgresStore(const std::string& url) {
  const std::string application = ApplicationName();
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> writer, PostgresConnection::Open(url, application));
  HONE_RETURN_IF_ERROR(Migrate(*writer, Migrations()));
  return std::make_unique<PostgresStore>(url, application, std::move(writer));
}

}  // namespace hone
