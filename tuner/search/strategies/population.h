// Points bred from good ones, judged by the draft.
#pragma once

#include <utility>
#include <vector>

#include "compiler/support/random.h"
#include "tuner/search/strategies/strategy.h"

namespace hone {

// Every knob at random; of the recorded spaces the recorded point nearest to that.
Point RandomPoint(const CandidateSpace& space, size_t source, Random& random);

// One step of one knob away.
std::vector<Point> Neighbours(const CandidateSpace& space, const Point& point);

// The share of knobs that agree; 0 for points of two sources.
double Similarity(const Point& a, const Point& b);

class Population {
 public:
  Population(const CandidateSpace& space, const SearchTuning& tuning) : space_(space), tuning_(tuning) {}

  // About tuning.pool legal points with their drafts, in the order in which they were made: neighbours of the parents,
  // their children by mutation and crossing, what the draft likes best of every source and what is around it, and
  // points at random, half of them of the first parent's source.
  std::vector<std::pair<double, Point>> Breed(const std::vector<Point>& parents, Random& random) const;

 private:
  Point Child(const std::vector<Point>& parents, Random& random) const;

  const CandidateSpace& space_;
  const SearchTuning& tuning_;
};

}  // namespace hone
