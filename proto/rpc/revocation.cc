#include "proto/rpc/revocation.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/authority_files.h"
#include "proto/rpc/openssl.h"
#include "proto/rpc/tls.h"

namespace hone {
namespace {

using OpensslCrl = std::unique_ptr<X509_CRL, OpensslFree<X509_CRL_free>>;
using OpensslSerial = std::unique_ptr<ASN1_INTEGER, OpensslFree<ASN1_INTEGER_free>>;

OpensslCrl CrlFromPem(const std::string& pem) {
  const OpensslBio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return OpensslCrl(PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr));
}

OpensslSerial SerialFromText(const std::string& serial) {
  BIGNUM* number = nullptr;
  if (BN_hex2bn(&number, serial.c_str()) == 0) return nullptr;
  const std::unique_ptr<BIGNUM, OpensslFree<BN_free>> owned(number);
  return OpensslSerial(BN_to_ASN1_INTEGER(number, nullptr));
}

std::set<std::string> SerialsOf(X509_CRL* crl) {
  std::set<std::string> serials;
  STACK_OF(X509_REVOKED)* all = X509_CRL_get_REVOKED(crl);
  for (int i = 0; i < sk_X509_REVOKED_num(all); ++i) {
    serials.insert(SerialText(X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(all, i))));
  }
  return serials;
}

}  // namespace

absl::StatusOr<RevocationList> RevocationList::Read(const std::string& path, const std::string& ca) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  HONE_ASSIGN_OR_RETURN(const std::string authority_text, ReadFile(ca));
  const OpensslCrl crl = CrlFromPem(text);
  const OpensslCertificate authority = CertificateFromPem(authority_text);
  const bool signed_by_it =
      crl != nullptr && authority != nullptr && X509_CRL_verify(crl.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  if (crl == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a revocation list in PEM form; hone ca revoke writes one"));
  }
  if (!signed_by_it) return absl::InvalidArgumentError(absl::StrCat(path, ": not signed by the authority of ", ca));
  RevocationList list;
  list.serials_ = SerialsOf(crl.get());
  return list;
}

absl::Status WriteRevocationList(const std::string& folder, X509* authority, EVP_PKEY* key,
                                 const std::set<std::string>& serials) {
  const OpensslCrl crl(X509_CRL_new());
  const std::unique_ptr<ASN1_TIME, OpensslFree<ASN1_TIME_free>> now(ASN1_TIME_set(nullptr, absl::ToTimeT(absl::Now())));
  // It counts until there is another, or as long as the authority does.
  bool ok = X509_CRL_set_version(crl.get(), X509_CRL_VERSION_2) == 1 &&
            X509_CRL_set_issuer_name(crl.get(), X509_get_subject_name(authority)) == 1 &&
            X509_CRL_set1_lastUpdate(crl.get(), now.get()) == 1 &&
            X509_CRL_set1_nextUpdate(crl.get(), X509_get0_notAfter(authority)) == 1;
  for (const std::string& serial : serials) {
    std::unique_ptr<X509_REVOKED, OpensslFree<X509_REVOKED_free>> entry(X509_REVOKED_new());
    const OpensslSerial number = SerialFromText(serial);
    ok = ok && number != nullptr && X509_REVOKED_set_serialNumber(entry.get(), number.get()) == 1 &&
         X509_REVOKED_set_revocationDate(entry.get(), now.get()) == 1 &&
         X509_CRL_add0_revoked(crl.get(), entry.get()) == 1;
    if (ok) entry.release();  // the list has it
  }
  ok = ok && X509_CRL_sort(crl.get()) == 1 && X509_CRL_sign(crl.get(), key, EVP_sha256()) > 0;
  const OpensslBio bio(BIO_new(BIO_s_mem()));
  ok = ok && PEM_write_bio_X509_CRL(bio.get(), crl.get()) == 1;
  if (!ok) return OpensslError("making a revocation list");
  return WriteFileAtomically(RevocationPath(folder), Contents(bio));
}

absl::StatusOr<int> RevokeCertificates(const std::string& folder, const std::string& role, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const AuthorityFiles authority, ReadAuthority(folder));
  std::set<std::string> issued;
  const std::string certificate = CertificatePath(folder, role, name);
  if (std::filesystem::exists(certificate)) {  // of an authority that kept no account of what it issued
    HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(certificate));
    HONE_ASSIGN_OR_RETURN(const CertificateSubject subject, SubjectOf(text));
    issued.insert(subject.serial);
  }
  const std::string account =
      std::filesystem::exists(AccountPath(folder)) ? ReadFile(AccountPath(folder)).value_or("") : "";
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(account, '\n'))) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    if (fields.size() == 3 && fields[1] == role && fields[2] == name) issued.insert(fields[0]);
  }
  if (issued.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, " has issued no certificate of role ", role, " to ", name));
  }
  std::set<std::string> revoked;
  if (std::filesystem::exists(RevocationPath(folder))) {
    HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(RevocationPath(folder)));
    const OpensslCrl before = CrlFromPem(text);
    ERR_clear_error();
    if (before == nullptr) return absl::DataLossError(absl::StrCat(RevocationPath(folder), ": not a revocation list"));
    revoked = SerialsOf(before.get());
  }
  const size_t known = revoked.size();
  revoked.merge(issued);
  HONE_RETURN_IF_ERROR(WriteRevocationList(folder, authority.certificate.get(), authority.key.get(), revoked));
  return static_cast<int>(revoked.size() - known);
}

}  // namespace hone
