// Programs of tests from their text, which is right.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"

namespace hone {

inline PrimFunc ParseOrDie(const std::string& text) {
  absl::StatusOr<PrimFunc> func = ParsePrimFunc(text);
  HONE_CHECK(func.ok()) << func.status() << "\n" << text;
  return *std::move(func);
}

}  // namespace hone
