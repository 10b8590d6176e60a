// A choice of a generator's knobs at random that its draft takes.
#pragma once

#include <optional>

#include "compiler/support/random.h"
#include "tuner/space/generator.h"

namespace hone::testing {

inline std::optional<Choice> LegalChoice(const Generator& generator, Random& random) {
  constexpr int kAttempts = 300;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Choice choice;
    for (const Knob& knob : generator.knobs()) choice.push_back(static_cast<int>(random.Below(knob.candidates.size())));
    if (generator.Draft(choice).has_value()) return choice;
  }
  return std::nullopt;
}

}  // namespace hone::testing
