#include "database/sqlite_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/support/status_macros.h"
#include "database/file_lock.h"
#include "database/migrations.h"
#include "database/sqlite_connection.h"
#include "database/sqlite_reads.h"
#include "database/sqlite_writes.h"

namespace hone {
namespace {

// SQLite's own words for a file that is none ("file is not a database") say what, not what to do.
absl::Status Explain(const std::string& path, const absl::Status& status) {
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
  HONE_ASSIGN_OR_RETURN(SqliteQuery query, connection.Prepare("PRAGMA quick_check(1)"));
  HONE_ASSIGN_OR_RETURN(const bool row, query.Next());
  if (row && query.GetText(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(connection.path(), ": damaged disk image: ", query.GetText(0)));
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
  if (status.ok() && std::rename(fresh.c_str(), path.c_str()) != 0) {
    status = absl::PermissionDeniedError(absl::StrCat("cannot create ", path, ": ", std::strerror(errno)));
  }
  if (!status.ok()) std::remove(fresh.c_str());
  return Annotate(status, absl::StrCat("creating the database ", path));
}

class SqliteStore : public TuningStore {
 public:
  SqliteStore(std::unique_ptr<FileLock> lock, std::unique_ptr<SqliteConnection> writer,
              std::unique_ptr<SqliteConnection> reader)
      : lock_(std::move(lock)), writer_(std::move(writer)), reader_(std::move(reader)) {}

  absl::StatusOr<uint64_t> BeginEpoch() override {
    const std::lock_guard<std::mutex> guard(write_mutex_);
    uint64_t epoch = 0;
    HONE_RETURN_IF_ERROR(Transaction([&]() -> absl::Status {
      HONE_RETURN_IF_ERROR(writer_->Execute("UPDATE term SET epoch = epoch + 1"));
      HONE_ASSIGN_OR_RETURN(epoch, writer_->Number("SELECT epoch FROM term"));
      return absl::OkStatus();
    }));
    return epoch;
  }

  absl::Status Commit(uint64_t epoch, std::span<const Write> writes) override {
    const std::lock_guard<std::mutex> guard(write_mutex_);
    return Transaction([&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(const int64_t current, writer_->Number("SELECT epoch FROM term"));
      if (static_cast<uint64_t>(current) != epoch) {
        return absl::AbortedError(
            absl::StrCat("another daemon has taken over this database: its term is ", current, ", ours was ", epoch));
      }
      for (const Write& write : writes) HONE_RETURN_IF_ERROR(ApplyWrite(*writer_, write));
      return absl::OkStatus();
    });
  }

  absl::StatusOr<StoredState> LoadState() override {
    return Read([&] { return ReadState(*reader_); });
  }
  absl::StatusOr<KeyHistory> LoadHistory(const TuningKey& key) override {
    return Read([&] { return ReadHistory(*reader_, key); });
  }
  absl::StatusOr<std::string> CostModel(uint64_t tenant, const std::string& device_class,
                                        const std::string& kind) override {
    return Read([&] { return ReadCostModel(*reader_, tenant, device_class, kind); });
  }
  absl::StatusOr<v1::Workload> GetWorkload(const std::string& hash) override {
    return Read([&] { return ReadWorkload(*reader_, hash); });
  }
  absl::StatusOr<JobRow> GetJob(uint64_t tenant, uint64_t id) override {
    return Read([&] { return ReadJob(*reader_, tenant, id); });
  }
  absl::StatusOr<std::optional<uint64_t>> FindJob(uint64_t tenant, const std::string& request_id) override {
    return Read([&] { return ReadJobByRequest(*reader_, tenant, request_id); });
  }
  absl::StatusOr<std::vector<TaskRow>> GetTasks(uint64_t tenant, uint64_t job) override {
    return Read([&] { return ReadTasks(*reader_, tenant, job); });
  }
  absl::StatusOr<std::string> GetPlan(uint64_t tenant, uint64_t job) override {
    return Read([&] { return ReadPlan(*reader_, tenant, job); });
  }
  absl::StatusOr<std::vector<JobRow>> ListJobs(uint64_t tenant) override {
    return Read([&] { return ReadJobs(*reader_, tenant); });
  }
  absl::StatusOr<BestEntries> Best(uint64_t tenant, std::span<const v1::BestKey> keys) override {
    return Read([&]() -> absl::StatusOr<BestEntries> {
      BestEntries answers;
      for (const v1::BestKey& key : keys) {
        HONE_ASSIGN_OR_RETURN(std::optional<BestEntry> entry, ReadBest(*reader_, tenant, key, &answers.corrupt));
        answers.entries.push_back(std::move(entry));
      }
      return answers;
    });
  }
  absl::StatusOr<RecordPage> Records(uint64_t tenant, const RecordFilter& filter) override {
    return Read([&] { return ReadRecords(*reader_, tenant, filter); });
  }

 private:
  template <class Body>
  absl::Status Transaction(Body body) {
    if (writer_ == nullptr) return absl::FailedPreconditionError("the database is open for reading only");
    HONE_RETURN_IF_ERROR(Explain(writer_->path(), writer_->Execute("BEGIN IMMEDIATE")));
    absl::Status status = body();
    if (status.ok()) status = writer_->Execute("COMMIT");
    // A fatal error (disk full, input/output) has rolled back already; a second ROLLBACK would hide its cause.
    if (!status.ok() && writer_->in_transaction()) writer_->Execute("ROLLBACK").IgnoreError();
    return Explain(writer_->path(), status);
  }

  // One snapshot for all queries of a read.
  template <class Body>
  auto Read(Body body) -> decltype(body()) {
    const std::lock_guard<std::mutex> guard(read_mutex_);
    if (absl::Status began = reader_->Execute("BEGIN"); !began.ok()) return Explain(reader_->path(), began);
    auto result = body();
    reader_->Execute("COMMIT").IgnoreError();
    if (!result.ok()) return Explain(reader_->path(), result.status());
    return result;
  }

  std::unique_ptr<FileLock> lock_;
  std::mutex write_mutex_;
  std::unique_ptr<SqliteConnection> writer_;  // nullptr when open for reading
  std::mutex read_mutex_;
  std::unique_ptr<SqliteConnection> reader_;
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

absl::StatusOr<std::unique_ptr<TuningStore>> OpenExisting(const std::string& path, StoreMode mode,
                                                          std::unique_ptr<FileLock> lock) {
  // The writer first: only it can put right what a killed writer left half done.
  std::unique_ptr<SqliteConnection> writer;
  if (mode == StoreMode::kWrite) {
    HONE_ASSIGN_OR_RETURN(writer, SqliteConnection::Open(path, SqliteConnection::Mode::kWrite));
    HONE_RETURN_IF_ERROR(SchemaVersion(*writer, Migrations()).status());
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> reader,
                        SqliteConnection::Open(path, SqliteConnection::Mode::kRead));
  HONE_ASSIGN_OR_RETURN(const int version, SchemaVersion(*reader, Migrations()));
  if (version == 0) return absl::DataLossError(absl::StrCat(path, ": a database without tables, not Hone's"));
  if (mode == StoreMode::kRead) {
    if (version < Migrations().back().version) {
      return absl::FailedPreconditionError(absl::StrCat(path, ": written by an older Hone (schema ", version,
                                                        "); start `honed --db ", path,
                                                        "` once to bring it up to date"));
    }
    return std::make_unique<SqliteStore>(nullptr, nullptr, std::move(reader));
  }
  HONE_RETURN_IF_ERROR(
      writer->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000"));
  HONE_RETURN_IF_ERROR(QuickCheck(*writer));
  HONE_RETURN_IF_ERROR(Migrate(*writer, Migrations()));
  return std::make_unique<SqliteStore>(std::move(lock), std::move(writer), std::move(reader));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TuningStore>> OpenSqliteStore(const std::string& path, StoreMode mode) {
  bool missing = false;
  HONE_RETURN_IF_ERROR(CheckFile(path, mode, &missing));
  std::unique_ptr<FileLock> lock;
  if (mode == StoreMode::kWrite) {
    HONE_ASSIGN_OR_RETURN(lock, FileLock::Acquire(path + ".lock"));
    HONE_RETURN_IF_ERROR(CheckFile(path, mode, &missing));  // again: another writer may have made it meanwhile
    if (missing) HONE_RETURN_IF_ERROR(CreateFile(path));
  }
  absl::StatusOr<std::unique_ptr<TuningStore>> store = OpenExisting(path, mode, std::move(lock));
  if (!store.ok()) return Explain(path, store.status());
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
