// The floating-point formats: what rounding, storing and bounds on errors have to know of each.
#pragma once

#include <cstdint>

#include "compiler/ir/dtype.h"

namespace hone {

// A sign, an exponent and a mantissa, as IEEE 754 lays them out, with subnormal numbers.
struct FloatFormat {
  int mantissa_bits;  // that are stored: 23 of float32
  int min_exponent;   // of the smallest normal number: -126 of float32
  double largest;     // finite
  bool has_infinity;  // float8_e4m3fn has none: what is beyond the largest number is NaN, which is all ones

  // Half the distance from 1 to the next number.
  double UnitRoundoff() const;
  double SmallestNormal() const;
  double SmallestSubnormal() const;
};

// Of a floating-point type, of one lane or more.
const FloatFormat& FormatOf(DType type);

// The bits of a number that the type holds, and the number that bits are; for types of 16 bits and fewer.
uint16_t FloatToBits(double value, DType type);
double BitsToFloat(uint16_t bits, DType type);

}  // namespace hone
