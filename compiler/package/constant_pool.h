// The constants of a bundle: each stored once, 64-byte aligned, however many steps read it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hone {

class ConstantPool {
 public:
  // Where the bytes lie in bytes(): equal ones, of whatever origin, share a place.
  int64_t Add(std::string_view constant);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::multimap<uint64_t, std::pair<int64_t, int64_t>> places_;  // hash to offset and size
};

}  // namespace hone
