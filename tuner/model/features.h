// What a cost model sees of a candidate: a row of features for every store of its lowered program.
//
// A row has the features that Ansor and MetaSchedule publish for a store (Zheng et al., OSDI 2020, appendix B;
// search.md 2c): operations, annotations of loops, the five buffers that move most, the curve of arithmetic intensity,
// allocation, outer loops. Of their 164 the eight of GPU bindings are left out: a CPU's program has none. To these come
// ratios without unit against the machine's facts, which hold on another machine as well; what the generator says
// (its source, the analytic draft); and the program as a whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/lower/lower.h"
#include "compiler/target/machine.h"
#include "compiler/target/target.h"

namespace hone {

// Of the meaning of a row. A stored model of another version is of no use.
inline constexpr int kFeatureVersion = 1;

// The length of every row, and what is at each place.
size_t NumFeatures();
const std::string& FeatureName(size_t index);

struct ProgramFeatures {
  std::vector<float> rows;    // stores() rows of NumFeatures() values, one after the other
  std::vector<float> shares;  // of the program's time that each store takes by arithmetic alone; their sum is 1

  size_t stores() const { return shares.size(); }
  std::span<const float> row(size_t store) const {
    return std::span(rows).subspan(store * NumFeatures(), NumFeatures());
  }
};

struct CandidateFacts {
  double draft_us = 0;
  std::string source;  // the kind of its source: "template" or "sketch"; empty when it is not known
};

// A program has one row at least and kMostStores at most: those that take longest by arithmetic.
inline constexpr size_t kMostStores = 8;
ProgramFeatures ExtractFeatures(const LoweredFunc& lowered, const Target& target, const Machine& machine, int threads,
                                const CandidateFacts& candidate);

}  // namespace hone
