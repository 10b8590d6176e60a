// Numeric levels as messages have them.
#pragma once

#include "compiler/ir/numeric.h"
#include "proto/numeric_level.h"

namespace hone {

// kDefault for a level that is not stated, or not known here.
inline NumericLevel FromWire(v1::NumericLevel level) {
  return ParseNumericLevel(NumericLevelName(level)).value_or(NumericLevel::kDefault);
}
inline v1::NumericLevel ToWire(NumericLevel level) { return NumericLevelOfName(ToText(level)); }

}  // namespace hone
