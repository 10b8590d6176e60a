// HONE_THOROUGH=1: all that the tests have to try, which takes hours of processor time on a small machine. Without it
// they take of many alike (random choices, inputs, networks, boards) those few in which every kind of thing is seen.
#pragma once

#include <cstdlib>
#include <string_view>

namespace hone {

inline bool Thorough() {
  const char* asked = std::getenv("HONE_THOROUGH");
  return asked != nullptr && std::string_view(asked) != "0";
}

}  // namespace hone
