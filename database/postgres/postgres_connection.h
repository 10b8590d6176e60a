// One PostgreSQL connection, in libpq's pipeline mode: statements without rows are sent without waiting for the server,
// so that a transaction of many writes costs a few round trips. Statements are prepared at the server at their first
// use.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "database/sql/sql.h"

struct pg_conn;
struct pg_result;

namespace hone {

// Any of libpq's forms of a URL: "postgres://user@host/database"
// (https://www.postgresql.org/docs/15/libpq-connect.html).
bool IsPostgresUrl(const std::string& db);

class PostgresConnection : public SqlConnection {
 public:
  // Sees the tables of the schema "hone" alone. `application`: the name by which the server lists the session.
  // InvalidArgument for a URL that cannot be read, Unavailable when the server cannot be reached or refuses the user.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& url,
                                                                  const std::string& application);
  ~PostgresConnection() override;

  absl::StatusOr<std::unique_ptr<SqlQuery>> Prepare(std::string_view sql) override;
  absl::Status Execute(const std::string& script) override;  // one transaction where the script begins none
  absl::Status Begin(Access access) override;
  absl::Status Commit() override;
  void Rollback() override;
  bool usable() const override;
  const std::string& name() const override { return name_; }  // without the password

  // Waits until another session has notified of what this one listens to: true; false when it did not until then.
  absl::StatusOr<bool> WaitForNotice(absl::Duration limit);

 private:
  friend class PostgresQuery;
  struct Statement {
    std::string name, sql;
    bool prepared = false;
  };
  struct Parameter {
    unsigned type = 0;  // an OID
    std::string bytes;  // in the binary form of the type
  };
  struct FreeResult {
    void operator()(pg_result* result) const;
  };
  using Result = std::unique_ptr<pg_result, FreeResult>;
  // What was sent and whose result was not yet read.
  struct Sent {
    Statement* prepares = nullptr;
    bool sync = false;
  };

  PostgresConnection(pg_conn* connection, std::string name) : connection_(connection), name_(std::move(name)) {}
  Statement& StatementOf(std::string_view sql);
  // Queue, and reads what came back of what was sent before where that is much.
  absl::Status Send(Statement& statement, const std::vector<Parameter>& parameters);
  absl::Status Queue(Statement& statement, const std::vector<Parameter>& parameters);
  absl::Status SendSync();
  // Waits for everything that was sent: the last result, or the first error.
  absl::StatusOr<Result> Collect();
  absl::Status ErrorOf(const pg_result* result) const;
  absl::Status ConnectionError() const;

  pg_conn* const connection_;
  const std::string name_;
  std::map<std::string, Statement, std::less<>> statements_;
  std::vector<Sent> sent_;
  bool writing_ = false, in_transaction_ = false;
};

}  // namespace hone
