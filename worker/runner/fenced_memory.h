// Memory between two pages that nobody may touch: a step over either edge is a fault, not a wrong number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hone {

class FencedMemory {
 public:
  FencedMemory() = default;
  // Whole pages; data() is nullptr when the system refuses. Of a file from `at` on, shared with whoever maps it; or
  // fresh memory when fd is -1. `read_only`: a write is a fault, too.
  FencedMemory(int fd, uint64_t at, size_t bytes, bool read_only);
  FencedMemory(FencedMemory&& other) noexcept : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}
  FencedMemory& operator=(FencedMemory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~FencedMemory();

  char* data() const;
  size_t size() const { return bytes_; }
  // The 64-byte aligned place for `bytes` that ends with the memory.
  char* LastBytes(size_t bytes) const { return data() + (bytes_ - (bytes + 63) / 64 * 64); }

  enum class Hit { kNone, kBefore, kInside, kBehind };
  Hit Where(const void* address) const;  // safe in a signal handler

 private:
  char* base_ = nullptr;  // of the first fence
  size_t bytes_ = 0;      // between the fences
};

}  // namespace hone
