// Memory of the prototypes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compiler/support/check.h"
#include "deploy/runtime/bundle/aligned_buffer.h"

namespace hone::prototypes {

// Floats at a boundary of 64 bytes, in huge pages where there are many, as a bundle's constants are. Zeros at first.
class Floats {
 public:
  explicit Floats(int64_t n = 0) : buffer_(static_cast<size_t>(n) * sizeof(float)) {
    HONE_CHECK(buffer_.data() != nullptr) << "no memory for " << n << " floats";
    std::memset(buffer_.data(), 0, buffer_.size());
  }
  float* data() const { return reinterpret_cast<float*>(buffer_.data()); }
  int64_t size() const { return static_cast<int64_t>(buffer_.size() / sizeof(float)); }

 private:
  AlignedBuffer buffer_;
};

}  // namespace hone::prototypes
