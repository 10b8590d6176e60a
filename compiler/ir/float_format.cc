#include "compiler/ir/float_format.h"

#include <cmath>
#include <limits>

#include "compiler/support/check.h"

namespace hone {
namespace {

// IEEE 754-2019, table 3.5; bfloat16 has float32's exponents. The two of 8 bits: OCP 8-bit Floating Point
// Specification, revision 1.0, table 1.
constexpr FloatFormat kHalf{10, -14, 65504, true};
constexpr FloatFormat kSingle{23, -126, std::numeric_limits<float>::max(), true};
constexpr FloatFormat kDouble{52, -1022, std::numeric_limits<double>::max(), true};
constexpr FloatFormat kBFloat16{7, -126, 0x1.FEp127, true};
constexpr FloatFormat kFloat8E4M3{3, -6, 448, false};
constexpr FloatFormat kFloat8E5M2{2, -14, 57344, true};

int ExponentMask(const FloatFormat& format, DType type) { return (1 << (type.bits - 1 - format.mantissa_bits)) - 1; }

}  // namespace

double FloatFormat::UnitRoundoff() const { return std::ldexp(1, -mantissa_bits - 1); }
double FloatFormat::SmallestNormal() const { return std::ldexp(1, min_exponent); }
double FloatFormat::SmallestSubnormal() const { return std::ldexp(1, min_exponent - mantissa_bits); }

const FloatFormat& FormatOf(DType type) {
  switch (type.code) {
    case TypeCode::kFloat: return type.bits == 64 ? kDouble : type.bits == 32 ? kSingle : kHalf;
    case TypeCode::kBFloat: return kBFloat16;
    case TypeCode::kFloat8E4M3: return kFloat8E4M3;
    case TypeCode::kFloat8E5M2: return kFloat8E5M2;
    case TypeCode::kBool:
    case TypeCode::kInt:
    case TypeCode::kUInt: break;
  }
  HONE_UNREACHABLE() << "the floating-point format of " << ToText(type);
  return kDouble;
}

uint16_t FloatToBits(double value, DType type) {
  const FloatFormat& format = FormatOf(type);
  const int m = format.mantissa_bits, mask = ExponentMask(format, type);
  const auto with_sign = [&](int magnitude) {
    return static_cast<uint16_t>(magnitude | (std::signbit(value) ? 1 << (type.bits - 1) : 0));
  };
  const double size = std::abs(value);
  if (std::isnan(value)) return with_sign(format.has_infinity ? mask << m | 1 << (m - 1) : (1 << (type.bits - 1)) - 1);
  if (std::isinf(value)) return with_sign(mask << m);
  if (size < format.SmallestNormal()) return with_sign(static_cast<int>(size / format.SmallestSubnormal()));
  int exponent;
  const double fraction = std::frexp(size, &exponent);  // in [0.5, 1)
  const int digits = static_cast<int>(std::ldexp(fraction, m + 1)) - (1 << m);
  return with_sign((exponent - format.min_exponent) << m | digits);
}

double BitsToFloat(uint16_t bits, DType type) {
  const FloatFormat& format = FormatOf(type);
  const int m = format.mantissa_bits, mask = ExponentMask(format, type);
  const int exponent = bits >> m & mask, digits = bits & ((1 << m) - 1), all_ones = (1 << m) - 1;
  const double sign = (bits >> (type.bits - 1)) != 0 ? -1.0 : 1.0;
  const bool is_nan = exponent == mask && (format.has_infinity ? digits != 0 : digits == all_ones);
  if (is_nan) return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (exponent == mask && format.has_infinity) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(digits, format.min_exponent - m);
  return sign * std::ldexp((1 << m) + digits, exponent - 1 + format.min_exponent - m);
}

}  // namespace hone
