// Durations as a line of a table.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace hone {

// "p50 0.3 ms, p99 2.0 ms, worst 14 ms": of milliseconds in any order, which are sorted; so many decimals, one fewer of
// the worst. "none" of none.
inline std::string Percentiles(std::vector<double>& milliseconds, int decimals) {
  if (milliseconds.empty()) return "none";
  std::sort(milliseconds.begin(), milliseconds.end());
  const auto at = [&](double part) {
    return milliseconds[static_cast<size_t>(part * static_cast<double>(milliseconds.size() - 1))];
  };
  char text[96];
  std::snprintf(text, sizeof(text), "p50 %.*f ms, p99 %.*f ms, worst %.*f ms", decimals, at(0.5), decimals, at(0.99),
                decimals - 1, milliseconds.back());
  return text;
}

}  // namespace hone
