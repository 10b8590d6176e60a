// What the draft is wrong by, as far as that is a matter of single choices: of the source, and of each value of a knob.
//
// log(time / draft) of a point is taken for a sum of effects: of its source and of the value of each of its knobs. A
// dozen measurements are enough for it to be of use, thousands of points are judged by it in a millisecond, and it
// makes the drafts of several sources comparable; what depends on choices together is for the cost model.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "tuner/search/candidates/candidate_space.h"

namespace hone {

class DraftCorrection {
 public:
  struct Sample {
    Point point;
    double log_ratio = 0;  // log(time / draft)
  };
  // Ridge regression by a few rounds of backfitting: the same samples give the same correction.
  static DraftCorrection Fit(const std::vector<Sample>& samples);
  // To be added to the logarithm of a draft; 0 without samples.
  double Of(const Point& point) const;

 private:
  double mean_ = 0;
  std::map<size_t, double> by_source_;
  std::map<std::tuple<size_t, size_t, int>, double> by_value_;  // of (source, knob, index)
};

}  // namespace hone
