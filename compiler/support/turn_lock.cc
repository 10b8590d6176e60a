#include "compiler/support/turn_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"

namespace hone {

absl::StatusOr<TurnLock> TurnLock::Open() {
  // One file a machine and user, whatever the daemon: two services on one host must not measure at once either.
  const char* named = std::getenv("HONE_LOCK");
  const std::string path = named != nullptr ? named : absl::StrCat("/tmp/hone-", ::getuid(), ".turn");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return absl::InternalError(absl::StrCat("cannot open the turn lock ", path, ": ", std::strerror(errno),
                                            "; name another file by HONE_LOCK"));
  }
  return TurnLock(fd);
}

TurnLock::TurnLock(TurnLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), held_(std::exchange(other.held_, false)) {}

TurnLock& TurnLock::operator=(TurnLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(held_, other.held_);
  return *this;
}

TurnLock::~TurnLock() {
  if (fd_ >= 0) ::close(fd_);  // closing drops the lock
}

void TurnLock::Acquire() {
  HONE_CHECK(!held_) << "the turn is held already";
  while (::flock(fd_, LOCK_EX) != 0) HONE_CHECK(errno == EINTR) << std::strerror(errno);
  held_ = true;
}

void TurnLock::Release() {
  if (!held_) return;
  ::flock(fd_, LOCK_UN);
  held_ = false;
}

}  // namespace hone
