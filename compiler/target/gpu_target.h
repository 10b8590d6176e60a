// What kernels of a GPU are made for: the language and architecture, and how much of everything the device has.
//
// As with CPUs (target.h) the text says everything, and what it leaves out has a usual value:
//
//   cuda:sm_90a                                     an H100
//   cuda:sm_90a,bandwidth=4800                      an H200
//   cuda:sm_80,processors=108,l2=40M                an A100
//   opencl:generic,processors=32,shared=64K         what an OpenCL device says of itself
//   opencl:generic,device=gfx1100,processors=96     and its name
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

struct GpuTarget {
  std::string text;                    // canonical
  std::string language;                // "cuda" or "opencl"
  std::string arch;                    // NVRTC's name: "sm_80", "sm_90a"; "generic"
  std::string device;                  // the driver's name for it, of letters that ToDeviceName leaves; "" for any
  int64_t lanes = 1;                   // of a warp; 1 where nothing is known of warps
  int64_t processors = 1;              // streaming multiprocessors, or compute units
  int64_t threads = 256;               // of a block, at most
  int64_t resident_threads = 1024;     // of a processor, at most
  int64_t registers = 65536;           // of 32 bits, of a processor; a thread has at most 255
  int64_t shared = 32 << 10;           // bytes, of a block
  int64_t resident_shared = 64 << 10;  // bytes, of a processor
  int64_t shared_apart = 32 << 10;     // bytes of a block that are not worth a barrier: several such blocks have room
  int vector_bits = 512;               // of a vector of a program, which a thread loads in pieces
  int64_t l2 = 4 << 20;                // bytes
  int64_t mhz = 1000;                  // under load
  int64_t bandwidth = 100;             // of memory, 10^9 bytes a second

  friend bool operator==(const GpuTarget&, const GpuTarget&) = default;
};

// Every architecture that a text may name, with its usual facts.
std::span<const GpuTarget> GpuTable();

// What tile intrinsics (compiler/tile) ask of a target, by name; as Target::features.
std::set<std::string> FeaturesOf(const GpuTarget& target);

// Whether a text names a target of this kind, known or not: it begins with "cuda:" or "opencl:".
bool NamesGpu(std::string_view text);

// With the canonical text of its facts.
GpuTarget WithText(GpuTarget target);

// Small letters, digits and single '-', 40 at most: as a text states the name of a device.
std::string ToDeviceName(std::string_view name);

// The key under which measurements of like devices are kept: "opencl-generic-gfx1100-p96-t1024-s64K", of language,
// architecture, name, processors, threads and shared memory of a block.
std::string DeviceClass(const GpuTarget& target);

// FailedPrecondition where a block of a kernel has more threads or bytes of shared memory than the target.
absl::Status CheckBlock(const GpuTarget& target, std::string_view kernel, int64_t threads, int64_t shared_bytes);

// InvalidArgument says which word is not known and lists what is.
absl::StatusOr<GpuTarget> ParseGpuTarget(std::string_view text);

}  // namespace hone
