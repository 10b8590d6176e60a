// Vectors of floats, as wide as the CPU that this is compiled for has them.
#pragma once

#include <cstring>
#include <utility>

namespace hone::prototypes {

// Floats of a vector, and registers for vectors.
#if defined(__AVX512F__)
inline constexpr int kLanes = 16, kRegisters = 32;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8, kRegisters = 16;
#elif defined(__aarch64__)
inline constexpr int kLanes = 4, kRegisters = 32;
#else
inline constexpr int kLanes = 4, kRegisters = 16;
#endif

typedef float Vector __attribute__((vector_size(sizeof(float) * kLanes)));

inline Vector Load(const float* from) {
  Vector v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
inline void Store(float* to, Vector v) { std::memcpy(to, &v, sizeof(v)); }
inline Vector Relu(Vector v) { return v > Vector{} ? v : Vector{}; }

// body.operator()<i>() for i in [0, n) as straight code, so that arrays that bodies index are registers. Bodies are to
// be always inlined.
template <int n, class Body>
[[gnu::always_inline]] inline void Unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (body.template operator()<i>(), ...);
  }
  (std::make_integer_sequence<int, n>());
}

}  // namespace hone::prototypes
