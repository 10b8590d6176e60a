// How far a kernel may be from the mathematical value of its workload: part of the key of every record.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

// kStrict   reordering of sums and fused multiply-add alone
// kDefault  also functions right to a few units in the last place, and algorithms such as Winograd
// kBf16     also operands of products rounded to bfloat16, where the other operand is constant; sums stay float32. With
//           bfloat16's unit roundoff u = 2^-8 a product is off by at most (2 u + u^2) sum|a||b| for that (Higham,
//           Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1)
// Each allows what stands before it. A kernel for a looser level is never handed to a stricter user.
enum class NumericLevel : uint8_t { kStrict, kDefault, kBf16 };

inline constexpr std::array<std::string_view, 3> kNumericLevels = {"strict", "default", "bf16"};

inline constexpr std::string_view ToText(NumericLevel level) { return kNumericLevels[static_cast<size_t>(level)]; }
inline constexpr std::optional<NumericLevel> ParseNumericLevel(std::string_view text) {
  for (size_t i = 0; i < kNumericLevels.size(); ++i) {
    if (kNumericLevels[i] == text) return static_cast<NumericLevel>(i);
  }
  return std::nullopt;
}

}  // namespace hone
