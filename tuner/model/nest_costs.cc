#include "tuner/model/nest_costs.h"

#include <algorithm>
#include <cmath>

#include "tuner/space/nests/draft_costs.h"

namespace hone {
namespace {

constexpr double kLineBytes = 64;
constexpr double kUsable = 0.75;          // of a cache's capacity stays with a working set
constexpr double kStoresOverLoads = 0.5;  // of the ports for loads, those for stores
constexpr double kGatherCycles = 0.7;     // for each lane

// Loads and stores by kind, an iteration's, and the cycles that the ports they go through are busy.
void CountPorts(const StoreNest& nest, double iterations, const NestMachine& machine, NestCosts* costs) {
  for (const NestAccess& access : nest.accesses) {
    const double width = std::max(1.0, std::ceil(access.lanes / machine.lanes));
    if (access.write) {
      costs->stores += access.distinct * width * (access.gather ? access.lanes : 1);
    } else if (access.gather) {
      costs->gathers += access.distinct * access.lanes;
    } else if (access.broadcast) {
      costs->broadcasts += access.distinct;
    } else {
      costs->loads += access.distinct * width;
    }
  }
  costs->port_cycles =
      iterations * ((costs->loads + costs->broadcasts) / machine.loads_per_cycle +
                    costs->stores / (machine.loads_per_cycle * kStoresOverLoads) + costs->gathers * kGatherCycles);
}

// What is fetched from a level: the largest part of the nest that the level above it holds is fetched once for every
// run of the loops outside, less those of the next loop out that does not move an operand: that stays.
void CountTraffic(const StoreNest& nest, const NestLevels& levels, const NestMachine& machine, NestCosts* costs) {
  const double cores = costs->parallel > 1 ? std::min(machine.threads, costs->parallel) : 1;
  for (size_t level = 0; level < kLevels; ++level) {
    size_t depth = nest.loops.size();
    if (level > 0) {
      const double holds = machine.capacity[level - 1] * kUsable;
      depth = 0;
      while (depth < nest.loops.size() && levels.bytes[depth] > holds) ++depth;
    }
    for (size_t a = 0; a < nest.accesses.size(); ++a) {
      double runs = 1;
      for (size_t l = 0; l < depth; ++l) {
        const bool stays = level > 0 && l + 1 == depth && !MovesWith(nest.accesses[a], l);
        if (!stays) runs *= nest.loops[l].extent;
      }
      const double bytes = level == 0 ? nest.accesses[a].distinct * nest.accesses[a].lanes *
                                            static_cast<double>(nest.accesses[a].buffer.type().bytes())
                                      : levels.of_access[a][depth].lines * kLineBytes;
      costs->traffic[level] += bytes * runs;
    }
    double rate = machine.bytes_per_cycle[level];
    if (machine.all_cores[level] > 0) rate = std::min(rate, machine.all_cores[level] / cores);
    costs->traffic_cycles[level] = costs->traffic[level] / rate;
  }
}

}  // namespace

NestMachine MachineOf(const Target& target, const Machine& facts, int threads) {
  NestMachine machine;
  machine.lanes = target.lanes();
  machine.registers = target.vector_registers;
  machine.fma_per_cycle = facts.fma_per_cycle(target.vector_bits);
  machine.fma_latency = facts.fma_latency;
  machine.loads_per_cycle = facts.loads_per_cycle(target.vector_bits);
  machine.capacity = {static_cast<double>(std::max<int64_t>(target.l1d, 1)),
                      static_cast<double>(std::max<int64_t>(target.l2, 1)),
                      static_cast<double>(std::max<int64_t>(std::max(target.l3, target.l2), 1)), 1e18};
  for (size_t level = 0; level < kLevels; ++level) {
    const double inside = level + 1 < kLevels ? machine.capacity[level] / 2 : machine.capacity[level];
    machine.bytes_per_cycle[level] = BytesPerCycle(target, facts, inside);
  }
  machine.all_cores = {0, 0, facts.l3_all, facts.memory_all};
  machine.cycles_per_us = facts.cycles_per_us();
  machine.fork_us = facts.fork_us;
  machine.threads = std::max(1, threads);
  return machine;
}

NestLevels LevelsOf(const StoreNest& nest) {
  const size_t depths = nest.loops.size() + 1;
  NestLevels levels;
  levels.bytes.assign(depths, 0);
  levels.iterations.assign(depths, 1);
  for (size_t d = depths - 1; d-- > 0;) levels.iterations[d] = levels.iterations[d + 1] * nest.loops[d].extent;
  for (size_t a = 0; a < nest.accesses.size(); ++a) {
    std::vector<Footprint>& of = levels.of_access.emplace_back();
    // What is read and then written is there once.
    size_t other = 0;
    while (!nest.accesses[other].buffer.SameAs(nest.accesses[a].buffer)) ++other;
    for (size_t d = 0; d < depths; ++d) {
      of.push_back(FootprintOf(nest.accesses[a], d));
      const double before = other < a ? levels.of_access[other][d].lines : 0;
      levels.bytes[d] += std::max(0.0, of.back().lines - before) * kLineBytes;
    }
  }
  return levels;
}

NestCosts CostsOf(const StoreNest& nest, const NestLevels& levels, const NestMachine& machine) {
  NestCosts costs;
  const double iterations = levels.iterations[0];
  for (const NestLoop& loop : nest.loops) costs.parallel *= loop.parallel ? loop.extent : 1;
  costs.speed_up = costs.parallel / std::ceil(costs.parallel / machine.threads);

  // A vector wider than the machine's is several.
  const double pieces = std::max(1.0, std::ceil(nest.widest / machine.lanes));
  const double slow = nest.operations[kFloatDivMod] * 8 + nest.operations[kFloatMath] * 16;  // no pipelined unit
  const double vectors = nest.vector_operations * pieces + slow / std::min(nest.widest, machine.lanes);
  costs.arithmetic_cycles = iterations * vectors / machine.fma_per_cycle;
  const bool in_registers = nest.target.scope() == Scope::kRegister;
  if (nest.accumulates && in_registers) {
    const double chains = std::max(1.0, nest.targets) * pieces;
    costs.latency_factor = std::max(1.0, machine.fma_latency * machine.fma_per_cycle / chains);
  }
  CountPorts(nest, iterations, machine, &costs);
  CountTraffic(nest, levels, machine, &costs);
  const double core = std::max(costs.arithmetic_cycles * costs.latency_factor, costs.port_cycles);
  double moved = 0;
  for (size_t level = 1; level < kLevels; ++level) moved = std::max(moved, costs.traffic_cycles[level]);
  const double overhead = 1.5 * iterations;  // loop control
  const double cycles = std::max(core, moved) + 0.3 * std::min(core, moved) + overhead;
  costs.microseconds = cycles / machine.cycles_per_us / costs.speed_up;
  return costs;
}

}  // namespace hone
