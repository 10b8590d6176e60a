// Checksums of images and archives: a fast 64-bit hash that any damaged byte changes. It guards against accidents, not
// against an adversary, who can compute it too; what a file says is checked beyond it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hone {

// Four interleaved lanes of multiply and rotate over 8-byte words, in the manner of xxHash64: as fast as memory.
uint64_t Hash64(const void* bytes, size_t size, uint64_t seed = 0);
inline uint64_t Hash64(std::string_view bytes, uint64_t seed = 0) { return Hash64(bytes.data(), bytes.size(), seed); }

// The same of bytes that come in pieces.
class Hash64Stream {
 public:
  explicit Hash64Stream(uint64_t seed = 0);
  void Add(std::string_view piece);
  uint64_t Finish() const;  // of all pieces added so far

 private:
  static constexpr size_t kBlock = 32;  // a word of each lane
  void AddBlock(const char* at);

  uint64_t lanes_[4];
  char partial_[kBlock];  // what is left over until it is a block
  size_t size_ = 0;       // of all pieces
};

}  // namespace hone
