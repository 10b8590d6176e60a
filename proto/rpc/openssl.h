// OpenSSL's objects, each freed by its owner, and the certificates and keys in PEM text. For this folder alone: the
// headers of OpenSSL stay in the .cc files that include this.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace hone {

template <auto kFree>
struct OpensslFree {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using OpensslBio = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using OpensslKey = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using OpensslCertificate = std::unique_ptr<X509, OpensslFree<X509_free>>;

// nullptr when the text is not that.
inline OpensslCertificate CertificateFromPem(const std::string& pem) {
  const OpensslBio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return OpensslCertificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}
inline OpensslKey KeyFromPem(const std::string& pem) {
  const OpensslBio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  char no_password[] = "";  // else OpenSSL asks for one at the terminal
  return OpensslKey(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, no_password));
}

}  // namespace hone
