// How fast a machine is: rates and costs that the drafts of schedules and the limits of kernels are computed from.
// Where nothing was measured, usual values of the core stand in.
//
// The text form names each fact; what it leaves out has the usual value of the target, so that a text written before a
// fact existed is read by today's code:
//
//   ghz=3.5,fma128=2,fma256=2,fma512=2,latency=4,l1=128,l2=48,l3=19,memory=8,l3_all=38,memory_all=16,fork=3,piece=0.01
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace hone {

struct Machine {
  double ghz = 0;                             // clock of a core under wide vector load
  double fma128 = 0, fma256 = 0, fma512 = 0;  // fused multiply-adds of that width started in a cycle; 0: not available
  double fma_latency = 0;                     // cycles until the sum of one may be used by the next
  // Bytes read in a cycle by one core of blocks that fit that level; `l3` is that of memory where there is no such
  // cache.
  double l1 = 0, l2 = 0, l3 = 0, memory = 0;
  double l3_all = 0, memory_all = 0;  // the same by all cores together
  double fork_us = 0;                 // handing a parallel loop to the pool and waiting for it, microseconds
  double piece_us = 0;                // of one more piece handed to a thread, microseconds

  double cycles_per_us() const { return ghz * 1000; }
  // Fused multiply-adds of vectors of that many bits started in a cycle.
  double fma_per_cycle(int vector_bits) const {
    return vector_bits >= 512 ? fma512 : vector_bits >= 256 ? fma256 : fma128;
  }
  // Vector loads from the first cache started in a cycle.
  double loads_per_cycle(int vector_bits) const { return l1 * 8 / vector_bits; }

  friend bool operator==(const Machine&, const Machine&) = default;
};

// Usual values of the core, from the table of cores (cpu_table.h).
Machine UsualMachine(const Target& target);

std::string ToText(const Machine& machine);
// InvalidArgument for a name that is no fact, a fact named twice, a value that no machine has, and a machine that has
// no multiply-adds of the vectors the target uses.
absl::StatusOr<Machine> ParseMachine(std::string_view text, const Target& target);
// The last two of them, of a machine that was not made from a text.
absl::Status CheckMachine(const Machine& machine, const Target& target);

}  // namespace hone
