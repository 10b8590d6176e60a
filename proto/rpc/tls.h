// TLS between programs: who is at the other end is known by a certificate of the fleet's own authority, both ways.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace hone {

// PEM files: the authority's certificate, and a program's own certificate with its key. `hone ca` makes them.
struct TlsFiles {
  std::string ca, certificate, key;  // paths; all empty: no TLS
  std::string revoked = {};          // a daemon's: the authority's revocation list (revocation.h); empty: none
  bool empty() const { return ca.empty() && certificate.empty() && key.empty(); }
};

// Whether the files can serve. InvalidArgument when one is missing, is none, others may read the key, or the key is
// another's; PermissionDenied (exit code 8) when the certificate has expired or begins later. OK when none is named.
absl::Status CheckTlsFiles(const TlsFiles& files);

// Both read the files again when they change, for connections made from then on (within a second or two). The server's
// end the handshake of whoever shows no certificate of the authority's; the client's hold the daemon's certificate
// against the name or address that was dialled. TLS 1.2 or later. Plain text where `files` is empty.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsFiles& files);
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const TlsFiles& files);

// What a certificate says of its holder; parts that are not there, or there more than once, are empty.
struct CertificateSubject {
  std::string name;    // CN
  std::string tenant;  // O
  std::string role;    // OU
  std::string serial;  // hexadecimal digits: which of the authority's it is
};
// InvalidArgument when `pem` is no certificate.
absl::StatusOr<CertificateSubject> SubjectOf(const std::string& pem);

}  // namespace hone
