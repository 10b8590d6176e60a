// Memory for tensors and scratch: 64-byte aligned, as kernels expect it, and in huge pages where that pays.
#pragma once

#include <cstddef>
#include <memory>

#include "deploy/runtime/error.h"

namespace hone {

inline constexpr size_t kTensorAlignment = 64;

constexpr size_t AlignUp(size_t bytes, size_t alignment = kTensorAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// A program's functions in place of the system's memory; the zero is the system's.
struct Allocator {
  // Memory that begins at a multiple of `alignment`, null when there is none.
  void* (*allocate)(void* context, size_t bytes, size_t alignment) = nullptr;
  void (*release)(void* context, void* memory, size_t bytes) = nullptr;  // `bytes` as they were asked for
  void* context = nullptr;
};

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // data() is nullptr when there is no memory left, or a program's allocator gives some that is not aligned. Zero bytes
  // give a valid pointer too. Contents are not set.
  // From 256 KiB on the system's memory is whole huge pages (where it grants them): streaming through small pages is
  // limited by address translation, to about half the speed on virtual machines.
  explicit AlignedBuffer(size_t bytes, const Allocator& allocator = {});
  char* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Release {
    Allocator allocator;
    size_t bytes;
    void operator()(char* data) const;
  };
  std::unique_ptr<char, Release> data_;
  size_t size_ = 0;
};

// kOutOfMemory says for what (`what`: "scratch") there is none, and whose allocator it is.
RuntimeError Allocate(size_t bytes, const char* what, const Allocator& allocator, AlignedBuffer* buffer);

}  // namespace hone
