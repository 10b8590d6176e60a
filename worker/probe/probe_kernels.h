// The loops that a probe of the machine times: multiply-adds in registers, a chain that counts cycles, reading and
// copying a block. Each exists for vectors of 128, 256 and 512 bits where this compiler and the machine have them.
//
// They are written with the vector types of GCC and Clang and a target attribute for each width: one text serves every
// instruction set, and the probe links no code generator, so that a client and a worker may run it in the first
// milliseconds of their life.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/target/target.h"

namespace hone {

struct ProbeKernels {
  int bits = 128;
  // `steps` multiply-adds of each of that many independent sums. More hide the latency; too many do not fit the
  // registers.
  struct Fma {
    int sums;
    void (*run)(int64_t steps);
  };
  std::vector<Fma> fma;  // the first has one sum alone
  // `steps` dependent operations of one cycle each, beside multiply-adds: so many cycles at the clock of vector code.
  void (*cycles)(int64_t steps);
  // Reads `bytes` from `from`, a multiple of kProbeGranule and so aligned.
  void (*read)(const char* from, int64_t bytes);
  // Reads so many and writes them to `to`.
  void (*copy)(char* to, const char* from, int64_t bytes);
};
inline constexpr int64_t kProbeGranule = 1024;

// For the widths that the target has, narrowest first.
std::vector<ProbeKernels> ProbeKernelsFor(const Target& target);

}  // namespace hone
