#include "compiler/graph/operators/narrow_types.h"

#include <cmath>
#include <limits>

namespace hone {
namespace {

// Formats: ONNX, "Float stored in 8 bits" and "Float stored in 4 bits"; OCP Microscaling Formats 1.0 for e2m1 and e8m0.
// clang-format off
constexpr NarrowType kTypes[] = {
    {"float8_e4m3fn", 17, 8, true, true, 3, 7, 0x7e, 0x7f, -1, false},
    {"float8_e4m3fnuz", 18, 8, true, true, 3, 8, 0x7f, 0x80, -1, true},
    {"float8_e5m2", 19, 8, true, true, 2, 15, 0x7b, 0x7f, 0x7c, false},
    {"float8_e5m2fnuz", 20, 8, true, true, 2, 16, 0x7f, 0x80, -1, true},
    {"uint4", 21, 4, false, false},
    {"int4", 22, 4, false, true},
    {"float4_e2m1fn", 23, 4, true, true, 1, 1, 0x7, -1, -1, false},
    {"float8_e8m0fnu", 24, 8, true, false, 0, 127, 0xfe, 0xff, -1, false},
    {"uint2", 25, 2, false, false},
    {"int2", 26, 2, false, true},
};
// clang-format on

// Values from which on a magnitude has at least code 1, 2, ...: halfway between neighbours, where a tie goes to the
// even code. For e8m0 as `rounding` says.
std::vector<double> Thresholds(const NarrowType& type, DType dtype, std::string_view rounding) {
  const auto above = [&](double x) {
    return dtype.bits == 64 ? std::nextafter(x, INFINITY)
                            : static_cast<double>(std::nextafterf(static_cast<float>(x), INFINITY));
  };
  std::vector<double> thresholds;
  for (int code = 1; code <= type.greatest; ++code) {
    const double low = type.Decode(code - 1), high = type.Decode(code), middle = (low + high) / 2;
    if (type.has_sign) thresholds.push_back(code % 2 == 0 ? middle : above(middle));
    else thresholds.push_back(rounding == "down" ? high : rounding == "nearest" ? middle : above(low));
  }
  return thresholds;
}

Value Table(NodeContext& c, DType dtype, const std::vector<double>& values) {
  NdArray array(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) array.Set(static_cast<int64_t>(i), values[i]);
  return Constant(c, std::move(array));
}

Value NarrowFloat(Value x, const NarrowType& type, bool saturate, std::string_view rounding) {
  if (!x) return {};
  if (!type.has_sign) x = Cast(x, DType::Float(64));  // its least value is below float32's normal ones
  NodeContext& c = x.context();
  std::vector<int64_t> columns = x.shape();
  columns.push_back(1);
  const Value magnitude = Abs(x), nothing = Constant(c, kInt32, 0);
  const std::vector<double> thresholds = Thresholds(type, x.dtype(), rounding);
  const Value reached = Reshape(magnitude, columns) >= Table(c, x.dtype(), thresholds);
  Value code = Reduce("reduce_sum", Cast(reached, kInt32), {x.rank()}, false);
  const int beyond = type.infinity >= 0 ? type.infinity : type.nan;
  if (!saturate && beyond >= 0) {
    const double last = type.Decode(type.greatest), middle = last + (last - type.Decode(type.greatest - 1)) / 2;
    const Value edge = Number(magnitude, middle);
    const Value over = type.greatest % 2 == 0 ? magnitude > edge : magnitude >= edge;
    code = Where(over, Constant(c, kInt32, beyond), code);
  }
  if (type.has_sign) {
    Value negative = x < Number(x, 0);
    if (type.no_negative_zero) negative = And(negative, And(code > nothing, code < Constant(c, kInt32, 0x80)));
    code = code + Where(negative, Constant(c, kInt32, 1 << (type.bits - 1)), nothing);
  }
  if (type.nan >= 0) code = Where(Apply("isnan", {x}), Constant(c, kInt32, type.nan), code);
  return Cast(code, DType::UInt(8));
}

// The low bits, read with or without a sign.
Value Wrap(const Value& x, const NarrowType& type) {
  const double range = 1 << type.bits, low = type.has_sign ? range / 2 : 0;
  return Apply("mod", {x + low, Number(x, range)}) - low;
}

}  // namespace

double NarrowType::Decode(int code) const {
  const int sign_bit = 1 << (bits - 1);
  if (!has_sign) return code == nan ? NAN : std::ldexp(1, code - bias);
  const double sign = (code & sign_bit) != 0 ? -1 : 1;
  const int rest = code & (sign_bit - 1);
  if (no_negative_zero ? code == nan : nan >= 0 && (infinity >= 0 ? rest > infinity : rest == nan)) return NAN;
  if (rest == infinity) return sign * INFINITY;
  const int exponent = rest >> mantissa, fraction = rest & ((1 << mantissa) - 1);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
}

const NarrowType* FindNarrowType(int64_t onnx) {
  for (const NarrowType& type : kTypes) {
    if (type.onnx == onnx) return &type;
  }
  return nullptr;
}
const NarrowType* FindNarrowType(std::string_view name) {
  for (const NarrowType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

Value Widen(const Value& x, const NarrowType& type) {
  if (!x) return {};
  if (!type.is_float) return Wrap(Cast(x, kInt32), type);
  std::vector<double> values;
  for (int code = 0; code < 1 << type.bits; ++code) values.push_back(type.Decode(code));
  const Value code = Cast(x, kInt32);
  const Value low = Apply("bitwise_and", {code, Number(code, (1 << type.bits) - 1)});
  return Gather(Table(x.context(), kFloat32, values), low, 0);
}

Value Narrow(const Value& x, const NarrowType& type, bool saturate, std::string_view rounding) {
  if (!x) return {};
  if (type.is_float) {
    const bool wide = x.dtype() == DType::Float(64);
    return NarrowFloat(wide ? x : Cast(x, kFloat32), type, saturate, rounding);
  }
  return Cast(Wrap(Cast(x, kInt32), type), type.storage());
}

}  // namespace hone
