#include <cmath>
#include <limits>

#include "compiler/ir/scalar_arith.h"
#include "compiler/oracle/error_rules.h"
#include "compiler/oracle/oracle.h"

namespace hone {

double Epsilon(DType dtype) {
  if (!dtype.is_float()) return 1;
  if (dtype.code == TypeCode::kBFloat) return 0x1p-7;
  return dtype.bits == 16 ? 0x1p-10 : dtype.bits == 32 ? 0x1p-23 : 0x1p-52;
}

double LevelConstant(NumericLevel level) { return level == NumericLevel::kStrict ? 1 : 4; }

double ErrorOverBound(double value, double oracle_value, double scale, DType dtype, NumericLevel level) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value == oracle_value) return 0;
  if (std::isnan(scale) || scale == kInfinity) return 0;
  if (std::isnan(value) || std::isnan(oracle_value))
    return std::isnan(value) && std::isnan(oracle_value) ? 0 : kInfinity;
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
