// What a kernel for NVIDIA's GPUs takes of them, read from its machine code, on any machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/cuda/nvrtc.h"

namespace hone {

struct CudaKernel {
  std::string name;
  int64_t registers = 0;     // of a thread
  int64_t stack_bytes = 0;   // of a thread
  int64_t shared_bytes = 0;  // of a block: what the kernel declares, without what the architecture keeps for itself
  int64_t spill_stores = 0, spill_loads = 0;  // bytes of a thread, from the log
  // How many instructions there are of each kind, by nvdisasm's names, "other" for the rest:
  //   FMUL FADD FFMA HMMA IMMA HGMMA MUFU   arithmetic, MUFU the fast functions
  //   LDG STG LDS STS LDL STL LDSM          loads and stores of global, shared and a thread's memory, of fragments
  //   LDGSTS UTMALDG BAR                    asynchronous copies, barriers
  std::map<std::string, int64_t> instructions;
};

// The kernels of an image, by name. InvalidArgument when it is no ELF file for these GPUs.
absl::StatusOr<std::vector<CudaKernel>> ReadCubin(const CudaImage& image);

// {"registers": 32, ..}, one object without line breaks.
std::string ToJson(const CudaKernel& kernel);

}  // namespace hone
