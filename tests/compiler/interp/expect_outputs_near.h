// What a function computed, held against what it should have computed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/array/ndarray.h"
#include "compiler/ir/stmt.h"
#include "compiler/text/text.h"

namespace hone {

// Every element of the outputs within `tolerance`, relative to the larger of 1 and the expected value; NaN equals NaN.
inline void ExpectOutputsNear(const PrimFunc& func, const std::vector<NdArray>& got, const std::vector<NdArray>& want,
                              double tolerance) {
  for (size_t p = func.params.size() - func.num_outputs(); p < func.params.size(); ++p) {
    int shown = 0;
    for (int64_t i = 0; i < want[p].NumElements() && shown < 5; ++i) {
      const double a = got[p].Get(i), b = want[p].Get(i);
      const bool same =
          a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
      if (!same) {
        ADD_FAILURE() << func.params[p].name() << "[" << i << "] is " << a << ", the interpreter says " << b;
        ++shown;
      }
    }
    if (shown > 0) ADD_FAILURE() << ToText(func);
  }
}

}  // namespace hone
