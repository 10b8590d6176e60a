// A device that OpenCL knows: memory, programs from source, launches. Of what is installed the ICD loader,
// libOpenCL.so.1, is opened at run time: nothing links it, and where it is missing Open says so.
//
// Calls of one device come from one thread at a time. Launches run in order; an error of one is met at Finish at the
// latest.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "deploy/runtime/error.h"

namespace hone {

struct OpenClFacts {
  std::string name, vendor, version;  // "NVIDIA H100", "OpenCL 3.0 ..", as the driver says
  bool is_cpu = false;
  int64_t compute_units = 0, clock_mhz = 0;
  int64_t global_bytes = 0, local_bytes = 0;  // of memory, and of a block's shared memory
  int64_t most_threads = 0;                   // of a block
};

class OpenClDevice {
 public:
  // What devices ask for at most (CL_DEVICE_MEM_BASE_ADDR_ALIGN); one that wants more is refused by Allocate.
  static constexpr int64_t kPartAlignment = 1024;
  // One kernel's run by grid[0] * grid[1] * grid[2] blocks of so many threads.
  struct Launch {
    std::string kernel;
    std::array<int64_t, 3> grid, block;
    std::vector<size_t> buffers;  // its arguments, numbers of buffers and parts
  };

  // Facts of all devices there are, in the order in which Open counts them. kUnsupported when there is no loader, no
  // driver or no device, with what to install.
  static RuntimeResult<std::vector<OpenClFacts>> List();
  // A context of its own on that device. kUnsupported as List; kNotFound when there are fewer.
  static RuntimeResult<std::unique_ptr<OpenClDevice>> Open(size_t index = 0);
  ~OpenClDevice();
  OpenClDevice(const OpenClDevice&) = delete;

  const OpenClFacts& facts() const;

  // Kernels from their sources, in place of those before; each source is compiled by itself, and names of kernels are
  // unique among all. kInvalidArgument with the compiler's log when it refuses a text. PoCL compiles sources with
  // barriers unoptimized: version 3.1, which Debian 12 has, fails an assertion of its own on some loops with barriers
  // otherwise, and ends the process.
  RuntimeError Build(std::span<const std::string> sources);
  // Buffers of so many bytes, in place of those before. Contents are undefined. `parts` are numbered after them: each
  // is some bytes of one of them, from a multiple of kPartAlignment on.
  struct Part {
    size_t of = 0;
    int64_t offset = 0, bytes = 0;
  };
  RuntimeError Allocate(std::span<const int64_t> bytes, std::span<const Part> parts = {});
  RuntimeError Write(size_t buffer, const void* from, int64_t bytes);
  RuntimeError Read(size_t buffer, void* to, int64_t bytes);  // after what was launched before
  RuntimeError Copy(size_t from, size_t to, int64_t bytes);
  // Hands the launch to the device. kKernelFailed when the device refuses it: too many threads, too much shared memory.
  RuntimeError Start(const Launch& launch);
  RuntimeError Finish();  // until all is done

 private:
  struct State;
  explicit OpenClDevice(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hone
