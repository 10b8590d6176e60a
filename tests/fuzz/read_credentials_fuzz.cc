// The readers of what says who somebody is: files of tokens, and certificates and revocation lists. OpenSSL reads the
// latter; of them these inputs are the binary form, since no mutation of its text would be one.
#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "proto/rpc/revocation.h"
#include "proto/rpc/tls.h"
#include "proto/rpc/token.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/messages.h"
#include "tuner/service/access/token_table.h"

namespace {

std::string Pem(const char* what, const std::string& binary) {
  std::string text(4 * (binary.size() / 3 + 1) + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(binary.data()), static_cast<int>(binary.size()));
  text.resize(static_cast<size_t>(size));
  for (size_t at = 64; at < text.size(); at += 65) text.insert(at, "\n");
  return absl::StrCat("-----BEGIN ", what, "-----\n", text, "\n-----END ", what, "-----\n");
}

void CheckRefusal(const absl::Status& status) {
  HONE_CHECK(absl::IsInvalidArgument(status) && !status.message().empty()) << status;
}

// ---- a kind of file each ----

void TokensOfADaemon(FuzzedDataProvider& bytes) {
  const hone::InputFile file(bytes.ConsumeRemainingBytesAsString());
  const auto table = hone::TokenTable::Read(file.path());
  if (!table.ok()) return CheckRefusal(table.status());
  HONE_CHECK(!table->empty() && table->Find("") == nullptr);
}

void TokenOfACaller(FuzzedDataProvider& bytes) {
  const hone::InputFile file(bytes.ConsumeRemainingBytesAsString());
  const auto token = hone::ReadToken(file.path());
  if (!token.ok()) return CheckRefusal(token.status());
  HONE_CHECK(hone::IsToken(*token)) << *token;
}

void Certificate(FuzzedDataProvider& bytes) {
  const auto subject = hone::SubjectOf(Pem("CERTIFICATE", bytes.ConsumeRemainingBytesAsString()));
  if (!subject.ok()) CheckRefusal(subject.status());
}

void Revocations(FuzzedDataProvider& bytes) {
  const std::string authority = Pem("CERTIFICATE", bytes.ConsumeRandomLengthString());
  const hone::InputFile ca(authority), list(Pem("X509 CRL", bytes.ConsumeRemainingBytesAsString()));
  const auto revoked = hone::RevocationList::Read(list.path(), ca.path());
  if (!revoked.ok()) CheckRefusal(revoked.status());
}

constexpr hone::ReadMessage kMessages[] = {TokensOfADaemon, TokenOfACaller, Certificate, Revocations};

}  // namespace

std::span<const hone::ReadMessage> hone::Messages() { return kMessages; }
