// Whole files, read and written so that a reader never sees half of one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

// NotFound, PermissionDenied or Internal, with the path and the system's reason. A folder is InvalidArgument.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// The same piece by piece.
absl::Status ReadInPieces(const std::string& path, const std::function<void(std::string_view)>& take);
// The descriptor of a file to be read, for the caller to close. Errors as ReadFile's.
absl::StatusOr<int> OpenToRead(const std::string& path);
// A file's bytes, as long as the object lives, without a copy of them. Errors as ReadFile's; FailedPrecondition when it
// is empty.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  ~MappedFile();
  std::string_view bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::string_view bytes) : bytes_(bytes) {}
  std::string_view bytes_;
};

// A file that appears whole or not at all: it is written beside `path` under another name, which Commit changes.
// Without Commit nothing is left behind, and an older file stays as it was.
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(std::string path);
  AtomicFile(AtomicFile&& other) noexcept;
  ~AtomicFile();

  absl::Status Append(std::string_view bytes);
  // Instead of, or from, bytes that were appended.
  absl::Status WriteAt(int64_t offset, std::string_view bytes);
  absl::Status ReadAt(int64_t offset, std::span<char> to) const;
  int64_t size() const { return size_; }
  const std::string& temporary_path() const { return temporary_; }

  absl::Status Commit();  // syncs and renames; nothing may be called after it

 private:
  AtomicFile(int fd, std::string path, std::string temporary);
  int fd_ = -1;
  std::string path_, temporary_;
  int64_t size_ = 0;
  int64_t to_disk_ = 0;  // bytes that are written or on their way to the disk
};

// The same with bytes that are at hand.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);
// The folder the running program's file is in: where the programs it starts are found.
std::string ProgramFolder();

}  // namespace hone
