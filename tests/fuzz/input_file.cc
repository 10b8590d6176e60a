#include "tests/fuzz/input_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/support/check.h"

namespace hone {

InputFile::InputFile(std::string_view bytes) : fd_(::memfd_create("input", MFD_CLOEXEC)) {
  HONE_CHECK(fd_ >= 0 && ::fchmod(fd_, 0600) == 0);
  HONE_CHECK(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
}
InputFile::~InputFile() { ::close(fd_); }

std::string InputFile::path() const { return "/proc/self/fd/" + std::to_string(fd_); }

}  // namespace hone
