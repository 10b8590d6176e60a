#include "compiler/target/target_text.h"

#include "absl/strings/str_cat.h"

namespace hone {

std::string SizeText(int64_t bytes) {
  if (bytes != 0 && bytes % (1 << 20) == 0) return absl::StrCat(bytes >> 20, "M");
  if (bytes != 0 && bytes % (1 << 10) == 0) return absl::StrCat(bytes >> 10, "K");
  return absl::StrCat(bytes);
}

absl::Status UnknownInTarget(const std::string& text, const std::string& what, const std::string& remedy) {
  return absl::InvalidArgumentError(absl::StrCat("target \"", text, "\": ", what, "; ", remedy));
}

}  // namespace hone
