// A choice of a generator's knobs at random that its draft takes.
#pragma once

#include <optional>

#include "compiler/support/random.h"
#include "tuner/space/generator.h"

namespace hone::testing {

inline std::optional<Choice> LegalChoice(const Generator& generator, Random& random) {
  constexpr int kAttempts = 300;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Choice choice = RandomChoice(generator, random);
    if (generator.Draft(choice).has_value()) return choice;
  }
  return std::nullopt;
}

}  // namespace hone::testing
