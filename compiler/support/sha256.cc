#include "compiler/support/sha256.h"

#include <openssl/evp.h>

#include "compiler/support/check.h"

namespace hone {

std::string Sha256(std::string_view bytes) {
  std::string digest(32, '\0');
  unsigned int size = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                            EVP_sha256(), nullptr);
  HONE_CHECK(ok == 1 && size == 32) << "OpenSSL refused SHA-256";
  return digest;
}

std::string ToHex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const unsigned char byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace hone
