#include "compiler/schedule/analysis/pad_value.h"

#include <cmath>

#include "compiler/ir/scalar_arith.h"
#include "compiler/schedule/analysis/message.h"

namespace hone {
namespace {

absl::StatusOr<Expr> PadFloat(double number, DType type, const std::string& where) {
  const double rounded = RoundToType(number, type);
  const bool held = std::isnan(number) || (std::isinf(number) ? rounded == number : std::isfinite(rounded));
  if (!held) return Invalid(where, ": pad_value is ", number, ", which ", ToText(type), " does not hold");
  return FloatConst(number, type);
}

}  // namespace

absl::StatusOr<Expr> PadConstant(const std::variant<int64_t, double>& number, DType type, const std::string& where) {
  const int64_t* integer = std::get_if<int64_t>(&number);
  if (type.is_float()) {
    return PadFloat(integer != nullptr ? static_cast<double>(*integer) : std::get<double>(number), type, where);
  }
  if (integer == nullptr) {
    return Invalid(where, ": pad_value is the floating-point number ", std::get<double>(number),
                   ", the buffer's elements are ", ToText(type));
  }
  const bool negative_unsigned = type.code == TypeCode::kUInt && *integer < 0;  // a uint64 would keep its bits
  if (negative_unsigned || WrapToType(*integer, type) != *integer)
    return Invalid(where, ": pad_value is ", *integer, ", which ", ToText(type), " does not hold");
  return IntConst(*integer, type);
}

}  // namespace hone
