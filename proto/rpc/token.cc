#include "proto/rpc/token.h"

#include <sys/stat.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": others may read this token file; `chmod 600 ", path, "` first"));
  }
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const std::string token(absl::StripAsciiWhitespace(text.substr(0, text.find('\n'))));
  if (token.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": the token file is empty"));
  for (const char c : token) {
    if (c <= ' ' || c > '~') {
      return absl::InvalidArgumentError(absl::StrCat(path, ": a token is made of printable ASCII without spaces"));
    }
  }
  return token;
}

}  // namespace hone
