// Functions that printed kernels call and languages do not have. Each is printed once, in front of the kernels.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/codegen/gpu/dialect.h"

namespace hone {

class Helpers {
 public:
  explicit Helpers(const Dialect& dialect) : dialect_(dialect) {}

  // Its name, after noting that it is used; those of the dialect itself too:
  //   floor_div_T, floor_mod_T   of T = int32, int64: rounded down, whatever the signs
  //   abs_T                      the magnitude; of the least number, that number
  //   min_T, max_T               of T = float32, float64: NaN where either is
  //   floor_modf_T               of the same: the remainder with the sign of the divisor
  //   f32_of_bf16, bf16_of_f32   of the bits; to nearest even
  //   round_f16, round_bf16      a float as that type holds it
  //   I_of_T                     of an integer type I and T = float32, float64: towards zero, the nearest that I has,
  //                              0 for NaN
  std::string Use(const std::string& name);
  // One rendered elsewhere.
  std::string Use(const std::string& name, const std::string& text);

  // The helpers used, each behind those that it calls.
  std::string Text() const;

 private:
  std::string TextOf(const std::string& name);

  const Dialect& dialect_;
  std::set<std::string> used_;
  std::vector<std::string> texts_;
};

}  // namespace hone
