// The secret that a caller shows a daemon on the network.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

// The first line of a token file, without white space around it. InvalidArgument when it is empty, not printable ASCII,
// or when others than its owner may read the file; NotFound or PermissionDenied when it cannot be read.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// A file that its owner alone may read (the mode has to be 600 or less): errors as of ReadToken.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

// Printable ASCII without spaces, and not empty.
bool IsToken(std::string_view text);

}  // namespace hone
