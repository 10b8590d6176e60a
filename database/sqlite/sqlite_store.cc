#include "database/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/status_macros.h"
#include "database/sql/migrations.h"
#include "database/sql/sql_store.h"
#include "database/sqlite/file_lock.h"
#include "database/sqlite/sqlite_connection.h"
#include "database/sqlite/sqlite_schema.h"

namespace hone {
namespace {

// SQLite's own words for a file that is none ("file is not a database") say what, not what to do.
absl::Status ExplainDamage(const std::string& path, const absl::Status& status) {
  if (status.code() != absl::StatusCode::kDataLoss) return status;
  if (status.message().find("not a database") != std::string_view::npos) {
    return absl::DataLossError(absl::StrCat(path, ": not a Hone database; give another file with --db"));
  }
  if (status.message().find("malformed") != std::string_view::npos ||
      status.message().find("disk image") != std::string_view::npos) {
    return absl::DataLossError(absl::StrCat(status.message(),
                                            "; the database is damaged: restore a copy, or export what "
                                            "can still be read with `hone records export --db ",
                                            path, "`"));
  }
  return status;
}

absl::Status QuickCheck(SqliteConnection& connection) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqlQuery> query, connection.Prepare("PRAGMA quick_check(1)"));
  HONE_ASSIGN_OR_RETURN(const bool row, query->Next());
  if (row && query->GetText(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(connection.name(), ": damaged disk image: ", query->GetText(0)));
}

// A new database is made beside its name and moved there complete, so that an interrupted start leaves no half file.
absl::Status CreateFile(const std::string& path) {
  const std::string fresh = path + ".new";  // ours alone: we hold the lock; what a killed process left goes first
  for (const char* part : {"", "-wal", "-shm", "-journal"}) std::remove((fresh + part).c_str());
  absl::Status status = [&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> connection,
                          SqliteConnection::Open(fresh, SqliteConnection::Mode::kCreate));
    HONE_RETURN_IF_ERROR(connection->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"));
    return Migrate(*connection, Migrations());
  }();
  if (status.ok() && chmod(fresh.c_str(), 0600) != 0) status = absl::InternalError(std::strerror(errno));
  CrashPoint("sqlite.create.made");
  if (status.ok() && std::rename(fresh.c_str(), path.c_str()) != 0) {
    status = absl::PermissionDeniedError(absl::StrCat("cannot create ", path, ": ", std::strerror(errno)));
  }
  CrashPoint("sqlite.create.renamed");
  if (!status.ok()) std::remove(fresh.c_str());
  return Annotate(status, absl::StrCat("creating the database ", path));
}

constexpr int kReaders = 8;  // at once; more wait for one of them, for they would share as many cores

class SqliteStore : public SqlStore {
 public:
  // `writer`: nullptr when open for reading.
  SqliteStore(const std::string& path, std::unique_ptr<FileLock> lock, std::unique_ptr<SqliteConnection> writer)
      : SqlStore([path] { return SqliteConnection::Open(path, SqliteConnection::Mode::kRead); }, kReaders,
                 "SELECT epoch FROM term"),
        path_(path),
        lock_(std::move(lock)),
        writer_(std::move(writer)) {}
  // The writer goes last: whoever closes last folds the log (-wal) into the file, and a reader may not. So a file that
  // is closed is whole by itself, to be copied or moved.
  ~SqliteStore() override { CloseReaders(); }

 private:
  absl::StatusOr<SqlConnection*> Writer() override {
    if (writer_ == nullptr) return absl::FailedPreconditionError("the database is open for reading only");
    return writer_.get();
  }
  absl::Status Explain(const absl::Status& status) const override { return ExplainDamage(path_, status); }
  absl::StatusOr<int64_t> CountBytes(SqlConnection& reader, int64_t) override {
    HONE_ASSIGN_OR_RETURN(const int64_t pages, reader.Number("PRAGMA page_count"));
    HONE_ASSIGN_OR_RETURN(const int64_t free, reader.Number("PRAGMA freelist_count"));
    HONE_ASSIGN_OR_RETURN(const int64_t page_bytes, reader.Number("PRAGMA page_size"));
    return (pages - free) * page_bytes;
  }

  const std::string path_;
  const std::unique_ptr<FileLock> lock_;
  const std::unique_ptr<SqliteConnection> writer_;
};

// SQLite's locks and the memory that its readers share (WAL) do not hold between machines, nor on some network file
// systems between processes: two writers there damage the file (https://www.sqlite.org/wal.html, "all processes must
// be on the same host").
absl::Status CheckFileSystem(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  struct statfs info {};
  if (statfs(folder.c_str(), &info) != 0) return absl::OkStatus();  // opening the file says what is wrong
  const std::string name = NetworkFileSystem(static_cast<uint32_t>(info.f_type));
  if (name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": on a network file system (", name,
      "), where SQLite's locks do not hold and a database is soon damaged; "
      "name a file on a local disk with --db, and reach it from other machines through `honed --listen HOST:PORT`"));
}

// What a file must be before SQLite sees it.
absl::Status CheckFile(const std::string& path, StoreMode mode, bool* missing) {
  HONE_RETURN_IF_ERROR(CheckFileSystem(path));
  struct stat info {};
  *missing = stat(path.c_str(), &info) != 0;
  if (*missing) {
    if (errno != ENOENT)
      return absl::PermissionDeniedError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
    if (mode == StoreMode::kRead) {
      return absl::NotFoundError(absl::StrCat(path, ": no such database; the first hone tune on it makes it"));
    }
    return absl::OkStatus();
  }
  if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, ": a folder, not a database file"));
  if (info.st_size == 0) {
    return absl::DataLossError(
        absl::StrCat(path, ": an empty file, not a Hone database; delete it to have one made anew"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TuningStore>> OpenToRead(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> reader,
                        SqliteConnection::Open(path, SqliteConnection::Mode::kRead));
  HONE_ASSIGN_OR_RETURN(const int version, SchemaVersion(*reader, Migrations()));
  if (version == 0) return absl::DataLossError(absl::StrCat(path, ": a database without tables, not Hone's"));
  if (version < Migrations().back().version) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": written by an older Hone (schema ", version,
                                                      "); start `honed --db ", path, "` once to bring it up to date"));
  }
  return std::make_unique<SqliteStore>(path, nullptr, nullptr);
}

absl::StatusOr<std::unique_ptr<TuningStore>> OpenToWrite(const std::string& path, std::unique_ptr<FileLock> lock) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> writer,
                        SqliteConnection::Open(path, SqliteConnection::Mode::kWrite));
  HONE_ASSIGN_OR_RETURN(const int version, SchemaVersion(*writer, Migrations()));
  if (version == 0) return absl::DataLossError(absl::StrCat(path, ": a database without tables, not Hone's"));
  // 64 MiB of pages in memory: traces and records go to random places of their indexes, which the usual 2 MiB do not
  // hold. The log is folded into the file by the connection that writes, and by no other at the same time: where two
  // did that, SQLite before 3.51.3 could lose a commit (https://www.sqlite.org/wal.html, "The WAL-Reset Bug").
  HONE_RETURN_IF_ERROR(
      writer->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; "
                      "PRAGMA cache_size = -65536"));
  HONE_RETURN_IF_ERROR(QuickCheck(*writer));
  CrashPoint("sqlite.checked");
  HONE_RETURN_IF_ERROR(Migrate(*writer, Migrations()));
  CrashPoint("sqlite.opened");
  return std::make_unique<SqliteStore>(path, std::move(lock), std::move(writer));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TuningStore>> OpenSqliteStore(const std::string& path, StoreMode mode) {
  bool missing = false;
  HONE_RETURN_IF_ERROR(CheckFile(path, mode, &missing));
  std::unique_ptr<FileLock> lock;
  if (mode == StoreMode::kWrite) {
    HONE_ASSIGN_OR_RETURN(lock, FileLock::Acquire(path + ".lock"));
    CrashPoint("sqlite.locked");
    HONE_RETURN_IF_ERROR(CheckFile(path, mode, &missing));  // again: another writer may have made it meanwhile
    if (missing) HONE_RETURN_IF_ERROR(CreateFile(path));
  }
  absl::StatusOr<std::unique_ptr<TuningStore>> store =
      mode == StoreMode::kRead ? OpenToRead(path) : OpenToWrite(path, std::move(lock));
  if (!store.ok()) return ExplainDamage(path, store.status());
  return store;
}

std::string NetworkFileSystem(uint32_t type) {
  // From linux/magic.h and the file systems' own headers.
  switch (type) {
    case 0x6969: return "NFS";
    case 0x517B: return "SMB";
    case 0xFF534D42: return "CIFS";
    case 0xFE534D42: return "SMB2";
    case 0x5346414F: return "AFS";
    case 0x6B414653: return "AFS";
    case 0x73757245: return "Coda";
    case 0x00C36400: return "Ceph";
    case 0x0BD00BD0: return "Lustre";
    case 0x47504653: return "GPFS";
    case 0x19830326: return "BeeGFS";
    case 0x7461636F: return "OCFS2";
    case 0x01161970: return "GFS2";
    default: return "";
  }
}

std::string AddressOfDaemon(const std::string& path) { return FileLock::TextOfHolder(path + ".lock"); }

absl::Status PublishAddress(const std::string& path, const std::string& address) {
  return FileLock::WriteText(path + ".lock", address);
}

}  // namespace hone
