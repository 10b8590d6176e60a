#include "compiler/support/turn_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

absl::StatusOr<int> OpenLock(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0) return fd;
  return absl::InternalError(
      absl::StrCat("cannot open the turn lock ", path, ": ", std::strerror(errno), "; name another file by HONE_LOCK"));
}

void Lock(int fd, int operation) {
  while (::flock(fd, operation) != 0) HONE_CHECK(errno == EINTR) << std::strerror(errno);
}

}  // namespace

absl::StatusOr<TurnLock> TurnLock::Open(std::string_view devices) {
  // One file a machine and user, whatever the daemon: two services on one host must not measure at once either.
  const char* named = std::getenv("HONE_LOCK");
  std::string path = named != nullptr ? named : absl::StrCat("/tmp/hone-", ::getuid(), ".turn");
  if (!devices.empty()) path.append(".").append(devices);
  TurnLock lock;
  HONE_ASSIGN_OR_RETURN(lock.turn_, OpenLock(path));
  HONE_ASSIGN_OR_RETURN(lock.gate_, OpenLock(path + ".gate"));
  return lock;
}

TurnLock::TurnLock(TurnLock&& other) noexcept
    : turn_(std::exchange(other.turn_, -1)),
      gate_(std::exchange(other.gate_, -1)),
      held_(std::exchange(other.held_, false)) {}

TurnLock& TurnLock::operator=(TurnLock&& other) noexcept {
  std::swap(turn_, other.turn_);
  std::swap(gate_, other.gate_);
  std::swap(held_, other.held_);
  return *this;
}

TurnLock::~TurnLock() {
  for (const int fd : fds()) {
    if (fd >= 0) ::close(fd);  // closing drops the lock
  }
}

std::string TurnLock::Holder() const {
  struct stat info {};
  if (::fstat(turn_, &info) != 0) return "";
  // "12: FLOCK  ADVISORY  WRITE 812 fd:01:6553 0 EOF", the device in hexadecimal.
  std::ifstream locks("/proc/locks");
  const std::string file = absl::StrFormat("%02x:%02x:%d", major(info.st_dev), minor(info.st_dev), info.st_ino);
  for (std::string line; std::getline(locks, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 6 || words[1] != "FLOCK" || words[5] != file) continue;  // those that wait have an arrow there
    std::ifstream comm(absl::StrCat("/proc/", words[4], "/comm"));
    std::string name;
    std::getline(comm, name);
    return absl::StrCat("process ", words[4], name.empty() ? "" : " (" + name + ")");
  }
  return "";
}

void TurnLock::Acquire(Use use) {
  HONE_CHECK(!held_) << "the turn is held already";
  Lock(gate_, LOCK_EX);
  Lock(turn_, use == Use::kAlone ? LOCK_EX : LOCK_SH);
  Lock(gate_, LOCK_UN);
  held_ = true;
}

void TurnLock::Release() {
  if (!held_) return;
  Lock(turn_, LOCK_UN);
  held_ = false;
}

}  // namespace hone
