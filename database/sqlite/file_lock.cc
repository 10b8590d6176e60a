#include "database/sqlite/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hone {
namespace {

std::string ReadAll(int fd) {
  char buffer[512];
  const ssize_t size = pread(fd, buffer, sizeof(buffer), 0);
  return size > 0 ? std::string(buffer, size) : std::string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Acquire(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) { return absl::PermissionDeniedError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno))); }
  // Somebody who only looks whether a daemon is there holds a shared lock for an instant: try for a second.
  for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (i == 20) {
      const std::string text = ReadAll(fd);
      close(fd);
      return absl::FailedPreconditionError(absl::StrCat(
          path, ": another process has this database open for writing",
          text.empty() ? "; wait for it, or give another file" : absl::StrCat("; its daemon listens on ", text)));
    }
    usleep(50'000);
  }
  if (ftruncate(fd, 0) != 0) {
    close(fd);
    return absl::InternalError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<FileLock>(new FileLock(fd));
}

// The file stays: removing it would let two processes lock two different files of one name.
FileLock::~FileLock() {
  if (ftruncate(fd_, 0) != 0) { /* the text counts for nothing without the lock */
  }
  close(fd_);
}

absl::Status FileLock::WriteText(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  bool written =
      fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (fd >= 0) close(fd);
  if (written) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

std::string FileLock::TextOfHolder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const bool held = flock(fd, LOCK_SH | LOCK_NB) != 0;
  std::string text = held ? ReadAll(fd) : "";
  close(fd);
  return text;
}

}  // namespace hone
