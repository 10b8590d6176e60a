// How likely a point is to fail: by what its knobs' values did so far.
#pragma once

#include <map>
#include <tuple>

#include "tuner/search/candidates/candidate_space.h"

namespace hone {

// A value of a knob is as suspicious as the share of its points that failed; a point as its most suspicious value. Most
// refusals are of that kind (too large a tile, a form some back end cannot emit), and a few outcomes are enough.
class Legality {
 public:
  void Learn(const Point& point, bool failed);
  // In [0, 1]; 0 as long as nothing failed.
  double RiskOf(const Point& point) const;

 private:
  struct Tally {
    int points = 0, failed = 0;
  };
  std::map<std::tuple<size_t, size_t, int>, Tally> by_value_;  // of (source, knob, index)
  std::map<size_t, Tally> by_source_;
};

}  // namespace hone
