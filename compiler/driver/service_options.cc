#include "compiler/driver/service_options.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "compiler/driver/exit_code.h"
#include "compiler/support/status_macros.h"
#include "database/sqlite/sqlite_store.h"
#include "database/store/store.h"
#include "proto/rpc/address.h"
#include "tuner/service/client.h"

namespace hone {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
constexpr size_t kKeysAtOnce = 64;  // of a look-up: the records have to fit into one message

absl::Status NoService(absl::Status status) { return WithExitCode(ExitCode::kNoService, std::move(status)); }

}  // namespace

void ServiceOptions::AddTo(CLI::App& command) {
  CLI::Option* address = command.add_option("--server", server, "address of a daemon: unix:PATH or HOST:PORT");
  connection.AddTo(command);
  command.add_option("--db", db, absl::StrCat("database file (default ", DefaultDatabase(), ")"))->excludes(address);
}

std::string ServiceOptions::database() const { return db.empty() ? DefaultDatabase() : db; }

std::string DefaultDatabase() {
  if (const char* data = std::getenv("HONE_DATA")) return std::string(data) + "/hone.db";
  if (const char* data = std::getenv("XDG_DATA_HOME")) return std::string(data) + "/hone/hone.db";
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.local/share/hone/hone.db";
}

absl::StatusOr<std::unique_ptr<DaemonClient>> ConnectTo(const ServiceOptions& options) {
  if (!options.server.empty()) {
    HONE_ASSIGN_OR_RETURN(const Credentials credentials, options.connection.Read(options.server));
    HONE_RETURN_IF_ERROR(ProbeSocket(options.server));  // what cannot answer is not waited for
    return DaemonClient::Connect(options.server, credentials, kConnectTimeout);
  }
  const std::string address = AddressOfDaemon(options.database());
  if (address.empty()) {
    return NoService(absl::UnavailableError(
        absl::StrCat("no daemon runs on ", options.database(),
                     " (hone tune starts one for as long as its job lasts); name a shared one by --server ADDR")));
  }
  HONE_ASSIGN_OR_RETURN(const Credentials credentials, options.connection.Read(address));
  return DaemonClient::Connect(address, credentials, kConnectTimeout);
}

absl::StatusOr<std::unique_ptr<TuningStore>> OpenForReading(const ServiceOptions& options) {
  absl::StatusOr<std::unique_ptr<TuningStore>> store = OpenSqliteStore(options.database(), StoreMode::kRead);
  if (!store.ok() && absl::IsNotFound(store.status())) return WithExitCode(ExitCode::kUsage, store.status());
  return store;
}

void WarnOfCorruptRows(int rows) {
  if (rows <= 0) return;
  std::fprintf(stderr, "%d rows of the database are left out: their checksums do not match\n", rows);
}

int CorruptRowsOf(const grpc::ClientContext& context) {
  const auto& trailing = context.GetServerTrailingMetadata();
  const auto found = trailing.find(kCorruptRows);
  return found == trailing.end() ? 0 : std::atoi(std::string(found->second.data(), found->second.size()).c_str());
}

absl::StatusOr<std::vector<std::optional<v1::BestAnswer>>> FindBest(const ServiceOptions& options,
                                                                    const std::vector<v1::BestKey>& keys) {
  std::vector<std::optional<v1::BestAnswer>> answers(keys.size());
  if (!options.server.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options));
    int corrupt = 0;
    for (size_t first = 0; first < keys.size(); first += kKeysAtOnce) {
      v1::BestRecordsRequest request;
      const size_t end = std::min(keys.size(), first + kKeysAtOnce);
      for (size_t i = first; i < end; ++i) *request.add_keys() = keys[i];
      v1::BestRecordsReply reply;
      HONE_RETURN_IF_ERROR(FromGrpc(client->tune().BestRecords(client->Context().get(), request, &reply)));
      corrupt += static_cast<int>(reply.corrupt());
      for (size_t i = first; i < end && i - first < static_cast<size_t>(reply.answers_size()); ++i) {
        const v1::BestAnswer& answer = reply.answers(static_cast<int>(i - first));
        if (answer.has_record()) answers[i] = answer;
      }
    }
    WarnOfCorruptRows(corrupt);
    return answers;
  }
  if (options.db.empty() && !std::filesystem::exists(options.database())) return answers;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store, OpenForReading(options));
  HONE_ASSIGN_OR_RETURN(const BestEntries best, store->Best(kLocalTenant, keys));
  WarnOfCorruptRows(best.corrupt);
  for (size_t i = 0; i < best.entries.size(); ++i) {
    const std::optional<BestEntry>& entry = best.entries[i];
    if (!entry.has_value()) continue;
    v1::BestAnswer answer;
    *answer.mutable_record() = entry->row.record;
    answer.mutable_record()->set_origin(entry->row.origin);
    answer.set_exact(entry->exact);
    answer.set_faster_default(entry->faster_default);
    answers[i] = std::move(answer);
  }
  return answers;
}

}  // namespace hone
