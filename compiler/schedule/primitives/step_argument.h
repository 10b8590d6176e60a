// Arguments of steps, as a text gives them, for the functions that take them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"
#include "compiler/schedule/analysis/message.h"

namespace hone {

// A number from a text may be anything; what no program can have becomes what every primitive refuses.
inline int AsIndex(int64_t value) {
  return value < INT32_MIN || value > INT32_MAX ? INT32_MIN : static_cast<int>(value);
}

inline absl::StatusOr<Scope> ScopeOf(std::string_view text) {
  const std::optional<Scope> scope = ParseScope(text);
  if (!scope.has_value())
    return Invalid("there is no storage scope \"", text, "\"; there are global, local.thread, local, shared, warp");
  return *scope;
}

}  // namespace hone
