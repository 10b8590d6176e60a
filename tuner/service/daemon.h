// The daemon: a store, a core, a server. `honed` is this with a command line.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/rpc/tls.h"
#include "tuner/service/access/call_meter.h"
#include "tuner/service/core/core.h"
#include "tuner/service/endpoints/listener.h"

namespace hone {

struct DaemonOptions {
  std::string db;  // the SQLite file, or the URL of a PostgreSQL database
  // Each "unix:PATH" (mode 0600) or "HOST:PORT", which needs TLS, or `insecure` and tokens. None: the owner's address
  // of the database (proto/rpc/address.h), which is no port.
  std::vector<std::string> listen;
  std::string token_file;  // TokenTable's; empty: none
  TlsFiles tls;            // of every HOST:PORT; read again when they change
  bool insecure = false;   // HOST:PORT may be plain text, tokens included
  // Of each caller by token or certificate, and of its tenant; the owner's are those of memory, threads and silence.
  CallLimits call_limits;
  ConnectionLimits connections;  // of each HOST:PORT
  absl::Duration exit_when_idle =
      absl::InfiniteDuration();  // ends, and its workers with it, when nobody needs it this long
  std::string http;              // HOST:PORT of metrics and health; "": none
  CoreOptions core;
};

class Daemon {
 public:
  // InvalidArgument for options that can never work, FailedPrecondition when the database has another writer,
  // Unavailable when the address cannot be listened on, DataLoss for an unreadable database, PermissionDenied when the
  // sandbox of searches lacks a layer that it may not.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options);
  ~Daemon();

  // In the order of `listen`, with the ports that were chosen for port 0.
  const std::vector<std::string>& addresses() const { return addresses_; }
  std::string http_address() const;  // "" without one
  // Until `RequestStop`, idleness or a failure of the store, which is returned. Then everything is written and closed;
  // but nothing is when the database is no longer there (DataLoss): another daemon may serve in its place already.
  absl::Status Serve();
  void RequestStop() { stop_ = true; }  // from any thread

 private:
  struct Parts;
  Daemon();
  std::unique_ptr<Parts> parts_;
  std::vector<std::string> addresses_;
  std::atomic<bool> stop_{false};
};

}  // namespace hone
