// Memory for tensors and scratch: 64-byte aligned, as kernels expect it, and in huge pages where that pays.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace hone {

inline constexpr size_t kTensorAlignment = 64;

constexpr size_t AlignUp(size_t bytes, size_t alignment = kTensorAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // data() is nullptr when the system has no memory left. Zero bytes give a valid pointer too. Contents are not set.
  // From 256 KiB on the memory is whole huge pages (where the system grants them): streaming through small pages is
  // limited by address translation, to about half the speed on virtual machines.
  explicit AlignedBuffer(size_t bytes);
  char* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  std::unique_ptr<char, Free> data_;
  size_t size_ = 0;
};

}  // namespace hone
