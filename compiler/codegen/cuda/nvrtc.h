// NVIDIA's run-time compiler: CUDA C++ to machine code of a GPU, in process, without a GPU.
//
// The library is opened at run time, and nothing links it: the file that HONE_NVRTC names, else libnvrtc.so of the
// system's toolkit. Its licence keeps it apart from Hone; deploy/setup takes it from PyPI where the system has none.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hone {

struct CudaImage {
  std::string cubin;  // an ELF file for one architecture (cubin.h)
  std::string log;    // of the compiler and the assembler: registers, spills, warnings
};

class Nvrtc {
 public:
  // Opened once. FailedPrecondition says what to install where there is none.
  static absl::StatusOr<const Nvrtc*> Load();

  const std::string& version() const { return version_; }  // "13.0"

  // `architecture`: "sm_80", "sm_90a". InvalidArgument with the compiler's log when it refuses the text.
  absl::StatusOr<CudaImage> Compile(const std::string& source, const std::string& architecture) const;

 private:
  struct Api;
  Nvrtc(const Api* api, std::string version) : api_(api), version_(std::move(version)) {}

  const Api* api_;
  std::string version_;
};

}  // namespace hone
