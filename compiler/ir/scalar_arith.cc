#include "compiler/ir/scalar_arith.h"

#include <cmath>
#include <limits>

#include "compiler/ir/float_format.h"

namespace hone {
namespace {

// nearbyint on a scaled value rounds to nearest even.
double RoundToFormat(double value, const FloatFormat& format) {
  const double beyond = format.has_infinity ? std::numeric_limits<double>::infinity() : std::nan("");
  if (std::isinf(value)) return std::copysign(beyond, value);
  if (value == 0 || std::isnan(value)) return value;
  int exponent;
  std::frexp(value, &exponent);  // |value| in [0.5, 1) * 2^exponent
  const int unit = std::max(exponent - 1, format.min_exponent) - format.mantissa_bits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::abs(rounded) > format.largest ? std::copysign(beyond, value) : rounded;
}

bool IsUInt64(DType type) { return type.code == TypeCode::kUInt && type.bits == 64; }

}  // namespace

int64_t WrapToType(int64_t value, DType type) {
  if (type.is_bool()) return value != 0;
  if (type.bits == 64) return value;
  const uint64_t mask = (uint64_t{1} << type.bits) - 1;
  const uint64_t low = static_cast<uint64_t>(value) & mask;
  if (type.code == TypeCode::kInt && (low >> (type.bits - 1)) != 0) return static_cast<int64_t>(low | ~mask);
  return static_cast<int64_t>(low);
}

double RoundToType(double value, DType type) {
  if (type.bits == 64) return value;
  if (type.bits == 32) return static_cast<float>(value);
  return RoundToFormat(value, FormatOf(type));
}

std::optional<int64_t> EvalInt(BinaryOp op, int64_t a, int64_t b, DType type) {
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool big = IsUInt64(type);  // compare and divide by the bits
  const auto wrap = [&](uint64_t v) { return WrapToType(static_cast<int64_t>(v), type); };
  if (IsDivision(op) && b == 0) return std::nullopt;
  switch (op) {
    case BinaryOp::kAdd: return wrap(ua + ub);
    case BinaryOp::kSub: return wrap(ua - ub);
    case BinaryOp::kMul: return wrap(ua * ub);
    case BinaryOp::kDiv: return big ? wrap(ua / ub) : b == -1 ? wrap(0 - ua) : wrap(static_cast<uint64_t>(a / b));
    case BinaryOp::kMod: return big ? wrap(ua % ub) : b == -1 ? 0 : wrap(static_cast<uint64_t>(a % b));
    case BinaryOp::kFloorDiv: return wrap(big ? ua / ub : static_cast<uint64_t>(FloorDivide(a, b)));
    case BinaryOp::kFloorMod: return wrap(big ? ua % ub : static_cast<uint64_t>(FloorModulo(a, b)));
    case BinaryOp::kMin: return (big ? ua < ub : a < b) ? a : b;
    case BinaryOp::kMax: return (big ? ua < ub : a < b) ? b : a;
    case BinaryOp::kEq: return a == b;
    case BinaryOp::kNe: return a != b;
    case BinaryOp::kLt: return big ? ua < ub : a < b;
    case BinaryOp::kLe: return big ? ua <= ub : a <= b;
    case BinaryOp::kGt: return big ? ua > ub : a > b;
    case BinaryOp::kGe: return big ? ua >= ub : a >= b;
    case BinaryOp::kAnd: return (a != 0) && (b != 0);
    case BinaryOp::kOr: return (a != 0) || (b != 0);
    case BinaryOp::kBitAnd: return a & b;
    case BinaryOp::kBitOr: return a | b;
    case BinaryOp::kBitXor: return wrap(ua ^ ub);
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
      if (b < 0 || b >= type.bits) return std::nullopt;
      if (op == BinaryOp::kShiftLeft) return wrap(ua << b);
      return big ? static_cast<int64_t>(ua >> b) : a >> b;
  }
  return std::nullopt;
}

std::optional<double> EvalFloat(BinaryOp op, double a, double b, DType type) {
  switch (op) {
    case BinaryOp::kAdd: return RoundToType(a + b, type);
    case BinaryOp::kSub: return RoundToType(a - b, type);
    case BinaryOp::kMul: return RoundToType(a * b, type);
    case BinaryOp::kDiv: return RoundToType(a / b, type);
    case BinaryOp::kMod: return RoundToType(std::fmod(a, b), type);
    case BinaryOp::kFloorDiv: return RoundToType(std::floor(a / b), type);
    case BinaryOp::kFloorMod: {
      const double r = std::fmod(a, b);
      return RoundToType(r != 0 && ((r < 0) != (b < 0)) ? r + b : r, type);
    }
    // A NaN on either side is the result, as in the networks these programs come from.
    case BinaryOp::kMin: return std::isnan(a) || b < a ? (std::isnan(a) ? a : b) : (std::isnan(b) ? b : a);
    case BinaryOp::kMax: return std::isnan(a) || b > a ? (std::isnan(a) ? a : b) : (std::isnan(b) ? b : a);
    default: return std::nullopt;
  }
}

std::optional<bool> CompareFloat(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kEq: return a == b;
    case BinaryOp::kNe: return a != b;
    case BinaryOp::kLt: return a < b;
    case BinaryOp::kLe: return a <= b;
    case BinaryOp::kGt: return a > b;
    case BinaryOp::kGe: return a >= b;
    default: return std::nullopt;
  }
}

}  // namespace hone
