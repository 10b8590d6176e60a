// Names of numeric levels (compiler/ir/numeric.h), on the wire and in the store, as people and files have them: those
// of common.proto less their prefix, "strict" for NUMERIC_STRICT.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "hone/v1/common.pb.h"

namespace hone {

inline std::string NumericLevelName(v1::NumericLevel level) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::NumericLevel_Name(level), "NUMERIC_"));
}

// NUMERIC_LEVEL_UNSPECIFIED for what is no level's name.
inline v1::NumericLevel NumericLevelOfName(std::string_view name) {
  v1::NumericLevel level = v1::NUMERIC_LEVEL_UNSPECIFIED;
  v1::NumericLevel_Parse(absl::StrCat("NUMERIC_", absl::AsciiStrToUpper(std::string(name))), &level);
  return level;
}

}  // namespace hone
