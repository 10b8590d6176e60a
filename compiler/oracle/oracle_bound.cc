#include <cmath>
#include <limits>

#include "compiler/ir/float_format.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/oracle/error_rules.h"
#include "compiler/oracle/oracle.h"

namespace hone {
namespace {

// The least magnitude that rounds to more than the type holds: half a step beyond its largest number.
double OverflowOf(DType dtype) {
  const FloatFormat& format = FormatOf(dtype);
  return format.largest + format.UnitRoundoff() * std::exp2(std::floor(std::log2(format.largest)));
}

}  // namespace

double Epsilon(DType dtype) {
  if (!dtype.is_float()) return 1;
  return 2 * FormatOf(dtype).UnitRoundoff();
}

double LevelConstant(NumericLevel level) { return level == NumericLevel::kStrict ? 1 : 4; }

double ErrorOverBound(double value, double oracle_value, double scale, DType dtype, NumericLevel level) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value == oracle_value) return 0;
  if (std::isnan(scale) || scale == kInfinity) return 0;
  // What the type cannot hold is no number there, if the type has no infinity.
  const bool expects_nan =
      std::isnan(oracle_value) || (dtype.is_float() && std::isnan(RoundToType(oracle_value, dtype)));
  if (std::isnan(value) && expects_nan) return 0;
  // What the type cannot hold is infinite there, or no number; so is what an error takes as far as that.
  const bool over = dtype.is_float() && std::isfinite(oracle_value) &&
                    (FormatOf(dtype).has_infinity ? std::isinf(value) : std::isnan(value));
  if (over && RoundToType(oracle_value, dtype.element()) == value) return 0;
  if (over) value = std::copysign(OverflowOf(dtype), std::isinf(value) ? value : oracle_value);
  if (std::isnan(value) || std::isnan(oracle_value)) return kInfinity;
  const double difference = std::abs(value - oracle_value);
  if (!dtype.is_float()) return scale > 0 ? difference / scale : kInfinity;
  if (std::isinf(value) || std::isinf(oracle_value)) return kInfinity;
  if (scale <= 0) return kInfinity;  // exact, and not equal
  const double constant = LevelConstant(level);
  const double error = difference / (constant * (Epsilon(dtype) * scale + error_analysis::SmallestNormal(dtype)));
  return over && error > 1 ? kInfinity : error;
}

bool WithinBound(double value, double oracle_value, double scale, DType dtype, NumericLevel level) {
  return ErrorOverBound(value, oracle_value, scale, dtype, level) <= 1;
}

}  // namespace hone
