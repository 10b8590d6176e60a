// What a device runs: launches in order, and the kernel of each. The last step of lowering for GPUs.
//
//   up = alloc(8)                                          buffers   A, B, up
//   for threadIdx_x in 8: up[threadIdx_x] = ..        =>   launches  main_0 over (1) x (8): A, up
//   for blockIdx_x in 2: for threadIdx_x in 4: B[..]                 main_1 over (2) x (4): up, B
//
// Launches are the host's part, plain numbers: what stores and runs them needs no TensorIR.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

// Along x, y and z.
using Extents = std::array<int64_t, 3>;

// One run of a kernel. Launches run one after the other: each sees all that those before it wrote.
struct Launch {
  std::string kernel;           // its name in the code
  Extents grid = {1, 1, 1};     // blocks
  Extents block = {1, 1, 1};    // threads of a block
  int64_t shared_bytes = 0;     // of a block
  std::vector<size_t> buffers;  // arguments, in the kernel's order: indices in DeviceProgram::buffers
};

// What every thread of a launch runs. Of the body:
//   - Every buffer has one dimension. Arguments are in global memory, `shared` are the block's and have no Alloc; what
//     has one is the thread's own.
//   - No BlockRealize and no loop that is bound, vectorised or unrolled: vectors are explicit, as in lower.h.
//   - Registers are indexed by constants where the loops over them are short.
//   - A serial loop with the annotation kCopiesRun is around one asynchronous copy (ir/effects.h), whose elements are
//     neighbours on both sides from iteration to iteration: a device may copy several at once.
struct DeviceKernel {
  struct Argument {
    Buffer buffer;
    bool written = false;
  };
  struct Shared {
    Buffer buffer;
    int64_t offset = 0;  // bytes from the start of the block's shared memory, a multiple of kSharedAlignment
  };
  std::array<Var, 3> block_index;   // the block's place in the grid; absent along an axis that the launch does not have
  std::array<Var, 3> thread_index;  // the thread's in its block
  std::vector<Argument> arguments;
  std::vector<Shared> shared;
  Stmt body;
};

inline constexpr char kCopiesRun[] = "copies_run";

// Copies of 16 bytes are aligned, and every buffer starts at the first bank.
inline constexpr int64_t kSharedAlignment = 128;

// What of the target counts: GpuTarget (compiler/target/gpu_target.h) has the same.
struct DeviceOptions {
  int vector_bits = 512;            // of a vector of the program; printers cut it into what a thread loads at once
  int64_t shared_apart = 32 << 10;  // bytes of shared memory of a block up to which no two buffers share any
};

struct DeviceProgram {
  // Memory of the device: the function's params in order, then what launches hand to one another, whose contents are
  // undefined when a run begins.
  struct Memory {
    Buffer buffer;
    int64_t bytes = 0;
  };
  std::vector<Memory> buffers;
  size_t params = 0;  // so many of them
  std::vector<Launch> launches;
  std::vector<DeviceKernel> kernels;  // of each launch
  // Vectorised loops that have no vector form and run as serial ones: a text for each, with the reason.
  std::vector<std::string> serial_loops;
};

// A scheduled function with loops bound to blockIdx and threadIdx, as launches. What stands outside of all such loops
// is run by one thread. Fails as LowerThreads does; FailedPrecondition also for symbolic sizes, and for a loop or a
// condition around launches.
absl::StatusOr<DeviceProgram> LowerToDevice(const PrimFunc& scheduled, const DeviceOptions& options = {});

// A line a launch: "main_0 over 3 x 2 x 1 blocks of 8 x 4 x 1 threads, 768 bytes shared: A, C".
std::string ToText(const DeviceProgram& program);

}  // namespace hone
