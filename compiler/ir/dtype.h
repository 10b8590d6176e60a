// Scalar and vector element types: "float32", "int64", "bool", "float32x16".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hone {

// The two floats of 8 bits are those of the OCP specification: 4 bits of exponent and 3 of mantissa without infinities
// (e4m3fn), and 5 and 2 (e5m2).
enum class TypeCode : uint8_t { kBool, kInt, kUInt, kFloat, kBFloat, kFloat8E4M3, kFloat8E5M2 };

struct DType {
  TypeCode code = TypeCode::kInt;
  uint8_t bits = 32;
  uint16_t lanes = 1;

  static constexpr DType Bool(int lanes = 1) { return {TypeCode::kBool, 1, static_cast<uint16_t>(lanes)}; }
  static constexpr DType Int(int bits, int lanes = 1) {
    return {TypeCode::kInt, static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)};
  }
  static constexpr DType UInt(int bits, int lanes = 1) {
    return {TypeCode::kUInt, static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)};
  }
  static constexpr DType Float(int bits, int lanes = 1) {
    return {TypeCode::kFloat, static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)};
  }
  static constexpr DType BFloat16(int lanes = 1) { return {TypeCode::kBFloat, 16, static_cast<uint16_t>(lanes)}; }

  static constexpr DType Float8E4M3(int lanes = 1) { return {TypeCode::kFloat8E4M3, 8, static_cast<uint16_t>(lanes)}; }
  static constexpr DType Float8E5M2(int lanes = 1) { return {TypeCode::kFloat8E5M2, 8, static_cast<uint16_t>(lanes)}; }

  bool is_bool() const { return code == TypeCode::kBool; }
  bool is_int() const { return code == TypeCode::kInt || code == TypeCode::kUInt; }  // bool is not an integer
  bool is_float() const { return code >= TypeCode::kFloat; }
  bool is_scalar() const { return lanes == 1; }
  DType element() const { return {code, bits, 1}; }
  DType with_lanes(int n) const { return {code, bits, static_cast<uint16_t>(n)}; }
  // Bytes one element takes in memory; one where it has fewer than 8 bits, as bool and int4.
  int bytes() const { return (bits + 7) / 8; }

  friend bool operator==(const DType&, const DType&) = default;
};

inline constexpr DType kInt32 = DType::Int(32);
inline constexpr DType kInt64 = DType::Int(64);
inline constexpr DType kBool = DType::Bool();
inline constexpr DType kFloat32 = DType::Float(32);

// "float32", "bool", "bfloat16", "int8x4", "float8_e4m3fn".
std::string ToText(DType type);
// The inverse; nullopt when the text names no type.
std::optional<DType> ParseDType(std::string_view text);

}  // namespace hone
