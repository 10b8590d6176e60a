// What kernels of a GPU are made for: the language and architecture, and how much of everything the device has.
//
// As with CPUs (target.h) the text says everything, and what it leaves out has a usual value:
//
//   cuda:sm_90a                                     an H100
//   cuda:sm_90a,bandwidth=4800                      an H200
//   cuda:sm_80,processors=108,l2=40M                an A100
//   opencl:generic,processors=32,shared=64K         what an OpenCL device says of itself
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

struct GpuTarget {
  std::string text;                    // canonical
  std::string language;                // "cuda" or "opencl"
  std::string arch;                    // NVRTC's name: "sm_80", "sm_90a"; "generic"
  int64_t lanes = 1;                   // of a warp; 1 where nothing is known of warps
  int64_t processors = 1;              // streaming multiprocessors, or compute units
  int64_t threads = 256;               // of a block, at most
  int64_t resident_threads = 1024;     // of a processor, at most
  int64_t registers = 65536;           // of 32 bits, of a processor; a thread has at most 255
  int64_t shared = 32 << 10;           // bytes, of a block
  int64_t resident_shared = 64 << 10;  // bytes, of a processor
  int64_t l2 = 4 << 20;                // bytes
  int64_t mhz = 1000;                  // under load
  int64_t bandwidth = 100;             // of memory, 10^9 bytes a second

  friend bool operator==(const GpuTarget&, const GpuTarget&) = default;
};

// Every architecture that a text may name, with its usual facts.
std::span<const GpuTarget> GpuTable();

// Whether a text names a target of this kind, known or not: it begins with "cuda:" or "opencl:".
bool NamesGpu(std::string_view text);

// The key under which measurements of like devices are kept: "opencl-generic".
std::string DeviceClass(const GpuTarget& target);

// InvalidArgument says which word is not known and lists what is.
absl::StatusOr<GpuTarget> ParseGpuTarget(std::string_view text);

}  // namespace hone
