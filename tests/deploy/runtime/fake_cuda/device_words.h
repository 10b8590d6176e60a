// The words of CUDA C++ that printed kernels use, for the C++ compiler of this machine: what the driver of fake_cuda.h
// puts in front of a module's text. It is text of that library, and no part of any other program.
#pragma once

#include <math.h>
#include <string.h>

#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))

struct Dim3 {
  unsigned x, y, z;
};
// What the driver does for the thread that runs.
struct FakeCalls {
  void (*barrier)();
  void (*copy)(void* to, const void* from, int size, int bytes);
  void (*commit)();
  void (*wait)(int left);
  unsigned char* (*shared)();
};
extern "C" {
__attribute__((visibility("default"))) Dim3 threadIdx, blockIdx;
__attribute__((visibility("default"))) FakeCalls fake_calls;
}

inline void __syncthreads() { fake_calls.barrier(); }
#define FAKE_COPY(size) \
  inline void copy_async_##size(void* to, const void* from, int bytes) { fake_calls.copy(to, from, size, bytes); }
FAKE_COPY(4)
FAKE_COPY(8)
FAKE_COPY(16)
inline void commit_copies() { fake_calls.commit(); }
#define FAKE_WAIT(left) \
  inline void wait_for_copies_##left() { fake_calls.wait(left); }
FAKE_WAIT(0)
FAKE_WAIT(1)
FAKE_WAIT(2)
FAKE_WAIT(3)
FAKE_WAIT(4)

template <class To, class From>
inline To fake_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}
inline float __uint_as_float(unsigned bits) { return fake_bits<float>(bits); }
inline unsigned __float_as_uint(float x) { return fake_bits<unsigned>(x); }
inline double __longlong_as_double(long long bits) { return fake_bits<double>(bits); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
template <class T>
inline T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
inline T max(T a, T b) {
  return a < b ? b : a;
}

#define FAKE_VECTORS(name, type)                                                           \
  struct __attribute__((aligned(2 * sizeof(type)))) name##2 {                              \
    type x, y;                                                                             \
  };                                                                                       \
  struct __attribute__((aligned(4 * sizeof(type) < 16 ? 4 * sizeof(type) : 16))) name##4 { \
    type x, y, z, w;                                                                       \
  };                                                                                       \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }                         \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
FAKE_VECTORS(char, signed char)
FAKE_VECTORS(uchar, unsigned char)
FAKE_VECTORS(short, short)
FAKE_VECTORS(ushort, unsigned short)
FAKE_VECTORS(int, int)
FAKE_VECTORS(uint, unsigned int)
FAKE_VECTORS(longlong, long long)
FAKE_VECTORS(ulonglong, unsigned long long)
FAKE_VECTORS(float, float)
FAKE_VECTORS(double, double)

// A kernel with the arguments at these addresses.
template <class... Arguments, size_t... I>
inline void fake_call(void (*kernel)(Arguments...), void** arguments, std::index_sequence<I...>) {
  kernel(*static_cast<Arguments*>(arguments[I])...);
}
template <class... Arguments>
inline int fake_arguments(void (*)(Arguments...)) {
  return sizeof...(Arguments);
}
template <class... Arguments>
inline void fake_call(void (*kernel)(Arguments...), void** arguments) {
  fake_call(kernel, arguments, std::index_sequence_for<Arguments...>());
}
