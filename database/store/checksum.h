// Checksums of rows and lines: SHA-256 over the fields in order, each with its length in front, so that no two
// different rows run together into the same bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "compiler/support/sha256.h"

namespace hone {

class Digester {
 public:
  Digester& Add(std::string_view bytes) {
    Raw(bytes.size());
    text_.insert(text_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Digester& Add(int64_t value) { return Raw(static_cast<uint64_t>(value)); }
  Digester& Add(double value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    return Raw(bits);
  }
  std::string Finish() const { return Sha256(bytes()); }              // 32 bytes
  std::string Short() const { return Sha256(bytes()).substr(0, 8); }  // enough against accidents

 private:
  Digester& Raw(uint64_t value) {
    char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
    text_.insert(text_.end(), bytes, bytes + sizeof(bytes));
    return *this;
  }
  std::string_view bytes() const { return {text_.data(), text_.size()}; }

  absl::InlinedVector<char, 512> text_;
};

}  // namespace hone
