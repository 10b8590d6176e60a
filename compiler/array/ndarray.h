// A dense tensor in memory: type, shape, and elements in row-major order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/dtype.h"
#include "compiler/support/check.h"

namespace hone {

// Bytes at a 64-byte boundary, as the kernel ABI wants them.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: allocators convert
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};
using AlignedBytes = std::vector<char, AlignedAllocator<char>>;

struct NdArray {
  DType dtype = kFloat32;
  std::vector<int64_t> shape;
  AlignedBytes data;  // NumElements() * dtype.bytes()

  NdArray() = default;
  NdArray(DType type, std::vector<int64_t> dims);  // zeros
  template <class T>
  static NdArray Of(DType type, std::vector<int64_t> dims, std::span<const T> values) {
    NdArray a(type, std::move(dims));
    HONE_CHECK(values.size_bytes() == a.data.size()) << "values do not fill the shape";
    std::copy(values.begin(), values.end(), a.As<T>());
    return a;
  }

  int64_t NumElements() const;
  template <class T>
  T* As() {
    HONE_CHECK(sizeof(T) == static_cast<size_t>(dtype.bytes()))
        << "element type has another size than " << ToText(dtype);
    return reinterpret_cast<T*>(data.data());
  }
  template <class T>
  const T* As() const {
    return const_cast<NdArray*>(this)->As<T>();
  }

  // Element i in row-major order as a double (exact for all types but 64-bit integers beyond 2^53), and the inverse,
  // which rounds to the nearest value of the element type.
  double Get(int64_t i) const;
  void Set(int64_t i, double value);
  int64_t GetInt(int64_t i) const;  // integers and bool alone
  void SetInt(int64_t i, int64_t value);
};

}  // namespace hone
