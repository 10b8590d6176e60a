#include "proto/rpc/token.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": others may read this secret file; `chmod 600 ", path, "` first"));
  }
  return ReadFile(path);
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(path));
  const std::string token(absl::StripAsciiWhitespace(text.substr(0, text.find('\n'))));
  if (token.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": the token file is empty"));
  if (!IsToken(token)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a token is made of printable ASCII without spaces"));
  }
  return token;
}

}  // namespace hone
