// What the statements of the store are run through, so that SQLite and PostgreSQL share them: a connection that
// prepares, a query that binds values and reads rows. Statements are written with `?` (in order) or `?1` (by number).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

// A statement in use. Bind every parameter in order, then `Next` until it says false, or `Run`.
class SqlQuery {
 public:
  virtual ~SqlQuery() = default;

  virtual SqlQuery& Int(int64_t value) = 0;
  virtual SqlQuery& Real(double value) = 0;
  virtual SqlQuery& Text(std::string_view value) = 0;
  virtual SqlQuery& Blob(std::string_view value) = 0;

  virtual absl::StatusOr<bool> Next() = 0;  // true: a row is there to read
  // For statements without rows. A backend may send it later, in order: then its error is that of the next `Next` or of
  // `Commit`.
  virtual absl::Status Run() = 0;

  virtual int64_t GetInt(int column) const = 0;  // 0 for NULL
  virtual double GetReal(int column) const = 0;
  virtual std::string GetText(int column) const = 0;  // text or blob; empty for NULL
};

// Not thread-safe: one user at a time. Queries must be gone before it goes.
class SqlConnection {
 public:
  enum class Access { kRead, kWrite };

  virtual ~SqlConnection() = default;

  // The statement is compiled at its first use and kept; one use of the same text at a time.
  virtual absl::StatusOr<std::unique_ptr<SqlQuery>> Prepare(std::string_view sql) = 0;
  virtual absl::Status Execute(const std::string& script) = 0;  // any number of statements without parameters
  // What is read between Begin and Commit is one snapshot; what is written is durable when Commit returns OK.
  virtual absl::Status Begin(Access access) = 0;
  virtual absl::Status Commit() = 0;
  virtual void Rollback() = 0;  // no effect outside a transaction
  // False once it can never answer again, and has to be opened anew.
  virtual bool usable() const = 0;
  virtual const std::string& name() const = 0;  // of the database, for messages

  absl::StatusOr<int64_t> Number(std::string_view sql);  // first column of the first row; 0 without a row
};

}  // namespace hone
