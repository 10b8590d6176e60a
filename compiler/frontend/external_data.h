// Tensor data kept in files beside a model.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

// Reads from regular files below one folder. A location is a relative path; one that is absolute, has "..", or leads
// through a symbolic link is refused (InvalidArgument), as is a range beyond the end of the file. Files stay open until
// destruction.
class ExternalData {
 public:
  explicit ExternalData(std::string folder);  // "": every read is refused
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  // Fills `to` with the bytes from `offset` on; `to` is as long as the tensor.
  absl::Status Read(const std::string& location, int64_t offset, std::span<char> to);
  // The size of the file in bytes.
  absl::StatusOr<int64_t> Size(const std::string& location);

 private:
  struct File {
    int descriptor = -1;
    int64_t size = 0;
  };
  absl::StatusOr<File> Open(const std::string& location);

  std::string folder_;
  std::map<std::string, File> files_;
};

}  // namespace hone
