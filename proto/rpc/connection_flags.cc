#include "proto/rpc/connection_flags.h"

#include "CLI/CLI.hpp"
#include "compiler/support/status_macros.h"
#include "proto/rpc/address.h"
#include "proto/rpc/token.h"

namespace hone {

void ConnectionFlags::AddTo(CLI::App& command) {
  command.add_option("--token-file", token_file, "file with the token for --server HOST:PORT")
      ->envname("HONE_TOKEN_FILE");
  command.add_option("--tls-ca", tls.ca, "certificate of the fleet's authority, for --server HOST:PORT with TLS")
      ->envname("HONE_TLS_CA");
  command.add_option("--tls-cert", tls.certificate, "this program's certificate")->envname("HONE_TLS_CERT");
  command.add_option("--tls-key", tls.key, "its key")->envname("HONE_TLS_KEY");
}

absl::StatusOr<Credentials> ConnectionFlags::Read(const std::string& address) const {
  Credentials credentials;
  if (!IsUnixAddress(address)) {
    HONE_RETURN_IF_ERROR(CheckTlsFiles(tls));
    credentials.tls = tls;
  }
  if (!token_file.empty()) {
    absl::StatusOr<std::string> token = ReadToken(token_file);
    if (!token.ok()) return Annotate(token.status(), "--token-file");
    credentials.token = *std::move(token);
  }
  return credentials;
}

std::vector<std::pair<std::string, std::string>> ConnectionFlags::Given() const {
  std::vector<std::pair<std::string, std::string>> given;
  for (const auto& [flag, value] : {std::pair<std::string, std::string>{"--token-file", token_file},
                                    {"--tls-ca", tls.ca},
                                    {"--tls-cert", tls.certificate},
                                    {"--tls-key", tls.key}}) {
    if (!value.empty()) given.emplace_back(flag, value);
  }
  return given;
}

}  // namespace hone
