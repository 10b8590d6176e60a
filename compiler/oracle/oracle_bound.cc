#include <cmath>
#include <limits>

#include "compiler/ir/float_format.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/oracle/error_rules.h"
#include "compiler/oracle/oracle.h"

namespace hone {

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
  if (std::isnan(value) || std::isnan(oracle_value)) return std::isnan(value) && expects_nan ? 0 : kInfinity;
  const double difference = std::abs(value - oracle_value);
  if (!dtype.is_float()) return scale > 0 ? difference / scale : kInfinity;
  // What the type cannot hold is infinite there.
  if (std::isinf(value) && RoundToType(oracle_value, dtype.element()) == value) return 0;
  if (std::isinf(value) || std::isinf(oracle_value)) return kInfinity;
  if (scale <= 0) return kInfinity;  // exact, and not equal
  const double constant = LevelConstant(level);
  return difference / (constant * (Epsilon(dtype) * scale + error_analysis::SmallestNormal(dtype)));
}

bool WithinBound(double value, double oracle_value, double scale, DType dtype, NumericLevel level) {
  return ErrorOverBound(value, oracle_value, scale, dtype, level) <= 1;
}

}  // namespace hone
