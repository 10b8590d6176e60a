#include "tuner/search/strategies/population.h"

#include <set>

namespace hone {
namespace {

constexpr double kBred = 0.6;     // share of the points that have parents
constexpr double kCrossed = 0.3;  // share of those that have two

}  // namespace

Point RandomPoint(const CandidateSpace& space, size_t source, Random& random) {
  Point point{source, {}};
  for (const int size : space.sources()[source].sizes)
    point.choice.push_back(static_cast<int>(random.Below(static_cast<uint64_t>(size))));
  return space.Snap(std::move(point));
}

std::vector<Point> Neighbours(const CandidateSpace& space, const Point& point) {
  std::vector<Point> found;
  const std::vector<int>& sizes = space.sources()[point.source].sizes;
  for (size_t k = 0; k < sizes.size(); ++k) {
    for (const int step : {-1, 1}) {
      Point near = point;
      near.choice[k] += step;
      if (near.choice[k] >= 0 && near.choice[k] < sizes[k]) found.push_back(space.Snap(std::move(near)));
    }
  }
  return found;
}

double Similarity(const Point& a, const Point& b) {
  if (a.source != b.source || a.choice.empty()) return 0;
  int same = 0;
  for (size_t k = 0; k < a.choice.size(); ++k) same += a.choice[k] == b.choice[k] ? 1 : 0;
  return static_cast<double>(same) / static_cast<double>(a.choice.size());
}

Point Population::Child(const std::vector<Point>& parents, Random& random) const {
  Point point = parents[random.Below(parents.size())];
  if (parents.size() > 1 && random.Chance(kCrossed)) {
    const Point& other = parents[random.Below(parents.size())];
    if (other.source == point.source) {
      for (size_t k = 0; k < point.choice.size(); ++k) {
        if (random.Chance(0.5)) point.choice[k] = other.choice[k];
      }
    }
  }
  const std::vector<int>& sizes = space_.sources()[point.source].sizes;
  for (int changes = 1 + static_cast<int>(random.Below(3)); changes > 0 && !sizes.empty(); --changes) {
    const size_t k = random.Below(sizes.size());
    point.choice[k] = static_cast<int>(random.Below(static_cast<uint64_t>(sizes[k])));
  }
  return space_.Snap(std::move(point));
}

std::vector<std::pair<double, Point>> Population::Breed(const std::vector<Point>& parents, Random& random) const {
  std::set<Point> met;
  std::vector<std::pair<double, Point>> drafted;
  const auto offer = [&](Point point) {
    if (!met.insert(point).second) return;
    if (const std::optional<double> us = space_.Draft(point)) drafted.emplace_back(*us, std::move(point));
  };
  for (const Point& parent : parents) {
    for (Point& near : Neighbours(space_, parent)) offer(std::move(near));
  }
  for (const std::optional<Point>& favourite : space_.Favourites()) {
    if (!favourite.has_value()) continue;
    offer(*favourite);
    for (Point& near : Neighbours(space_, *favourite)) offer(std::move(near));
  }
  const size_t wanted = static_cast<size_t>(tuning_.pool);
  for (size_t attempt = 0; attempt < wanted * 4 && met.size() < wanted; ++attempt) {
    if (!parents.empty() && random.Chance(kBred)) {
      offer(Child(parents, random));
      continue;
    }
    // Half of them where the best came from, so that many sources do not make the search thin.
    const size_t leading = parents.empty() ? 0 : parents[0].source;
    offer(RandomPoint(space_, random.Chance(0.5) ? leading : random.Below(space_.sources().size()), random));
  }
  return drafted;
}

}  // namespace hone
