// Where a command finds records and jobs: a daemon by its address, or a database file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/rpc/connection_flags.h"

namespace CLI {
class App;
}

namespace grpc {
class ClientContext;
}

namespace hone {

class DaemonClient;
class TuningStore;
namespace v1 {
class BestAnswer;
class BestKey;
}  // namespace v1

struct ServiceOptions {
  std::string server;  // "unix:PATH" or "HOST:PORT"; empty: none named
  ConnectionFlags connection;
  std::string db;  // empty: DefaultDatabase()

  // --server, --db, which exclude each other, and the flags of a connection.
  void AddTo(CLI::App& command);
  std::string database() const;
};

// $HONE_DATA/hone.db, else $XDG_DATA_HOME/hone/hone.db, else ~/.local/share/hone/hone.db.
std::string DefaultDatabase();

// The daemon named by --server, or the private one of the database while it runs. Unavailable (exit code 5) says how to
// start one.
absl::StatusOr<std::unique_ptr<DaemonClient>> ConnectTo(const ServiceOptions& options);

// The database for reading; works while a daemon runs. Exit code 9 when it is not one of ours, 2 when there is none.
absl::StatusOr<std::unique_ptr<TuningStore>> OpenForReading(const ServiceOptions& options);

// Says on standard error how many rows were not served because they are damaged; nothing when there are none.
void WarnOfCorruptRows(int rows);
// What the daemon says of that at the end of a stream of records.
int CorruptRowsOf(const grpc::ClientContext& context);

// The best records for some keys, from the daemon when one is named, else from the file; all absent when there is no
// file and none was named.
absl::StatusOr<std::vector<std::optional<v1::BestAnswer>>> FindBest(const ServiceOptions& options,
                                                                    const std::vector<v1::BestKey>& keys);

}  // namespace hone
