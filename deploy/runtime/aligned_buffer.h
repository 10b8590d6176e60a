// Memory for tensors and scratch: 64-byte aligned, as kernels expect it.
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
  explicit AlignedBuffer(size_t bytes)
      : data_(static_cast<char*>(std::aligned_alloc(kTensorAlignment, AlignUp(bytes == 0 ? 1 : bytes)))),
        size_(bytes) {}
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
