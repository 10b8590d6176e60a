// Memory shared between processes by descriptor: no name, no file system.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

class MemoryFile {
 public:
  MemoryFile() = default;
  // Zeroed and mapped, of a size that nobody can change. ResourceExhausted when there is no memory or no descriptor
  // left.
  static absl::StatusOr<MemoryFile> Create(const char* name, size_t bytes);
  // With these bytes, sealed against any change.
  static absl::StatusOr<MemoryFile> CreateSealed(const char* name, std::string_view bytes);

  MemoryFile(MemoryFile&& other) noexcept { Swap(other); }
  MemoryFile& operator=(MemoryFile&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~MemoryFile();

  int fd() const { return fd_; }
  char* data() const { return data_; }  // nullptr once sealed
  size_t size() const { return size_; }
  // Unmaps and forbids writing from now on, by anybody. Internal when somebody else has it mapped to write.
  absl::Status Seal();
  // Forbids writing from now on to all but what is mapped already: this process by data(). Internal where the system
  // cannot (Linux before 5.1).
  absl::Status SealForOthers();

 private:
  void Swap(MemoryFile& other);
  absl::Status AddSeals(int seals);
  int fd_ = -1;
  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hone
