#include <set>

#include "tuner/search/strategies/population.h"
#include "tuner/search/strategies/strategy.h"

namespace hone {
namespace {

constexpr int kDrawsForOne = 400;  // most points of some sources are not legal

class RandomStrategy : public Strategy {
 public:
  absl::StatusOr<std::vector<Pick>> Next(int count, const SearchState& state, Random& random) override {
    std::set<Point> drawn;
    std::vector<Point> points;
    for (int draw = 0; draw < count * kDrawsForOne && static_cast<int>(points.size()) < 2 * count; ++draw) {
      Point point = RandomPoint(state.space, random.Below(state.space.sources().size()), random);
      if (state.experience.Knows(point) || !state.space.Draft(point).has_value()) continue;
      if (drawn.insert(point).second) points.push_back(std::move(point));
    }
    return TakeNew(points, count, state);
  }
};

}  // namespace

std::unique_ptr<Strategy> MakeRandomStrategy() { return std::make_unique<RandomStrategy>(); }

}  // namespace hone
