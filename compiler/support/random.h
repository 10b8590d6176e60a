// A small seeded generator (SplitMix64, Steele et al. 2014): the same numbers on every machine.
// Built from (seed, candidate index), not from a thread: one thread or sixteen, same search.
#pragma once

#include <cstdint>

#include "compiler/support/check.h"

namespace hone {

class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : state_(seed ^ Mix(stream + 0x9E3779B97F4A7C15u)) {}

  uint64_t Next() { return Mix(state_ += 0x9E3779B97F4A7C15u); }
  // Uniform in [0, bound), bound >= 1; the bias of the remainder is below 2^-32 for bounds below 2^32.
  uint64_t Below(uint64_t bound) {
    HONE_CHECK(bound >= 1);
    return Next() % bound;
  }
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }  // [0, 1)
  bool Chance(double probability) { return Uniform() < probability; }

 private:
  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace hone
