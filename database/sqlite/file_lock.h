// A lock file that says who holds it: flock on the file, a line of text inside. The kernel drops the lock of a process
// that dies, and a text without a lock counts for nothing.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

class FileLock {
 public:
  // FailedPrecondition when another process holds it (after a second of trying), naming the text it left.
  static absl::StatusOr<std::unique_ptr<FileLock>> Acquire(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;

  static absl::Status WriteText(const std::string& path, const std::string& text);  // by the holder
  static std::string TextOfHolder(const std::string& path);                         // empty when nobody holds it

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace hone
