// What runs the kernels of a bundle for a device: memory, programs, launches, a clock. One class for each driver
// (device_drivers.h); whoever uses devices knows this alone.
//
// Calls of one device come from one thread at a time. Launches run in order; an error of one is met at Finish at the
// latest. After kDeviceLost every call is refused with the same words; where a process of its own uses the device, the
// next process opens it again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/runtime/error.h"

namespace hone {

struct DeviceFacts {
  std::string name, vendor, version;  // "NVIDIA H100", "OpenCL 3.0 ..", as the driver says
  std::string architecture;           // that code is made for: "sm_90"; "" where the driver compiles for what it has
  bool is_cpu = false;
  int64_t compute_units = 0, clock_mhz = 0;
  int64_t global_bytes = 0, local_bytes = 0;  // of memory, and of a block's shared memory
  int64_t cache_bytes = 0;                    // of the cache in front of memory, 0 where the driver does not say
  int64_t most_threads = 0;                   // of a block
  // 0 where the driver does not say: threads of a warp, and of a compute unit what all its blocks share.
  int64_t lanes = 0, resident_threads = 0, resident_local_bytes = 0, registers = 0;
};

class Device {
 public:
  // What devices ask for at most (CL_DEVICE_MEM_BASE_ADDR_ALIGN); one that wants more is refused by Allocate.
  static constexpr int64_t kPartAlignment = 1024;
  // One kernel's run by grid[0] * grid[1] * grid[2] blocks of so many threads.
  struct Launch {
    std::string kernel;
    std::array<int64_t, 3> grid, block;
    std::vector<size_t> buffers;  // its arguments, numbers of buffers and parts
    int64_t shared_bytes = 0;     // of a block's shared memory, beyond what the kernel declares
  };
  virtual ~Device() = default;

  virtual const DeviceFacts& facts() const = 0;

  // Kernels in place of those before. Each text of `code`, in the form that the driver takes, is a program by itself,
  // and names of kernels are unique among all. kInvalidArgument with the compiler's log when it refuses a text.
  virtual RuntimeError Build(std::span<const std::string> code) = 0;
  // Buffers of so many bytes, in place of those before. Contents are undefined. `parts` are numbered after them: each
  // is some bytes of one of them, from a multiple of kPartAlignment on.
  struct Part {
    size_t of = 0;
    int64_t offset = 0, bytes = 0;
  };
  virtual RuntimeError Allocate(std::span<const int64_t> bytes, std::span<const Part> parts = {}) = 0;
  virtual RuntimeError Write(size_t buffer, const void* from, int64_t bytes, int64_t offset = 0) = 0;
  // After what was launched before.
  virtual RuntimeError Read(size_t buffer, void* to, int64_t bytes, int64_t offset = 0) = 0;
  // Within one buffer, bytes that do not overlap.
  virtual RuntimeError Copy(size_t from, size_t to, int64_t bytes, int64_t from_offset = 0, int64_t to_offset = 0) = 0;
  // Hands the launch to the device. kKernelFailed when the device refuses it: too many threads, too much shared memory.
  virtual RuntimeError Start(const Launch& launch) = 0;
  virtual RuntimeError Finish() = 0;  // until all is done

  // What `work` starts and copies is kept as one sequence, in place of the one before, and not run. StartSequence hands
  // it to the device at the cost of one launch, as often as one likes, until kernels or buffers are others. `work` has
  // been run before as it is, so that nothing of it is loaded or refused for the first time. kUnsupported where the
  // driver has no sequences.
  virtual RuntimeError KeepSequence(const std::function<RuntimeError()>& work) = 0;
  virtual RuntimeError StartSequence() = 0;

  // Microseconds by the device's own clock, of a device that was opened with one. A lap is what is launched between two
  // of these calls, one launch at least, from the beginning of its first launch to the end of its last one. Nothing is
  // waited for before the clock is stopped.
  virtual void StartClock() = 0;
  virtual RuntimeError EndLap() = 0;                           // and begin the next one
  virtual RuntimeResult<std::vector<double>> StopClock() = 0;  // the laps, the last of which it ends
};

// The device that runs code made for a target ("opencl:generic", "cuda:sm_90a,l2=50M"; of its facts none counts): the
// one that an environment variable counts (HONE_OPENCL_DEVICE, HONE_CUDA_DEVICE), in the order of `hone doctor`; the
// first that is no CPU; the first. kUnsupported where there is none, with what to install, or none of the target's
// architecture, with what there is.
RuntimeResult<std::unique_ptr<Device>> OpenDevice(std::string_view target, bool with_clock = false);

}  // namespace hone
