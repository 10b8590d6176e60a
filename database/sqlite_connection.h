// A thin, owning wrapper of one SQLite connection: prepared statements that are kept, typed binding and reading, errors
// as Status. Not thread-safe: one user at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace hone {

class SqliteConnection;

// A statement in use. Bind every parameter in order, then `Next` until it says false. Resets itself when it goes away.
class SqliteQuery {
 public:
  SqliteQuery(SqliteQuery&& other) noexcept;
  SqliteQuery(const SqliteQuery&) = delete;
  ~SqliteQuery();

  SqliteQuery& Int(int64_t value);
  SqliteQuery& Real(double value);
  SqliteQuery& Text(std::string_view value);
  SqliteQuery& Blob(std::string_view value);
  SqliteQuery& Null();

  absl::StatusOr<bool> Next();  // true: a row is there to read
  absl::Status Run();           // for statements without rows

  int64_t GetInt(int column) const;
  double GetReal(int column) const;
  std::string GetText(int column) const;  // text or blob; empty for NULL
  bool IsNull(int column) const;

 private:
  friend class SqliteConnection;
  SqliteQuery(SqliteConnection& connection, sqlite3_stmt* statement)
      : connection_(&connection), statement_(statement) {}
  SqliteConnection* connection_;
  sqlite3_stmt* statement_;
  int bound_ = 0;
};

class SqliteConnection {
 public:
  enum class Mode { kRead, kWrite, kCreate };
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path, Mode mode);
  ~SqliteConnection();

  // The statement is compiled at its first use and kept; one use of the same text at a time.
  absl::StatusOr<SqliteQuery> Prepare(std::string_view sql);
  absl::Status Execute(const std::string& script);       // any number of statements without parameters
  absl::StatusOr<int64_t> Number(std::string_view sql);  // first column of the first row; 0 without a row
  bool in_transaction() const;
  absl::Status BackUpTo(const std::string& path);      // a consistent copy while in use
  absl::Status Error(const std::string& doing) const;  // the latest error as a Status
  const std::string& path() const { return path_; }

 private:
  SqliteConnection(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  sqlite3* db_;
  std::string path_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

}  // namespace hone
