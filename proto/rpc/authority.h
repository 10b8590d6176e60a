// A fleet's own certificate authority: a folder with the authority's key and what it issued. Keys are P-256, signatures
// ECDSA with SHA-256.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/rpc/tls.h"

namespace hone {

// Makes `folder` where there is none, and in it ca.crt, ca.key (mode 0600) and an empty revocation list, ca.crl.
// InvalidArgument when an authority is there already: with another key nothing that it issued would be worth anything.
absl::Status MakeAuthority(const std::string& folder, absl::Time until);

struct CertificateRequest {
  std::string role;    // OU: "daemon" for honed, else what the caller may do ("worker")
  std::string tenant;  // O
  // Host names and IP addresses of the holder, at least one; clients dial a daemon by one of them.
  std::vector<std::string> names;
  absl::Time from, until;
};
// Writes ROLE-NAME.crt and ROLE-NAME.key (mode 0600) beside the authority's, over what the same holder had before, and
// returns the paths of all three. A daemon's certificate serves in no other role, and none other's as a daemon's.
// NotFound when there is no authority in the folder, InvalidArgument for a name that is none.
absl::StatusOr<TlsFiles> IssueCertificate(const std::string& folder, const CertificateRequest& request);

}  // namespace hone
