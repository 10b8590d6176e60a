#include "database/postgres/postgres_connection.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/support/check.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Results that may wait at the server: they are small (statements without rows), so that it never stops reading what we
// send because we do not read what it sends.
constexpr size_t kMostUnread = 64;

// OIDs of pg_type.dat, which never change.
constexpr unsigned kInt8 = 20, kFloat8 = 701, kBytea = 17;

std::string BigEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (56 - 8 * i));
  return bytes;
}
uint64_t FromBigEndian(const char* bytes, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// `?` and `?1` as `$1`. No statement of ours has a question mark in a text.
std::string WithDollars(std::string_view sql) {
  std::string out;
  int next = 0;
  for (size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] != '?') {
      out.push_back(sql[i]);
    } else if (i + 1 < sql.size() && sql[i + 1] >= '0' && sql[i + 1] <= '9') {
      out.push_back('$');
    } else {
      absl::StrAppend(&out, "$", ++next);
    }
  }
  return out;
}

// Classes of SQLSTATE: https://www.postgresql.org/docs/15/errcodes-appendix.html
absl::StatusCode CodeOf(std::string_view state) {
  const std::string_view group = state.substr(0, 2);
  if (group == "08" || group == "57" || group == "40" || group == "55") return absl::StatusCode::kUnavailable;
  if (group == "53") return state == "53300" ? absl::StatusCode::kUnavailable : absl::StatusCode::kResourceExhausted;
  if (group == "28" || state == "42501") return absl::StatusCode::kPermissionDenied;
  if (group == "23") return absl::StatusCode::kAlreadyExists;
  if (group == "XX") return absl::StatusCode::kDataLoss;  // the server finds its own files damaged
  return absl::StatusCode::kInternal;
}

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return std::string(absl::StripTrailingAsciiWhitespace(text));
}

void IgnoreNotice(void*, const PGresult*) {}

}  // namespace

bool IsPostgresUrl(const std::string& db) {
  return absl::StartsWith(db, "postgres://") || absl::StartsWith(db, "postgresql://");
}

// Sent when it is run, or when its first row is asked for.
class PostgresQuery : public SqlQuery {
 public:
  PostgresQuery(PostgresConnection& connection, PostgresConnection::Statement& statement)
      : connection_(connection), statement_(statement) {}

  SqlQuery& Int(int64_t value) override { return Bind(kInt8, BigEndian(static_cast<uint64_t>(value))); }
  SqlQuery& Real(double value) override { return Bind(kFloat8, BigEndian(std::bit_cast<uint64_t>(value))); }
  SqlQuery& Text(std::string_view value) override { return Bind(kBytea, std::string(value)); }
  SqlQuery& Blob(std::string_view value) override { return Bind(kBytea, std::string(value)); }

  absl::StatusOr<bool> Next() override {
    if (result_ == nullptr) {
      HONE_RETURN_IF_ERROR(connection_.Queue(statement_, parameters_));  // Send may collect, and drop what it gets
      HONE_ASSIGN_OR_RETURN(result_, connection_.Collect());
    }
    return ++row_ < PQntuples(result_.get());
  }
  absl::Status Run() override { return connection_.Send(statement_, parameters_); }

  int64_t GetInt(int column) const override {
    const int size = Length(column);
    const uint64_t value = FromBigEndian(Value(column), size);
    return size == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);  // int4 is what literals are
  }
  double GetReal(int column) const override {
    return Length(column) == 8 ? std::bit_cast<double>(FromBigEndian(Value(column), 8)) : 0;
  }
  std::string GetText(int column) const override { return {Value(column), static_cast<size_t>(Length(column))}; }

 private:
  SqlQuery& Bind(unsigned type, std::string bytes) {
    parameters_.push_back({type, std::move(bytes)});
    return *this;
  }
  const char* Value(int column) const { return PQgetvalue(result_.get(), row_, column); }
  int Length(int column) const { return PQgetlength(result_.get(), row_, column); }  // 0 for NULL

  PostgresConnection& connection_;
  PostgresConnection::Statement& statement_;
  std::vector<PostgresConnection::Parameter> parameters_;
  PostgresConnection::Result result_;
  int row_ = -1;
};

void PostgresConnection::FreeResult::operator()(pg_result* result) const { PQclear(result); }

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(const std::string& url,
                                                                             const std::string& application) {
  char* said = nullptr;
  PQconninfoOption* options = PQconninfoParse(url.c_str(), &said);
  if (options == nullptr) {
    const std::string why = said == nullptr ? "out of memory" : OneLine(said);
    PQfreemem(said);
    return absl::InvalidArgumentError(absl::StrCat("--db: the URL of the database cannot be read: ", why,
                                                   "; its form is postgres://USER@HOST:PORT/DATABASE"));
  }
  PQconninfoFree(options);
  // What comes after the URL counts more than what is in it. A peer that is silently gone is noticed in seconds.
  const std::pair<const char*, const char*> settings[] = {
      {"dbname", url.c_str()},     {"application_name", application.c_str()},
      {"client_encoding", "UTF8"}, {"connect_timeout", "5"},
      {"keepalives_idle", "10"},   {"keepalives_interval", "5"},
      {"keepalives_count", "3"},   {"tcp_user_timeout", "20000"}};
  std::vector<const char*> names, values;
  for (const auto& [name, value] : settings) {
    names.push_back(name);
    values.push_back(value);
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  PGconn* opened = PQconnectdbParams(names.data(), values.data(), /*expand_dbname=*/1);
  const auto text = [&](const char* (*get)(const PGconn*)) {
    const char* value = opened == nullptr ? nullptr : get(opened);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string name = absl::StrCat("postgres://", text([](const PGconn* c) -> const char* { return PQuser(c); }),
                                        "@", text([](const PGconn* c) -> const char* { return PQhost(c); }), ":",
                                        text([](const PGconn* c) -> const char* { return PQport(c); }), "/",
                                        text([](const PGconn* c) -> const char* { return PQdb(c); }));
  std::unique_ptr<PostgresConnection> connection(new PostgresConnection(opened, name));
  if (PQstatus(opened) != CONNECTION_OK) {
    return absl::UnavailableError(
        absl::StrCat(name, ": cannot connect: ", OneLine(opened == nullptr ? "out of memory" : PQerrorMessage(opened)),
                     "; check that the server runs, that the database is there (createdb), and that this user may "
                     "use it"));
  }
  PQsetNoticeReceiver(opened, IgnoreNotice, nullptr);
  if (PQenterPipelineMode(opened) != 1) return connection->ConnectionError();
  // Who waits for a lock that long waits for a program that does not go on; and nobody waits for us so long.
  HONE_RETURN_IF_ERROR(
      connection->Execute("SET search_path TO hone; SET synchronous_commit TO on; SET lock_timeout TO '10s'; "
                          "SET idle_in_transaction_session_timeout TO '10s'"));
  return connection;
}

PostgresConnection::~PostgresConnection() { PQfinish(connection_); }

PostgresConnection::Statement& PostgresConnection::StatementOf(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    found =
        statements_.emplace(std::string(sql), Statement{absl::StrCat("s", statements_.size()), WithDollars(sql)}).first;
  }
  return found->second;
}

absl::StatusOr<std::unique_ptr<SqlQuery>> PostgresConnection::Prepare(std::string_view sql) {
  return std::make_unique<PostgresQuery>(*this, StatementOf(sql));
}

absl::Status PostgresConnection::Send(Statement& statement, const std::vector<Parameter>& parameters) {
  HONE_RETURN_IF_ERROR(Queue(statement, parameters));
  return sent_.size() < kMostUnread ? absl::OkStatus() : Collect().status();
}

absl::Status PostgresConnection::Queue(Statement& statement, const std::vector<Parameter>& parameters) {
  if (!usable()) return ConnectionError();
  const int count = static_cast<int>(parameters.size());
  std::vector<Oid> types(count);
  std::vector<const char*> values(count);
  std::vector<int> lengths(count);
  const std::vector<int> binary(count, 1);
  for (int i = 0; i < count; ++i) {
    types[i] = parameters[i].type;
    values[i] = parameters[i].bytes.data();
    lengths[i] = static_cast<int>(parameters[i].bytes.size());
  }
  if (!statement.prepared) {
    if (PQsendPrepare(connection_, statement.name.c_str(), statement.sql.c_str(), count, types.data()) != 1) {
      return ConnectionError();
    }
    statement.prepared = true;
    sent_.push_back({.prepares = &statement});
  }
  if (PQsendQueryPrepared(connection_, statement.name.c_str(), count, values.data(), lengths.data(), binary.data(),
                          /*resultFormat=*/1) != 1) {
    return ConnectionError();
  }
  sent_.push_back({});
  return absl::OkStatus();
}

absl::Status PostgresConnection::SendSync() {
  if (PQpipelineSync(connection_) != 1) return ConnectionError();
  sent_.push_back({.sync = true});
  return absl::OkStatus();
}

absl::StatusOr<PostgresConnection::Result> PostgresConnection::Collect() {
  HONE_RETURN_IF_ERROR(SendSync());
  absl::Status failed;
  Result last;
  for (const Sent& sent : std::exchange(sent_, {})) {
    Result result(PQgetResult(connection_));
    if (result == nullptr || !usable()) return failed.ok() ? ConnectionError() : failed;
    if (sent.sync) continue;  // its result is not followed by nothing, as others are
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_FATAL_ERROR && failed.ok()) failed = ErrorOf(result.get());
    if (status == PGRES_FATAL_ERROR || status == PGRES_PIPELINE_ABORTED) {
      if (sent.prepares != nullptr) sent.prepares->prepared = false;
    }
    last = std::move(result);
    while (const PGresult* more = PQgetResult(connection_)) PQclear(const_cast<PGresult*>(more));
  }
  if (!failed.ok()) return failed;
  return last;
}

absl::Status PostgresConnection::Execute(const std::string& script) {
  HONE_RETURN_IF_ERROR(Collect().status());
  if (PQexitPipelineMode(connection_) != 1) return ConnectionError();
  const Result result(PQexec(connection_, script.c_str()));
  const ExecStatusType status = PQresultStatus(result.get());
  const absl::Status done =
      status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? absl::OkStatus() : ErrorOf(result.get());
  if (usable() && PQenterPipelineMode(connection_) != 1) return ConnectionError();
  return done;
}

absl::Status PostgresConnection::Begin(Access access) {
  writing_ = access == Access::kWrite;
  in_transaction_ = true;
  return Send(StatementOf(writing_ ? "BEGIN ISOLATION LEVEL READ COMMITTED"
                                   : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
              {});
}

absl::Status PostgresConnection::Commit() {
  HONE_RETURN_IF_ERROR(Queue(StatementOf("COMMIT"), {}));  // its result is looked at here, whatever is unread
  if (!writing_) {  // nobody waits for the end of a reader; the next user of the connection reads its result
    in_transaction_ = false;
    return SendSync();
  }
  HONE_ASSIGN_OR_RETURN(const Result result, Collect());
  in_transaction_ = false;
  // A transaction that had failed ends with ROLLBACK and no error.
  if (std::strcmp(PQcmdStatus(result.get()), "COMMIT") == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name_, ": the transaction was rolled back"));
}

void PostgresConnection::Rollback() {
  if (!in_transaction_) return;
  in_transaction_ = false;
  Collect().status().IgnoreError();
  Send(StatementOf("ROLLBACK"), {}).IgnoreError();
  if (usable()) Collect().status().IgnoreError();
}

bool PostgresConnection::usable() const { return PQstatus(connection_) == CONNECTION_OK; }

absl::StatusOr<bool> PostgresConnection::WaitForNotice(absl::Duration limit) {
  const absl::Time end = MonotonicNow() + limit;
  for (bool noticed = false;;) {
    if (PQconsumeInput(connection_) != 1) return ConnectionError();
    while (PGnotify* notice = PQnotifies(connection_)) {
      noticed = true;
      PQfreemem(notice);
    }
    if (noticed) return true;
    const absl::Duration left = end - MonotonicNow();
    if (left <= absl::ZeroDuration()) return false;
    pollfd input{PQsocket(connection_), POLLIN, 0};
    ::poll(&input, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
  }
}

absl::Status PostgresConnection::ErrorOf(const pg_result* result) const {
  const char* state = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  if (state == nullptr) return ConnectionError();
  const char* text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return absl::Status(CodeOf(state), absl::StrCat(name_, ": ", text == nullptr ? "" : text, " (SQLSTATE ", state, ")"));
}

absl::Status PostgresConnection::ConnectionError() const {
  return absl::UnavailableError(absl::StrCat(name_, ": ", OneLine(PQerrorMessage(connection_))));
}

}  // namespace hone
