#include "compiler/support/sha256.h"

#include <openssl/evp.h>

#include <memory>

#include "compiler/support/check.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Found once: what EVP_sha256() gives is looked up again by every digest, which takes longer than a short text does.
const EVP_MD* Algorithm() {
  static const EVP_MD* const found = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return found;
}

}  // namespace

std::string Sha256(std::string_view bytes) {
  // One a thread: to make and free one takes longer than the digest of a short text.
  thread_local const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), EVP_MD_CTX_free};
  std::string digest(32, '\0');
  const bool ok = EVP_DigestInit_ex(context.get(), Algorithm(), nullptr) == 1 &&
                  EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1 &&
                  EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1;
  HONE_CHECK(ok) << "OpenSSL refused SHA-256";
  return digest;
}

struct Sha256Stream::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest{EVP_MD_CTX_new(), EVP_MD_CTX_free};
  bool ok = EVP_DigestInit_ex(digest.get(), Algorithm(), nullptr) == 1;
};

Sha256Stream::Sha256Stream() : context_(std::make_unique<Context>()) {}
Sha256Stream::~Sha256Stream() = default;

void Sha256Stream::Add(std::string_view piece) {
  context_->ok = context_->ok && EVP_DigestUpdate(context_->digest.get(), piece.data(), piece.size()) == 1;
}

std::string Sha256Stream::Finish() {
  std::string digest(32, '\0');
  unsigned char* const to = reinterpret_cast<unsigned char*>(digest.data());
  HONE_CHECK(context_->ok && EVP_DigestFinal_ex(context_->digest.get(), to, nullptr) == 1) << "OpenSSL refused SHA-256";
  return digest;
}

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  Sha256Stream stream;
  HONE_RETURN_IF_ERROR(ReadInPieces(path, [&](std::string_view piece) { stream.Add(piece); }));
  return stream.Finish();
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
