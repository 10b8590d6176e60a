// The table of pure functions a Call may name. Interpreter, error bounds, code generator and text read it.
#pragma once

#include <span>
#include <string_view>

namespace hone {

struct IntrinsicInfo {
  std::string_view name;
  int arity;
  bool returns_bool = false;  // otherwise the type of the first argument
  bool stands_alone = false;  // used for its effect, as T.evaluate(T.NAME(an element)), only so
  // Its value for floating arguments, before rounding to their type; null where the interpreter computes it otherwise.
  double (*of_one)(double) = nullptr;
  double (*of_two)(double, double) = nullptr;
};
// The mathematical functions (math_functions.h), fma isnan isinf, popcount; what has an effect, as prefetch, which asks
// for the cache line of an element and computes nothing.
std::span<const IntrinsicInfo> Intrinsics();
const IntrinsicInfo* FindIntrinsic(std::string_view name);  // nullptr when unknown

}  // namespace hone
