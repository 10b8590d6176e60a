// An input as a file, for readers that are given a path.
#pragma once

#include <string>
#include <string_view>

namespace hone {

// In memory, and its owner's alone.
class InputFile {
 public:
  explicit InputFile(std::string_view bytes);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  std::string path() const;

 private:
  int fd_ = -1;
};

}  // namespace hone
