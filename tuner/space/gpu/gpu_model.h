// The draft of a launch: what a device takes for it by arithmetic alone, before anything is compiled. It orders
// schedules for the search, which learns from measurements what it gets wrong.
//
// The model is DeepGEMM's (research/codegen.md, section 1.6): blocks run in waves, a wave takes as long as the slowest
// of arithmetic, the block's own memory and the second cache; and the whole no less than memory needs.
#pragma once

#include <cstdint>

#include "compiler/target/gpu_target.h"

namespace hone {

inline constexpr int64_t kVectorBytes = 16;  // the widest load or store of a thread
inline constexpr int64_t kSectorBytes = 32;  // what memory and the second cache move at once
inline constexpr int64_t kLineBytes = 128;   // of the first cache: lanes of a warp in one line are answered together
inline constexpr int64_t kSharedBanks = 32;  // of shared memory, each of 4 bytes

struct LaunchWork {
  double blocks = 1;
  int64_t threads = 1;       // of a block
  int64_t registers = 32;    // of a thread, about
  int64_t shared_bytes = 0;  // of a block
  double operations = 0;     // of a block: fused multiply-adds, and what takes as long
  double near_bytes = 0;     // of a block, from and to shared memory and the first cache
  double far_bytes = 0;      // of a block, from and to the second cache
  double memory_bytes = 0;   // of the launch, each byte counted once
  double barriers = 0;       // of a block
  int64_t ahead = 1;         // steps whose operands are on their way or there at once
  double steps = 0;          // of a block, each of which uses what it has read; 0: threads hide latency of one another
};

// Blocks of a launch that a processor has at once; 0: not even one.
int64_t ResidentBlocks(const LaunchWork& work, const GpuTarget& target);
// Microseconds. Of a launch whose blocks do not fit, those of blocks that come one by one.
double LaunchMicroseconds(const LaunchWork& work, const GpuTarget& target);

}  // namespace hone
