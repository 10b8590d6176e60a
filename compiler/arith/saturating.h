// Arithmetic on bounds: sums and products that stop at the ends of int64, which stand for minus and plus infinity.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/scalar_arith.h"

namespace hone {

inline constexpr int64_t kMinusInf = Bounds::kNone;
inline constexpr int64_t kPlusInf = Bounds::kNoneAbove;

inline bool IsInfinite(int64_t v) { return v == kMinusInf || v == kPlusInf; }

inline int64_t Clamp(__int128 v) {
  if (v <= kMinusInf) return kMinusInf;
  if (v >= kPlusInf) return kPlusInf;
  return static_cast<int64_t>(v);
}
// An infinite operand gives itself; opposite infinities are not added by the callers.
inline int64_t SatAdd(int64_t a, int64_t b) {
  if (IsInfinite(a)) return a;
  if (IsInfinite(b)) return b;
  return Clamp(static_cast<__int128>(a) + b);
}
inline int64_t SatMul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (IsInfinite(a) || IsInfinite(b)) return (a < 0) != (b < 0) ? kMinusInf : kPlusInf;
  return Clamp(static_cast<__int128>(a) * b);
}
inline int64_t SatNegate(int64_t a) { return a == kMinusInf ? kPlusInf : a == kPlusInf ? kMinusInf : -a; }
inline int64_t SatFloorDiv(int64_t a, int64_t b) { return IsInfinite(a) ? a : FloorDivide(a, b); }  // b >= 1

inline Bounds Add(Bounds a, Bounds b) { return {SatAdd(a.min, b.min), SatAdd(a.max, b.max)}; }
inline Bounds Scale(Bounds a, int64_t c) {
  if (c >= 0) return {SatMul(a.min, c), SatMul(a.max, c)};
  return {SatMul(a.max, c), SatMul(a.min, c)};
}
inline Bounds Multiply(Bounds a, Bounds b) {
  const int64_t corners[] = {SatMul(a.min, b.min), SatMul(a.min, b.max), SatMul(a.max, b.min), SatMul(a.max, b.max)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}
inline Bounds Hull(Bounds a, Bounds b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
inline Bounds Meet(Bounds a, Bounds b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

}  // namespace hone
