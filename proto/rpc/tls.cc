#include "proto/rpc/tls.h"

#include <openssl/err.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "proto/rpc/authority_files.h"
#include "proto/rpc/openssl.h"
#include "proto/rpc/revocation.h"
#include "proto/rpc/token.h"

namespace hone {
namespace {

constexpr unsigned kRefreshSeconds = 1;

std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> Watch(const TlsFiles& files) {
  return std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(files.key, files.certificate, files.ca,
                                                                              kRefreshSeconds);
}

// The only entry of that kind; empty when there is none or there are several.
std::string Entry(X509_NAME* subject, int nid) {
  const int at = X509_NAME_get_index_by_NID(subject, nid, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, nid, at) >= 0) return "";
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return "";
  const std::string entry(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  return entry;
}

std::string TextOf(const ASN1_TIME* time) {
  struct tm parts {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "a time that cannot be read";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromTM(parts, absl::UTCTimeZone()), absl::UTCTimeZone());
}

absl::StatusOr<OpensslCertificate> ReadCertificate(const char* flag, const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return Annotate(text.status(), flag);
  OpensslCertificate certificate = CertificateFromPem(*text);
  ERR_clear_error();
  if (certificate != nullptr) return certificate;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", path, ": not a certificate in PEM form; hone ca makes one"));
}

absl::Status CheckDates(const char* flag, const std::string& path, const X509& certificate) {
  const ASN1_TIME *from = X509_get0_notBefore(&certificate), *until = X509_get0_notAfter(&certificate);
  const bool early = X509_cmp_current_time(from) > 0;
  if (!early && X509_cmp_current_time(until) > 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(flag, " ", path, ": the certificate ", early ? "begins" : "expired",
                                                  " on ", TextOf(early ? from : until),
                                                  "; hone ca issue makes another (or the clock here is wrong)"));
}

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files) {
  if (files.empty()) return absl::OkStatus();
  if (files.ca.empty() || files.certificate.empty() || files.key.empty()) {
    return absl::InvalidArgumentError(
        "--tls-ca, --tls-cert and --tls-key go together: the authority's certificate, this program's, and its key");
  }
  HONE_ASSIGN_OR_RETURN(const OpensslCertificate ca, ReadCertificate("--tls-ca", files.ca));
  HONE_RETURN_IF_ERROR(CheckDates("--tls-ca", files.ca, *ca));
  HONE_ASSIGN_OR_RETURN(const OpensslCertificate certificate, ReadCertificate("--tls-cert", files.certificate));
  HONE_RETURN_IF_ERROR(CheckDates("--tls-cert", files.certificate, *certificate));
  absl::StatusOr<std::string> text = ReadSecretFile(files.key);
  if (!text.ok()) return Annotate(text.status(), "--tls-key");
  const OpensslKey key = KeyFromPem(*text);
  const bool fits = key != nullptr && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (fits && files.revoked.empty()) return absl::OkStatus();
  if (fits) return Annotate(RevocationList::Read(files.revoked, files.ca).status(), "--tls-crl");
  return absl::InvalidArgumentError(absl::StrCat("--tls-key ", files.key,
                                                 key == nullptr
                                                     ? ": not a private key in PEM form"
                                                     : ": the key of another certificate than " + files.certificate));
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsFiles& files) {
  if (files.empty()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(Watch(files));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const TlsFiles& files) {
  if (files.empty()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Watch(files));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

absl::StatusOr<CertificateSubject> SubjectOf(const std::string& pem) {
  const OpensslCertificate certificate = CertificateFromPem(pem);
  ERR_clear_error();
  if (certificate == nullptr) return absl::InvalidArgumentError("not a certificate in PEM form");
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  return CertificateSubject{.name = Entry(subject, NID_commonName),
                            .tenant = Entry(subject, NID_organizationName),
                            .role = Entry(subject, NID_organizationalUnitName),
                            .serial = SerialText(X509_get0_serialNumber(certificate.get()))};
}

}  // namespace hone
