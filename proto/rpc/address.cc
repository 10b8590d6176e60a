#include "proto/rpc/address.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr char kUnix[] = "unix:";
constexpr size_t kLongestPath = sizeof(sockaddr_un{}.sun_path) - 1;

}  // namespace

bool IsUnixAddress(const std::string& address) { return absl::StartsWith(address, kUnix); }

std::string SocketPath(const std::string& address) { return address.substr(std::strlen(kUnix)); }

std::string OwnersAddress(const std::string& database) {
  const std::string beside = std::filesystem::absolute(database).string() + ".sock";
  if (beside.size() < 100) return kUnix + beside;
  return absl::StrCat(kUnix, "/tmp/hone-", ::getuid(), "-", ToHex(Sha256(beside)).substr(0, 16), ".sock");
}

absl::Status CheckAddress(const std::string& address) {
  if (!IsUnixAddress(address)) {
    const size_t colon = address.rfind(':');
    if (colon != std::string::npos && colon > 0 && colon + 1 < address.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("\"", address, "\" is not an address: use unix:PATH or HOST:PORT"));
  }
  const size_t length = SocketPath(address).size();
  if (length >= 1 && length <= kLongestPath) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(address, ": the path of a socket has 1 to ", kLongestPath, " characters; choose a shorter one"));
}

absl::Status ProbeSocket(const std::string& address) {
  HONE_RETURN_IF_ERROR(CheckAddress(address));
  if (!IsUnixAddress(address)) return absl::OkStatus();
  const std::string path = SocketPath(address);
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(address, ": there is a file of that name that is no socket"));
  }
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.c_str(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::OkStatus();  // out of descriptors: that says nothing about the other end
  const bool answered = connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0;
  const int error = errno;
  close(fd);
  if (answered || error == EAGAIN) return absl::OkStatus();  // EAGAIN: it listens and is busy
  if (error == EACCES) return absl::PermissionDeniedError(absl::StrCat(address, ": this user may not connect there"));
  return absl::UnavailableError(
      absl::StrCat("no daemon listens at ", address, " (", std::strerror(error), "); is `honed` running there?"));
}

}  // namespace hone
