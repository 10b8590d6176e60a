#include "compiler/support/turn_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
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

namespace hone {
namespace {

constexpr int64_t kGiveWayNs = 2'000'000;

int64_t MonotonicNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

absl::StatusOr<TurnLock> TurnLock::Open(std::string_view devices) {
  // One file a machine and user, whatever the daemon: two services on one host must not measure at once either.
  const char* named = std::getenv("HONE_LOCK");
  std::string path = named != nullptr ? named : absl::StrCat("/tmp/hone-", ::getuid(), ".turn");
  if (!devices.empty()) path.append(".").append(devices);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return absl::InternalError(absl::StrCat("cannot open the turn lock ", path, ": ", std::strerror(errno),
                                            "; name another file by HONE_LOCK"));
  }
  return TurnLock(fd);
}

TurnLock::TurnLock(TurnLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      held_(std::exchange(other.held_, false)),
      released_ns_(std::exchange(other.released_ns_, 0)) {}

TurnLock& TurnLock::operator=(TurnLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(held_, other.held_);
  std::swap(released_ns_, other.released_ns_);
  return *this;
}

TurnLock::~TurnLock() {
  if (fd_ >= 0) ::close(fd_);  // closing drops the lock
}

std::string TurnLock::Holder() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return "";
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

void TurnLock::Acquire() {
  HONE_CHECK(!held_) << "the turn is held already";
  // The kernel wakes those that wait and gives the lock to the first request, which is ours if we ask again at once.
  if (const int64_t since = MonotonicNs() - released_ns_; released_ns_ != 0 && since < kGiveWayNs) {
    const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(kGiveWayNs - since)};
    ::nanosleep(&pause, nullptr);
  }
  while (::flock(fd_, LOCK_EX) != 0) HONE_CHECK(errno == EINTR) << std::strerror(errno);
  held_ = true;
}

void TurnLock::Release() {
  if (!held_) return;
  ::flock(fd_, LOCK_UN);
  held_ = false;
  released_ns_ = MonotonicNs();
}

}  // namespace hone
