// Kernels of CUDA C++ as functions of this process, and the threads of their launches: the execution of fake_cuda.h.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace hone::fake {

class KernelLibrary {
 public:
  using Call = void (*)(void** arguments);

  // Null where the C++ compiler refuses the text, whose words go to standard error. The same text is compiled once in a
  // process.
  static std::shared_ptr<const KernelLibrary> Compile(const std::string& text);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;

  struct Kernel {
    Call call = nullptr;  // null where there is none of that name
    int arguments = 0;
  };
  Kernel Find(const std::string& kernel) const;
  // False where a thread touched what it must not: then nothing of the threads is left.
  bool Run(Call call, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block, size_t shared_bytes,
           void** arguments) const;

 private:
  KernelLibrary() = default;
  void* handle_ = nullptr;
  bool has_barriers_ = false;
};

}  // namespace hone::fake
