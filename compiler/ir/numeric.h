// How far a kernel may be from the mathematical value of its workload: part of the key of every record.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

// kStrict   reordering of sums and fused multiply-add alone
// kDefault  also functions right to a few units in the last place, and algorithms such as Winograd
// A kernel for a looser level is never handed to a stricter user.
enum class NumericLevel : uint8_t { kStrict, kDefault };

inline constexpr std::string_view ToText(NumericLevel level) {
  return level == NumericLevel::kStrict ? "strict" : "default";
}
inline constexpr std::optional<NumericLevel> ParseNumericLevel(std::string_view text) {
  if (text == "strict") return NumericLevel::kStrict;
  if (text == "default") return NumericLevel::kDefault;
  return std::nullopt;
}

}  // namespace hone
