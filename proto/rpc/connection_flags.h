// The flags by which a program is told what to show a daemon.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/rpc/channel.h"

namespace CLI {
class App;
}

namespace hone {

struct ConnectionFlags {
  std::string token_file;
  TlsFiles tls;

  // --token-file, --tls-ca, --tls-cert and --tls-key, each also from $HONE_TOKEN_FILE, $HONE_TLS_CA, ...
  void AddTo(CLI::App& command);
  // What the flags name, read and checked, for a daemon at that address: errors as of ReadToken and CheckTlsFiles. Over
  // a Unix socket there is no TLS, and its files are not looked at.
  absl::StatusOr<Credentials> Read(const std::string& address) const;
  // Those that were given, as ("--token-file", "FILE").
  std::vector<std::pair<std::string, std::string>> Given() const;
};

}  // namespace hone
