// Where a daemon listens: "unix:PATH" or "HOST:PORT".
#pragma once

#include <string>

#include "absl/status/status.h"

namespace hone {

bool IsUnixAddress(const std::string& address);
// The PATH of "unix:PATH"; of such an address alone.
std::string SocketPath(const std::string& address);

// Where the owner of a database file meets the daemon on it, when nothing else is said: a Unix socket beside the file,
// or in /tmp where the path would be longer than a socket's name may be (108 bytes).
std::string OwnersAddress(const std::string& database);

// InvalidArgument when it is neither form, or the path is longer than a socket's name may be.
absl::Status CheckAddress(const std::string& address);

// Tries a socket of this machine without waiting: Unavailable when there is no socket file, or none listens on it;
// InvalidArgument when the file is no socket; PermissionDenied when it is another user's. OK when somebody answers, and
// always for HOST:PORT, which only waiting can tell.
absl::Status ProbeSocket(const std::string& address);

}  // namespace hone
