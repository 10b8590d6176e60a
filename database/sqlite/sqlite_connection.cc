#include "database/sqlite/sqlite_connection.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// `system_error`: errno of the call of the system that failed, where one did. A disk may be found full where SQLite
// knows of no better name than an error of input or output: when the index of the log grows, when what was written is
// synced.
absl::StatusCode CodeOf(int result, int system_error) {
  switch (result & 0xff) {
    case SQLITE_IOERR:
      return system_error == ENOSPC || system_error == EDQUOT ? absl::StatusCode::kResourceExhausted
                                                              : absl::StatusCode::kInternal;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT: return absl::StatusCode::kDataLoss;
    case SQLITE_FULL: return absl::StatusCode::kResourceExhausted;
    case SQLITE_NOMEM: return absl::StatusCode::kResourceExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return absl::StatusCode::kUnavailable;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY: return absl::StatusCode::kPermissionDenied;
    case SQLITE_CANTOPEN: return absl::StatusCode::kPermissionDenied;
    case SQLITE_CONSTRAINT: return absl::StatusCode::kAlreadyExists;
    default: return absl::StatusCode::kInternal;
  }
}

std::atomic<int64_t> cached_bytes_of_all = 0;

// SQLite counts the bytes of its allocations, under one lock of the whole process that each of them takes. Nobody reads
// the counts. Without effect where SQLite was in use before.
void CountNoMemory() { [[maybe_unused]] static const int once = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

// Resets its statement when it goes away.
class SqliteQuery : public SqlQuery {
 public:
  SqliteQuery(const SqliteConnection& connection, sqlite3_stmt* statement)
      : connection_(connection), statement_(statement) {}
  ~SqliteQuery() override {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }

  SqlQuery& Int(int64_t value) override { return Bound(sqlite3_bind_int64(statement_, ++bound_, value)); }
  SqlQuery& Real(double value) override { return Bound(sqlite3_bind_double(statement_, ++bound_, value)); }
  SqlQuery& Text(std::string_view value) override {
    return Bound(sqlite3_bind_text64(statement_, ++bound_, Data(value), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  SqlQuery& Blob(std::string_view value) override {
    return Bound(sqlite3_bind_blob64(statement_, ++bound_, Data(value), value.size(), SQLITE_TRANSIENT));
  }

  absl::StatusOr<bool> Next() override {
    errno = 0;
    switch (sqlite3_step(statement_)) {
      case SQLITE_ROW: return true;
      case SQLITE_DONE: return false;
      default: return connection_.Error("reading or writing", errno);
    }
  }
  absl::Status Run() override {
    absl::StatusOr<bool> row = Next();
    while (row.ok() && *row) row = Next();
    return row.status();
  }

  int64_t GetInt(int column) const override { return sqlite3_column_int64(statement_, column); }
  double GetReal(int column) const override { return sqlite3_column_double(statement_, column); }
  std::string GetText(int column) const override {
    const void* data = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
  }

 private:
  static const char* Data(std::string_view value) { return value.data() == nullptr ? "" : value.data(); }
  SqlQuery& Bound(int result) {
    HONE_CHECK(result == SQLITE_OK) << sqlite3_sql(statement_);
    return *this;
  }
  const SqliteConnection& connection_;
  sqlite3_stmt* statement_;
  int bound_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const std::string& path, Mode mode) {
  CountNoMemory();
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (mode == Mode::kRead) flags |= SQLITE_OPEN_READONLY;
  if (mode != Mode::kRead) flags |= SQLITE_OPEN_READWRITE;
  if (mode == Mode::kCreate) flags |= SQLITE_OPEN_CREATE;
  sqlite3* db = nullptr;
  const int result = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(db, path));
  if (result != SQLITE_OK) return connection->Error("opening");
  // A file is data, not a program: no functions from its schema, no writing to it past SQL, every cell checked.
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_busy_timeout(db, 10'000);
  HONE_RETURN_IF_ERROR(
      connection->Execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA foreign_keys = ON"));
  return connection;
}

SqliteConnection::~SqliteConnection() {
  CountCache(0);
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

absl::StatusOr<std::unique_ptr<SqlQuery>> SqliteConnection::Prepare(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int result = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                          &statement, nullptr);
    if (result != SQLITE_OK) return Error(absl::StrCat("preparing `", std::string(sql), "`"));
    found = statements_.emplace(std::string(sql), statement).first;
  }
  return std::make_unique<SqliteQuery>(*this, found->second);
}

absl::Status SqliteConnection::Execute(const std::string& script) {
  if (sqlite3_exec(db_, script.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return Error("executing");
  return absl::OkStatus();
}

absl::Status SqliteConnection::Begin(Access access) {
  return RunPrepared(access == Access::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
}

absl::Status SqliteConnection::Commit() {
  absl::Status status = RunPrepared("COMMIT");
  int bytes = 0, most = 0;
  if (sqlite3_db_status(db_, SQLITE_DBSTATUS_CACHE_USED, &bytes, &most, 0) == SQLITE_OK) CountCache(bytes);
  return status;
}

int64_t SqliteConnection::CachedBytes() { return cached_bytes_of_all; }

void SqliteConnection::CountCache(int64_t bytes) {
  cached_bytes_of_all += bytes - cached_bytes_;
  cached_bytes_ = bytes;
}

absl::Status SqliteConnection::RunPrepared(std::string_view sql) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> query, Prepare(sql));
  return query->Run();
}

// A fatal error (disk full, input/output) has rolled back already; a second ROLLBACK would hide its cause.
void SqliteConnection::Rollback() {
  if (sqlite3_get_autocommit(db_) == 0) Execute("ROLLBACK").IgnoreError();
}

absl::Status SqliteConnection::BackUpTo(const std::string& path) {
  // SQLite takes over the mode of a file that is there, and what it makes beside it gets the same.
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0 || ::fchmod(file, 0600) != 0) {
    const std::string why = std::strerror(errno);
    if (file >= 0) ::close(file);
    return absl::PermissionDeniedError(absl::StrCat("copying ", path_, " to ", path, ": ", why));
  }
  ::close(file);
  sqlite3* target = nullptr;
  int system_error = 0;
  int result = sqlite3_open_v2(path.c_str(), &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (result == SQLITE_OK) {
    sqlite3_backup* backup = sqlite3_backup_init(target, "main", db_, "main");
    result = backup == nullptr ? sqlite3_errcode(target) : sqlite3_backup_step(backup, -1);
    system_error = sqlite3_system_errno(target);
    if (backup != nullptr) sqlite3_backup_finish(backup);
  }
  sqlite3_close(target);
  if (result == SQLITE_DONE) return absl::OkStatus();
  return absl::Status(CodeOf(result, system_error),
                      absl::StrCat("copying ", path_, " to ", path, ": ", sqlite3_errstr(result)));
}

absl::Status SqliteConnection::Error(const std::string& doing, int system_error) const {
  const int result = db_ == nullptr ? SQLITE_NOMEM : sqlite3_extended_errcode(db_);
  if (system_error == 0 && db_ != nullptr) system_error = sqlite3_system_errno(db_);
  const char* text = db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_);
  std::string message = absl::StrCat(path_, ": ", doing, ": ", text);
  if ((result & 0xff) == SQLITE_IOERR && system_error != 0)
    absl::StrAppend(&message, " (", std::strerror(system_error), ")");
  return absl::Status(CodeOf(result, system_error), message);
}

}  // namespace hone
