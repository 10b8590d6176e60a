// One SQLite connection: prepared statements that are kept, errors as Status.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "database/sql/sql.h"

struct sqlite3;
struct sqlite3_stmt;

namespace hone {

class SqliteConnection : public SqlConnection {
 public:
  enum class Mode { kRead, kWrite, kCreate };
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path, Mode mode);
  ~SqliteConnection() override;

  absl::StatusOr<std::unique_ptr<SqlQuery>> Prepare(std::string_view sql) override;
  absl::Status Execute(const std::string& script) override;
  absl::Status Begin(Access access) override;
  absl::Status Commit() override;
  void Rollback() override;
  bool usable() const override { return true; }
  const std::string& name() const override { return path_; }

  // Pages of databases that all connections of this process keep in memory, each as of its latest commit.
  static int64_t CachedBytes();

  absl::Status BackUpTo(const std::string& path);  // a consistent copy while in use
  // The latest error as a Status. `system_error`: errno after it, 0 before: what SQLite says of it itself
  // (sqlite3_system_errno) is not there for commits.
  absl::Status Error(const std::string& doing, int system_error = 0) const;

 private:
  SqliteConnection(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  absl::Status RunPrepared(std::string_view sql);
  void CountCache(int64_t bytes);

  sqlite3* db_;
  std::string path_;
  int64_t cached_bytes_ = 0;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

}  // namespace hone
