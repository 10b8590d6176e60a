#include "deploy/runtime/bundle/signature.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace hone {
namespace {

constexpr char kContext[] = "hone bundle 1\n";
constexpr int kEd25519 = 1087;  // NID_ED25519
constexpr size_t kSignatureBytes = 64, kDigestBytes = 64;

// The functions of libcrypto that are needed, as its manual declares them; structures are its own.
struct Crypto {
  using Bio = void;
  using Key = void;
  using Context = void;
  using Digest = void;
  Bio* (*BIO_new_mem_buf)(const void* bytes, int size) = nullptr;
  int (*BIO_free)(Bio*) = nullptr;
  Key* (*PEM_read_bio_PUBKEY)(Bio*, Key**, void*, void*) = nullptr;
  Key* (*PEM_read_bio_PrivateKey)(Bio*, Key**, void*, void*) = nullptr;
  int (*EVP_PKEY_get_id)(const Key*) = nullptr;
  void (*EVP_PKEY_free)(Key*) = nullptr;
  Context* (*EVP_MD_CTX_new)() = nullptr;
  void (*EVP_MD_CTX_free)(Context*) = nullptr;
  const Digest* (*EVP_sha512)() = nullptr;
  int (*EVP_DigestInit_ex)(Context*, const Digest*, void*) = nullptr;
  int (*EVP_DigestUpdate)(Context*, const void*, size_t) = nullptr;
  int (*EVP_DigestFinal_ex)(Context*, unsigned char*, unsigned*) = nullptr;
  int (*EVP_DigestSignInit)(Context*, void*, const Digest*, void*, Key*) = nullptr;
  int (*EVP_DigestSign)(Context*, unsigned char*, size_t*, const unsigned char*, size_t) = nullptr;
  int (*EVP_DigestVerifyInit)(Context*, void*, const Digest*, void*, Key*) = nullptr;
  int (*EVP_DigestVerify)(Context*, const unsigned char*, size_t, const unsigned char*, size_t) = nullptr;
  bool there = false;
};

Crypto LoadCrypto() {
  Crypto crypto;
  void* library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);  // stays: it is not made to be unloaded
  if (library == nullptr) return crypto;
  crypto.there = true;
  const auto find = [&](auto* function, const char* name) {
    void* address = dlsym(library, name);
    crypto.there = crypto.there && address != nullptr;
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(address);
  };
  find(&crypto.BIO_new_mem_buf, "BIO_new_mem_buf");
  find(&crypto.BIO_free, "BIO_free");
  find(&crypto.PEM_read_bio_PUBKEY, "PEM_read_bio_PUBKEY");
  find(&crypto.PEM_read_bio_PrivateKey, "PEM_read_bio_PrivateKey");
  find(&crypto.EVP_PKEY_get_id, "EVP_PKEY_get_id");
  find(&crypto.EVP_PKEY_free, "EVP_PKEY_free");
  find(&crypto.EVP_MD_CTX_new, "EVP_MD_CTX_new");
  find(&crypto.EVP_MD_CTX_free, "EVP_MD_CTX_free");
  find(&crypto.EVP_sha512, "EVP_sha512");
  find(&crypto.EVP_DigestInit_ex, "EVP_DigestInit_ex");
  find(&crypto.EVP_DigestUpdate, "EVP_DigestUpdate");
  find(&crypto.EVP_DigestFinal_ex, "EVP_DigestFinal_ex");
  find(&crypto.EVP_DigestSignInit, "EVP_DigestSignInit");
  find(&crypto.EVP_DigestSign, "EVP_DigestSign");
  find(&crypto.EVP_DigestVerifyInit, "EVP_DigestVerifyInit");
  find(&crypto.EVP_DigestVerify, "EVP_DigestVerify");
  return crypto;
}

const Crypto& TheCrypto() {
  static const Crypto crypto = LoadCrypto();
  return crypto;
}

RuntimeError NoCrypto() {
  return {RuntimeCode::kUnsupported, "signatures need OpenSSL's libcrypto.so.3, which this system lacks; install it"};
}
RuntimeError Refused() { return {RuntimeCode::kInternal, "libcrypto refuses to work"}; }

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

using KeyHolder = std::unique_ptr<void, void (*)(void*)>;
using ContextHolder = std::unique_ptr<void, void (*)(void*)>;

// nullptr when the PEM is none of an Ed25519 key.
KeyHolder ReadKey(const Crypto& crypto, std::string_view pem, decltype(Crypto::PEM_read_bio_PUBKEY) read) {
  KeyHolder key(nullptr, crypto.EVP_PKEY_free);
  void* bio = crypto.BIO_new_mem_buf(pem.data(), static_cast<int>(std::min<size_t>(pem.size(), 1 << 16)));
  if (bio == nullptr) return key;
  // A passphrase is not asked for at the terminal: the empty one is given.
  char none[] = "";
  key.reset(read(bio, nullptr, nullptr, none));
  crypto.BIO_free(bio);
  if (key != nullptr && crypto.EVP_PKEY_get_id(key.get()) != kEd25519) key.reset();
  return key;
}

// What is signed; "" when libcrypto refuses.
std::string SignedText(const Crypto& crypto, std::span<const ArchiveMember> members) {
  const ContextHolder context(crypto.EVP_MD_CTX_new(), crypto.EVP_MD_CTX_free);
  if (context == nullptr || crypto.EVP_DigestInit_ex(context.get(), crypto.EVP_sha512(), nullptr) != 1) return "";
  bool done = true;
  const auto add = [&](std::string_view bytes) {
    done = done && crypto.EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1;
  };
  for (const ArchiveMember& member : members) {
    if (member.name == kSignatureMember) continue;
    char length[8];
    for (size_t i = 0; i < sizeof(length); ++i) length[i] = static_cast<char>(uint64_t{member.bytes.size()} >> (8 * i));
    add({member.name.c_str(), member.name.size() + 1});
    add({length, sizeof(length)});
    add(member.bytes);
  }
  unsigned char digest[kDigestBytes];
  if (!done || crypto.EVP_DigestFinal_ex(context.get(), digest, nullptr) != 1) return "";
  return kContext + std::string(reinterpret_cast<const char*>(digest), sizeof(digest));
}

}  // namespace

RuntimeResult<std::string> Signature(std::span<const ArchiveMember> members, std::string_view private_key) {
  const Crypto& crypto = TheCrypto();
  if (!crypto.there) return NoCrypto();
  const KeyHolder key = ReadKey(crypto, private_key, crypto.PEM_read_bio_PrivateKey);
  if (key == nullptr) {
    return RuntimeError(RuntimeCode::kInvalidArgument,
                        "the key is no Ed25519 private key in PEM without a passphrase; `openssl genpkey -algorithm "
                        "ed25519` writes one");
  }
  const std::string text = SignedText(crypto, members);
  const ContextHolder context(crypto.EVP_MD_CTX_new(), crypto.EVP_MD_CTX_free);
  unsigned char signature[kSignatureBytes];
  size_t size = sizeof(signature);
  if (text.empty() || context == nullptr ||
      crypto.EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      crypto.EVP_DigestSign(context.get(), signature, &size, Bytes(text), text.size()) != 1) {
    return Refused();
  }
  return std::string(reinterpret_cast<const char*>(signature), size);
}

RuntimeError CheckSignature(std::span<const ArchiveMember> members, std::string_view public_key) {
  const Crypto& crypto = TheCrypto();
  if (!crypto.there) return NoCrypto();
  const KeyHolder key = ReadKey(crypto, public_key, crypto.PEM_read_bio_PUBKEY);
  if (key == nullptr) {
    return {RuntimeCode::kInvalidArgument,
            "the key is no Ed25519 public key in PEM; `openssl pkey -in PRIVATE -pubout` writes one"};
  }
  const auto is_signature = [](const ArchiveMember& member) { return member.name == kSignatureMember; };
  const auto signature = std::ranges::find_if(members, is_signature);
  if (signature == members.end()) {
    return {RuntimeCode::kCorrupt, "is not what the holder of the key signed: it has no signature"};
  }
  const std::string text = SignedText(crypto, members);
  const ContextHolder context(crypto.EVP_MD_CTX_new(), crypto.EVP_MD_CTX_free);
  if (text.empty() || context == nullptr ||
      crypto.EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1) {
    return Refused();
  }
  const bool holds =
      std::ranges::count_if(members, is_signature) == 1 && signature->bytes.size() == kSignatureBytes &&
      crypto.EVP_DigestVerify(context.get(), Bytes(signature->bytes), kSignatureBytes, Bytes(text), text.size()) == 1;
  if (holds) return {};
  return {RuntimeCode::kCorrupt, "is not what the holder of the key signed: it was altered, or another key signed it"};
}

}  // namespace hone
