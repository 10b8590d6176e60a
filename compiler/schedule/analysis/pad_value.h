// What the padding of a layout holds: the places of the new shape that are the place of no element.
//   lambda i, j: (j // 4, i, j % 4) over (5, 10)     j from 10 to 11 is padding
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"

namespace hone {

// Absent: whatever the primitive leaves there.
using PadValue = std::optional<std::variant<int64_t, double>>;

// The number as a constant of the buffer's element type: a float rounds it, an integer and a bool hold it exactly.
// InvalidArgument, "WHERE: ...", where the type does not hold it: 300 as uint8, 0.5 as int32, 1e6 as float16, an
// infinity as float8_e4m3fn, which has none.
absl::StatusOr<Expr> PadConstant(const std::variant<int64_t, double>& number, DType type, const std::string& where);

}  // namespace hone
