#include "proto/rpc/authority.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/authority_files.h"
#include "proto/rpc/openssl.h"
#include "proto/rpc/token.h"

namespace hone {
namespace {

constexpr int kSerialBits = 127;  // positive, and unguessable as RFC 5280 and the CA/Browser Forum ask
constexpr size_t kLongestName = 200;
constexpr char kDaemon[] = "daemon";

bool IsAddress(const std::string& name) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, name.c_str(), bytes) == 1 || inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

bool IsHostName(const std::string& name) {
  const auto fits = [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= kLongestName && name[0] != '-' && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), fits);
}

bool SetSerial(X509* certificate) {
  const std::unique_ptr<BIGNUM, OpensslFree<BN_free>> number(BN_new());
  return BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool AddName(X509_NAME* subject, const char* field, const std::string& value) {
  return value.empty() ||
         X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

struct Extension {
  int nid;
  std::string value;
};

// A certificate of `subject` for `key`, signed by `issuer_key`; `issuer` nullptr: by itself.
absl::StatusOr<OpensslCertificate> Sign(const CertificateSubject& subject, EVP_PKEY* key, X509* issuer,
                                        EVP_PKEY* issuer_key, absl::Time from, absl::Time until,
                                        const std::vector<Extension>& extensions) {
  OpensslCertificate certificate(X509_new());
  X509* made = certificate.get();
  X509_NAME* name = X509_get_subject_name(made);
  bool ok = X509_set_version(made, X509_VERSION_3) == 1 && SetSerial(made) &&
            ASN1_TIME_set(X509_getm_notBefore(made), absl::ToTimeT(from)) != nullptr &&
            ASN1_TIME_set(X509_getm_notAfter(made), absl::ToTimeT(until)) != nullptr &&
            X509_set_pubkey(made, key) == 1 && AddName(name, "O", subject.tenant) &&
            AddName(name, "OU", subject.role) && AddName(name, "CN", subject.name) &&
            X509_set_issuer_name(made, issuer == nullptr ? name : X509_get_subject_name(issuer)) == 1;
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer == nullptr ? made : issuer, made, nullptr, nullptr, 0);
  for (const Extension& extension : extensions) {
    const std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>> added(
        X509V3_EXT_conf_nid(nullptr, &context, extension.nid, extension.value.c_str()));
    ok = ok && added != nullptr && X509_add_ext(made, added.get(), -1) == 1;
  }
  ok = ok && X509_sign(made, issuer_key, EVP_sha256()) > 0;
  if (!ok) return OpensslError("making a certificate");
  return certificate;
}

std::string ToPem(X509* certificate) {
  const OpensslBio bio(BIO_new(BIO_s_mem()));
  return PEM_write_bio_X509(bio.get(), certificate) == 1 ? Contents(bio) : "";
}
std::string ToPem(EVP_PKEY* key) {
  const OpensslBio bio(BIO_new(BIO_s_mem()));
  return PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1 ? Contents(bio) : "";
}

// Its owner's alone from the first byte on.
absl::Status WriteSecret(const std::string& path, const std::string& bytes) {
  const std::string fresh = absl::StrCat(path, ".tmp.", ::getpid());
  ::unlink(fresh.c_str());
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool ok =
      fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (ok && ::rename(fresh.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const int reason = ok ? errno : error;
  ::unlink(fresh.c_str());
  return absl::PermissionDeniedError(absl::StrCat("cannot write ", path, ": ", std::strerror(reason)));
}

absl::Status WritePair(const std::string& certificate_path, X509* certificate, const std::string& key_path,
                       EVP_PKEY* key) {
  const std::string certificate_pem = ToPem(certificate), key_pem = ToPem(key);
  if (certificate_pem.empty() || key_pem.empty()) return OpensslError("writing a certificate");
  HONE_RETURN_IF_ERROR(WriteSecret(key_path, key_pem));
  return WriteFileAtomically(certificate_path, certificate_pem);
}

absl::Status NoteIssued(const std::string& folder, const std::string& serial, const std::string& role,
                        const std::string& name) {
  const std::string path = AccountPath(folder), line = absl::StrCat(serial, " ", role, " ", name, "\n");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const bool ok =
      fd >= 0 && ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (ok) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

}  // namespace

absl::Status OpensslError(const std::string& what) {
  char reason[256] = "";
  ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", reason));
}

std::string Contents(const OpensslBio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string SerialText(const ASN1_INTEGER* serial) {
  const std::unique_ptr<BIGNUM, OpensslFree<BN_free>> number(ASN1_INTEGER_to_BN(serial, nullptr));
  char* digits = number == nullptr ? nullptr : BN_bn2hex(number.get());
  const std::string text = digits == nullptr ? "" : digits;
  OPENSSL_free(digits);
  return text;
}

absl::StatusOr<AuthorityFiles> ReadAuthority(const std::string& folder) {
  const std::string key_path = folder + "/ca.key";
  if (!std::filesystem::exists(key_path)) {
    return absl::NotFoundError(absl::StrCat(folder, " has no authority; make one with hone ca init ", folder));
  }
  HONE_ASSIGN_OR_RETURN(const std::string certificate, ReadFile(folder + "/ca.crt"));
  HONE_ASSIGN_OR_RETURN(const std::string key, ReadSecretFile(key_path));
  AuthorityFiles authority{CertificateFromPem(certificate), KeyFromPem(key)};
  if (authority.certificate == nullptr || authority.key == nullptr ||
      X509_check_private_key(authority.certificate.get(), authority.key.get()) != 1) {
    ERR_clear_error();
    return absl::DataLossError(absl::StrCat(folder, ": ca.crt and ca.key are not an authority's certificate and key"));
  }
  return authority;
}

absl::Status MakeAuthority(const std::string& folder, absl::Time until) {
  const std::string certificate_path = folder + "/ca.crt", key_path = folder + "/ca.key";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat("cannot make ", folder, ": ", error.message()));
  if (std::filesystem::exists(key_path) || std::filesystem::exists(certificate_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " has an authority already; choose another folder, or issue from this one"));
  }
  const OpensslKey key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpensslError("making a key");
  HONE_ASSIGN_OR_RETURN(const OpensslCertificate certificate,
                        Sign({.name = "Hone authority", .tenant = "", .role = ""}, key.get(), nullptr, key.get(),
                             absl::Now() - absl::Minutes(5), until,
                             {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                              {NID_key_usage, "critical,keyCertSign,cRLSign"},
                              {NID_subject_key_identifier, "hash"}}));
  HONE_RETURN_IF_ERROR(WritePair(certificate_path, certificate.get(), key_path, key.get()));
  return WriteRevocationList(folder, certificate.get(), key.get(), {});
}

absl::StatusOr<TlsFiles> IssueCertificate(const std::string& folder, const CertificateRequest& request) {
  if (request.names.empty()) return absl::InvalidArgumentError("a certificate needs the name of its holder");
  std::vector<std::string> also_known_as;
  for (const std::string& name : request.names) {
    if (!IsAddress(name) && !IsHostName(name)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is neither a host's name nor an IP address"));
    }
    also_known_as.push_back(absl::StrCat(IsAddress(name) ? "IP:" : "DNS:", name));
  }
  HONE_ASSIGN_OR_RETURN(const AuthorityFiles authority, ReadAuthority(folder));
  const OpensslKey key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpensslError("making a key");
  const std::string& name = request.names[0];
  HONE_ASSIGN_OR_RETURN(const OpensslCertificate certificate,
                        Sign({.name = name.substr(0, 64), .tenant = request.tenant, .role = request.role}, key.get(),
                             authority.certificate.get(), authority.key.get(), request.from, request.until,
                             {{NID_basic_constraints, "critical,CA:FALSE"},
                              {NID_key_usage, "critical,digitalSignature"},
                              {NID_ext_key_usage, request.role == kDaemon ? "serverAuth" : "clientAuth"},
                              {NID_subject_alt_name, absl::StrJoin(also_known_as, ",")},
                              {NID_authority_key_identifier, "keyid:always"}}));
  const std::string path = CertificatePath(folder, request.role, name);
  const TlsFiles files{folder + "/ca.crt", path, absl::StrCat(absl::StripSuffix(path, ".crt"), ".key")};
  // First: what is not in the account cannot be revoked once the next one lies in its place.
  HONE_RETURN_IF_ERROR(NoteIssued(folder, SerialText(X509_get0_serialNumber(certificate.get())), request.role, name));
  HONE_RETURN_IF_ERROR(WritePair(files.certificate, certificate.get(), files.key, key.get()));
  return files;
}

}  // namespace hone
