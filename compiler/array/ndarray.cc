#include "compiler/array/ndarray.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/ir/expr.h"
#include "compiler/ir/scalar_arith.h"

namespace hone {

NdArray::NdArray(DType type, std::vector<int64_t> dims) : dtype(type), shape(std::move(dims)) {
  data.assign(static_cast<size_t>(NumElements()) * static_cast<size_t>(type.bytes()), 0);
}

int64_t NdArray::NumElements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) {
    HONE_CHECK(extent >= 0 && !__builtin_mul_overflow(n, extent, &n)) << "a shape beyond 64 bits";
  }
  return n;
}

double NdArray::Get(int64_t i) const {
  if (!dtype.is_float()) {
    const int64_t value = GetInt(i);
    return dtype == DType::UInt(64) ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value);
  }
  switch (dtype.bytes()) {
    case 8: return As<double>()[i];
    case 4: return As<float>()[i];
    default: {
      const uint16_t bits = As<uint16_t>()[i];
      return dtype.code == TypeCode::kBFloat ? BFloat16ToDouble(bits) : HalfToDouble(bits);
    }
  }
}

void NdArray::Set(int64_t i, double value) {
  if (!dtype.is_float()) {
    SetInt(i, *ConstantValue(Const(dtype.is_bool() ? value : std::nearbyint(value), dtype)));
    return;
  }
  switch (dtype.bytes()) {
    case 8: As<double>()[i] = value; return;
    case 4: As<float>()[i] = static_cast<float>(value); return;
    default: As<uint16_t>()[i] = dtype.code == TypeCode::kBFloat ? FloatToBFloat16(value) : FloatToHalf(value);
  }
}

int64_t NdArray::GetInt(int64_t i) const {
  HONE_CHECK(!dtype.is_float()) << "GetInt of " << ToText(dtype);
  const char* at = data.data() + i * dtype.bytes();
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(dtype.bytes()));
  return WrapToType(static_cast<int64_t>(bits), dtype);
}

void NdArray::SetInt(int64_t i, int64_t value) {
  HONE_CHECK(!dtype.is_float()) << "SetInt of " << ToText(dtype);
  const int64_t wrapped = WrapToType(value, dtype);
  std::memcpy(data.data() + i * dtype.bytes(), &wrapped, static_cast<size_t>(dtype.bytes()));
}

double RoundTo(DType type, double value) { return RoundToType(value, type.element()); }

uint16_t FloatToHalf(double value) {
  const double rounded = RoundToType(value, DType::Float(16));
  const uint16_t sign = std::signbit(rounded) ? 0x8000 : 0;
  if (std::isnan(rounded)) return sign | 0x7E00;
  if (std::isinf(rounded)) return sign | 0x7C00;
  if (rounded == 0) return sign;
  int exponent;
  const double fraction = std::frexp(std::abs(rounded), &exponent);                            // in [0.5, 1)
  if (exponent < -13) return sign | static_cast<uint16_t>(std::ldexp(std::abs(rounded), 24));  // subnormal
  const auto mantissa = static_cast<uint16_t>(std::ldexp(fraction, 11));                       // 1024 to 2047
  return static_cast<uint16_t>(sign | ((exponent + 14) << 10) | (mantissa & 0x3FF));
}

double HalfToDouble(uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1F, mantissa = bits & 0x3FF;
  if (exponent == 31) {
    return mantissa != 0 ? std::copysign(std::numeric_limits<double>::quiet_NaN(), sign)
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

uint16_t FloatToBFloat16(double value) {
  const float rounded = static_cast<float>(RoundToType(value, DType::BFloat16()));
  const uint32_t bits = std::bit_cast<uint32_t>(rounded);
  if (std::isnan(rounded)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>(bits >> 16);
}

double BFloat16ToDouble(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace hone
