// SHA-256 (FIPS 180-4) by OpenSSL: the digest of workloads, objects and models.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

inline constexpr size_t kSha256Bytes = 32;
std::string Sha256(std::string_view bytes);  // so many bytes
// The same of bytes that come in pieces.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  void Add(std::string_view piece);
  std::string Finish();  // of all pieces; once

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};
// The same of a file's bytes, which are not held in memory. Errors as ReadFile's (file.h).
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);
std::string ToHex(std::string_view bytes);  // lower case

}  // namespace hone
