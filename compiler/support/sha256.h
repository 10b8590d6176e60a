// SHA-256 (FIPS 180-4) by OpenSSL: the digest of workloads, objects and models.
#pragma once

#include <string>
#include <string_view>

namespace hone {

std::string Sha256(std::string_view bytes);  // 32 bytes
std::string ToHex(std::string_view bytes);   // lower case

}  // namespace hone
