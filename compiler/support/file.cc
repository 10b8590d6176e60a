#include "compiler/support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

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

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const int fd, OpenToRead(path));
  struct stat info {};
  void* mapping = MAP_FAILED;
  if (::fstat(fd, &info) == 0 && info.st_size > 0)
    mapping = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  ::close(fd);
  if (info.st_size == 0) return absl::FailedPreconditionError(absl::StrCat(path, " is empty"));
  if (mapping == MAP_FAILED) return SystemError(error, "cannot map", path);
  return MappedFile({static_cast<const char*>(mapping), static_cast<size_t>(info.st_size)});
}

AtomicFile::AtomicFile(int fd, std::string path, std::string temporary)
    : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      size_(other.size_),
      to_disk_(other.to_disk_) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

absl::StatusOr<AtomicFile> AtomicFile::Create(std::string path) {
  std::string temporary = absl::StrCat(path, ".tmp.", ::getpid());
  const int fd = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError(errno, "cannot create", temporary);
  CrashPoint("file.created");
  return AtomicFile(fd, std::move(path), std::move(temporary));
}

absl::Status AtomicFile::WriteAt(int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(errno, "cannot write", temporary_);
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::ReadAt(int64_t offset, std::span<char> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(fd_, to.data(), to.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "cannot read", temporary_);
    if (got == 0) return absl::InternalError(absl::StrCat("cannot read ", temporary_, ": it became shorter"));
    to = to.subspan(static_cast<size_t>(got));
    offset += got;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Append(std::string_view bytes) {
  HONE_RETURN_IF_ERROR(WriteAt(size_, bytes));
  size_ += static_cast<int64_t>(bytes.size());
  // The disk works while more is made: Commit then waits for the rest alone. A hint, so that its failure is none.
  constexpr int64_t kSendAfter = 8 << 20;
  if (size_ - to_disk_ >= kSendAfter) {
    ::sync_file_range(fd_, to_disk_, size_ - to_disk_, SYNC_FILE_RANGE_WRITE);
    to_disk_ = size_;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (::fsync(fd_) != 0) return SystemError(errno, "cannot sync", temporary_);
  CrashPoint("file.written");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return SystemError(errno, "cannot write", path_);
  CrashPoint("file.renamed");
  ::close(std::exchange(fd_, -1));
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  HONE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  HONE_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
}

std::string ProgramFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

}  // namespace hone
