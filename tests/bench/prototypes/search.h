// The fastest prototypes, and the fastest choice of their values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/prototypes/prototype.h"

namespace hone::prototypes {

// Layers one after the other, each by a prototype that is prepared.
struct Chain {
  std::vector<std::unique_ptr<Prototype>> prototypes;
  std::string text;  // "product vectors=2 depth=512", parted by " + "
};

// Adds to the chain the fastest of `alternatives` with the fastest choice found: for every value of its first knob one
// after the other of the rest is varied, and once more all from the best. Ends the process when a choice gives wrong
// numbers. `cold`: the weights are out of the caches before every run.
void AddFastest(std::vector<std::unique_ptr<Prototype>> alternatives, ThreadPool& pool, bool cold, Chain* chain);

// Microseconds of all together.
double Time(const Chain& chain, ThreadPool& pool, bool cold);

}  // namespace hone::prototypes
