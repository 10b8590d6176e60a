// The messages of refused primitives: Refused("split(", loop.var, "): factor ", 0, " is below 1; ...") is
// FailedPrecondition.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/text/text.h"

namespace hone {

template <class T>
std::string MessagePiece(const T& value) {
  if constexpr (std::is_convertible_v<T, std::string_view>) {
    return std::string(std::string_view(value));
  } else if constexpr (std::is_same_v<T, Var> || std::is_same_v<T, Buffer>) {
    return value.name();
  } else if constexpr (std::is_same_v<T, Expr>) {
    return ToText(value);
  } else if constexpr (std::is_same_v<T, absl::string_view>) {
    return std::string(value);
  } else {
    return absl::StrCat(value);
  }
}
template <class... Pieces>
std::string Message(const Pieces&... pieces) {
  std::string message;
  (message.append(MessagePiece(pieces)), ...);
  return message;
}
// Not in this state of the program.
template <class... Pieces>
absl::Status Refused(const Pieces&... pieces) {
  return absl::FailedPreconditionError(Message(pieces...));
}
// Never, whatever the program.
template <class... Pieces>
absl::Status Invalid(const Pieces&... pieces) {
  return absl::InvalidArgumentError(Message(pieces...));
}

}  // namespace hone
