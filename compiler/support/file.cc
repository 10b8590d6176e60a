#include "compiler/support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

absl::Status SystemError(int error, const char* what, const std::string& path) {
  const std::string text = absl::StrCat(what, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR: return absl::NotFoundError(text);
    case EACCES:
    case EPERM: return absl::PermissionDeniedError(text);
    case ENOSPC:
    case EDQUOT: return absl::ResourceExhaustedError(text);
    case EISDIR: return absl::InvalidArgumentError(text);
    default: return absl::InternalError(text);
  }
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(errno, "cannot write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(fd) != 0) return SystemError(errno, "cannot sync", path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> OpenToRead(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemError(errno, "cannot open", path);
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(fd);
    return SystemError(EISDIR, "cannot read", path);
  }
  return fd;
}

absl::Status ReadInPieces(const std::string& path, const std::function<void(std::string_view)>& take) {
  HONE_ASSIGN_OR_RETURN(const int fd, OpenToRead(path));
  absl::Status status;
  char chunk[1 << 16];
  for (;;) {
    const ssize_t got = ::read(fd, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = SystemError(errno, "cannot read", path);
    if (got <= 0) break;
    take({chunk, static_cast<size_t>(got)});
  }
  ::close(fd);
  return status;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::string bytes;
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) bytes.reserve(static_cast<size_t>(info.st_size));
  HONE_RETURN_IF_ERROR(ReadInPieces(path, [&](std::string_view piece) { bytes += piece; }));
  return bytes;
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  const std::string temporary = absl::StrCat(path, ".tmp.", ::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError(errno, "cannot create", temporary);
  CrashPoint("file.created");
  absl::Status status = WriteAll(fd, bytes, temporary);
  ::close(fd);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = SystemError(errno, "cannot write", path);
  CrashPoint("file.written");
  CrashPoint("file.renamed");
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

std::string ProgramFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

}  // namespace hone
