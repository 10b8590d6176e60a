// Propagation of absl::Status, which the Abseil release we build with does not have.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace hone {

// The same status with what only this layer knows in front: "compiling candidate 17: ...". OK stays OK.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace hone

#define HONE_RETURN_IF_ERROR(expression)                                                \
  do {                                                                                  \
    if (absl::Status hone_status = (expression); !hone_status.ok()) return hone_status; \
  } while (false)

#define HONE_CONCAT_INNER(a, b) a##b
#define HONE_CONCAT(a, b) HONE_CONCAT_INNER(a, b)
#define HONE_ASSIGN_OR_RETURN(lhs, expression) \
  HONE_ASSIGN_OR_RETURN_IMPL(HONE_CONCAT(hone_status_or_, __LINE__), lhs, expression)
#define HONE_ASSIGN_OR_RETURN_IMPL(temporary, lhs, expression) \
  auto temporary = (expression);                               \
  if (!temporary.ok()) return temporary.status();              \
  lhs = *std::move(temporary)
