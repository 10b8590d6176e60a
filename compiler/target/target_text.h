// What the texts of targets have in common.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace hone {

// "48K", "2M"; bytes that are no multiple of either as they are.
std::string SizeText(int64_t bytes);

// InvalidArgument: what in the text is not known, and what to write instead.
absl::Status UnknownInTarget(const std::string& text, const std::string& what, const std::string& remedy);

}  // namespace hone
