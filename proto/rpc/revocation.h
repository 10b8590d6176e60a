// Which of an authority's certificates no longer count: a revocation list (CRL, RFC 5280) that the authority has
// signed, in a file beside its certificate. `hone ca revoke` writes it, a daemon reads it.
#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

class RevocationList {
 public:
  RevocationList() = default;  // nothing is revoked
  // InvalidArgument when the file is no list, or not signed by the authority whose certificate is at `ca`.
  static absl::StatusOr<RevocationList> Read(const std::string& path, const std::string& ca);

  // By the serial number as CertificateSubject has it.
  bool Has(const std::string& serial) const { return serials_.count(serial) != 0; }
  size_t size() const { return serials_.size(); }

 private:
  std::set<std::string> serials_;
};

// Revokes all certificates that the authority in the folder ever issued to that holder, and returns how many are new on
// its list, FOLDER/ca.crl. NotFound when it issued none, or there is no authority.
absl::StatusOr<int> RevokeCertificates(const std::string& folder, const std::string& role, const std::string& name);

}  // namespace hone
