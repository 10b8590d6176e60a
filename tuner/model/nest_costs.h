// What the machine does for one store: arithmetic, traffic between the levels of memory, and how they compare.
#pragma once

#include <array>
#include <vector>

#include "compiler/target/machine.h"
#include "compiler/target/target.h"
#include "tuner/model/store_nest.h"

namespace hone {

// The machine's facts in the units that features need. Levels: first, second and third cache, memory.
inline constexpr size_t kLevels = 4;
struct NestMachine {
  double lanes = 8;  // float32 in a vector
  double registers = 16;
  double fma_per_cycle = 2;
  double fma_latency = 4;                         // cycles
  double loads_per_cycle = 2;                     // of vectors, from the first cache
  std::array<double, kLevels> capacity{};         // bytes; of memory: unlimited
  std::array<double, kLevels> bytes_per_cycle{};  // one core reads from that level
  std::array<double, kLevels> all_cores{};        // the same by all cores together; 0: every core has its own
  double cycles_per_us = 1;
  double fork_us = 0;
  double threads = 1;
};
NestMachine MachineOf(const Target& target, const Machine& facts, int threads);

// How loops and bytes of a nest grow from the inside outwards: element d is with the loops from d inwards running once;
// the last, loops.size(), is one iteration of the innermost loop.
struct NestLevels {
  std::vector<std::vector<Footprint>> of_access;  // [access][depth]
  std::vector<double> bytes;                      // [depth], distinct, all accesses
  std::vector<double> iterations;                 // [depth], of the loops from d inwards
};
NestLevels LevelsOf(const StoreNest& nest);

struct NestCosts {
  double parallel = 1;                    // iterations of parallel loops
  double speed_up = 1;                    // over one thread
  double arithmetic_cycles = 0;           // on one core, all iterations, with full pipelines
  double latency_factor = 1;              // at least 1: what waiting for accumulators costs on top
  double port_cycles = 0;                 // loads, stores and gathers by the ports of the core
  std::array<double, kLevels> traffic{};  // bytes fetched from that level
  std::array<double, kLevels> traffic_cycles{};
  double loads = 0, stores = 0, gathers = 0, broadcasts = 0;  // vectors (or scalars) in one innermost iteration
  double microseconds = 0;                                    // all of it, on all threads
};
NestCosts CostsOf(const StoreNest& nest, const NestLevels& levels, const NestMachine& machine);

}  // namespace hone
