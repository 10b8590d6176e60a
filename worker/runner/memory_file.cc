#include "worker/runner/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<MemoryFile> MemoryFile::Create(const char* name, size_t bytes) {
  const auto failed = [&](const char* call) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memory file ", name, " of ", bytes, " bytes: ", call, ": ", std::strerror(errno)));
  };
  MemoryFile file;
  file.fd_ = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file.fd_ < 0) return failed("memfd_create");
  if (ftruncate(file.fd_, static_cast<off_t>(bytes)) != 0) return failed("ftruncate");
  // Whoever it is handed to could make it shorter under our mapping, which then faults.
  if (fcntl(file.fd_, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0) return failed("sealing its size");
  file.size_ = bytes;
  if (bytes > 0) {
    void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd_, 0);
    if (mapping == MAP_FAILED) return failed("mmap");
    file.data_ = static_cast<char*>(mapping);
  }
  return file;
}

absl::StatusOr<MemoryFile> MemoryFile::CreateSealed(const char* name, std::string_view bytes) {
  HONE_ASSIGN_OR_RETURN(MemoryFile file, Create(name, bytes.size()));
  if (!bytes.empty()) std::memcpy(file.data_, bytes.data(), bytes.size());
  HONE_RETURN_IF_ERROR(file.Seal());
  return file;
}

absl::Status MemoryFile::AddSeals(int seals) {
  if (fcntl(fd_, F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) {
    return absl::InternalError(absl::StrCat("a memory file cannot be sealed: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status MemoryFile::Seal() {
  if (data_ != nullptr) munmap(data_, size_);
  data_ = nullptr;
  return AddSeals(F_SEAL_WRITE);
}

absl::Status MemoryFile::SealForOthers() { return AddSeals(F_SEAL_FUTURE_WRITE); }

MemoryFile::~MemoryFile() {
  if (data_ != nullptr) munmap(data_, size_);
  if (fd_ >= 0) close(fd_);
}

void MemoryFile::Swap(MemoryFile& other) {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
}

}  // namespace hone
