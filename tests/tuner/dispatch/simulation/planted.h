// Which of the bugs of planted_bugs.cmake a run of the program has: their sources include this.
#pragma once

#include <cstdlib>
#include <string_view>

namespace hone {

// Returns whether the environment variable HONE_PLANTED_BUG, as it stood at the first call, is that name.
inline bool Planted(std::string_view name) {
  static const char* const planted = std::getenv("HONE_PLANTED_BUG");
  return planted != nullptr && name == planted;
}

}  // namespace hone
