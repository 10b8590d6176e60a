// What an authority's folder holds, for the files here that read and write it. Not for others: it speaks OpenSSL.
#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/rpc/openssl.h"

namespace hone {

inline std::string CertificatePath(const std::string& folder, const std::string& role, const std::string& name) {
  return absl::StrCat(folder, "/", role, "-", name, ".crt");
}
inline std::string RevocationPath(const std::string& folder) { return folder + "/ca.crl"; }
// A line for each certificate ever issued: its serial number, the holder's role and name.
inline std::string AccountPath(const std::string& folder) { return folder + "/issued"; }

struct AuthorityFiles {
  OpensslCertificate certificate;
  OpensslKey key;
};
// NotFound when the folder has no authority, DataLoss when its files are none.
absl::StatusOr<AuthorityFiles> ReadAuthority(const std::string& folder);

absl::Status WriteRevocationList(const std::string& folder, X509* authority, EVP_PKEY* key,
                                 const std::set<std::string>& serials);

// What OpenSSL says of its latest error.
absl::Status OpensslError(const std::string& what);
// Of a memory BIO.
std::string Contents(const OpensslBio& bio);
// Hexadecimal digits; "" for none.
std::string SerialText(const ASN1_INTEGER* serial);

}  // namespace hone
