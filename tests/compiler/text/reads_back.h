// Print then parse is the identity: what tests hold of every program that comes past them.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/structural.h"
#include "compiler/text/text.h"

namespace hone {

// "" when the program's text reads back as the same program and prints as the same text, else what went wrong.
inline std::string ReadBackError(const PrimFunc& func) {
  const std::string text = ToText(func);
  const absl::StatusOr<PrimFunc> again = ParsePrimFunc(text);
  if (!again.ok()) return absl::StrCat("does not read back: ", std::string(again.status().message()), "\n", text);
  if (!StructuralEqual(func, *again)) return absl::StrCat("reads back as another program:\n", text, ToText(*again));
  if (StructuralHash(func) != StructuralHash(*again)) return absl::StrCat("has another hash when read back:\n", text);
  if (ToText(*again) != text) return absl::StrCat("prints differently when read back:\n", text, ToText(*again));
  return "";
}

}  // namespace hone
