// What a cost model sees of a candidate: counts of the lowered program, and the choice that made it.
//
// Counts are weighted by how often their loops run, as log2(x + 1) (search.md 2c, after Ansor's per-store features,
// summed over the program); ratios have no unit. The analytic draft is one of the features: the model learns what the
// draft gets wrong.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/lower/lower.h"
#include "compiler/target/machine.h"
#include "compiler/target/target.h"

namespace hone {

inline constexpr int kMaxKnobFeatures = 24;  // a choice with more knobs is cut off

// The length of every feature vector, and what is at each place.
int NumFeatures();
std::string_view FeatureName(int index);

// `knob_values` are the values chosen, in the generator's order.
std::vector<float> ExtractFeatures(const LoweredFunc& lowered, const Target& target, const Machine& machine,
                                   int threads, double draft_us, std::span<const int64_t> knob_values);

}  // namespace hone
