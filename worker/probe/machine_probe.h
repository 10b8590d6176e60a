// Measures the facts of the machine this runs on (compiler/target/machine.h), and the peaks that limits are computed
// from.
//
// Every figure is the best of many short probes of several kinds (widths of vectors, numbers of sums, reading and
// copying): what else runs on the machine only slows a probe down, and a limit must be one that no kernel beats. Probes
// last some tens of microseconds, so that on a busy machine most are not interrupted; one that shares a core with us
// all the time makes what it uses read low.
#pragma once

#include <array>
#include <cstdint>

#include "compiler/target/machine.h"

namespace hone {

struct ProbeOptions {
  int threads = 1;                // of the facts that are about all of them
  double seconds = 0.05;          // rounds of probes are repeated for so long; one is made in any case
  int64_t most_bytes = 64 << 20;  // of memory to read. Where the last cache is larger than half of that, `memory` is
                                  // the rate at which a block of this size is read
};

inline constexpr ProbeOptions kQuickProbe = {.seconds = 0.05, .most_bytes = int64_t{64} << 20};     // at most 0.1 s
inline constexpr ProbeOptions kThoroughProbe = {.seconds = 1.5, .most_bytes = int64_t{256} << 20};  // at most 2 s

enum MemoryLevel : uint8_t { kL1, kL2, kL3, kMemory, kMemoryLevels };

struct MachineProbe {
  Machine machine;
  // float32 operations a second, a multiply-add being two, in units of 10^9: by one core and by all threads.
  double gflops_1 = 0, gflops_all = 0;
  // Bytes read, or read and written, a second in units of 10^9, whatever is more, of a block in that level.
  std::array<double, kMemoryLevels> gbps_1{}, gbps_all{};
};

// The machine is that of `target`, which must be the host's or have fewer features.
MachineProbe ProbeMachine(const Target& target, const ProbeOptions& options);

}  // namespace hone
