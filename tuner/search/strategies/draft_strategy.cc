#include <algorithm>
#include <set>

#include "tuner/search/strategies/population.h"
#include "tuner/search/strategies/strategy.h"

namespace hone {
namespace {

constexpr int kClimbs = 24;  // rounds of breeding from what the draft likes best

// The best of a population that is bred by the draft alone. It is found once and then handed out in order.
class DraftStrategy : public Strategy {
 public:
  absl::StatusOr<std::vector<Pick>> Next(int count, const SearchState& state, Random& random) override {
    for (int more = 0; more < 2; ++more) {
      std::vector<Point> fresh;
      for (const auto& [us, point] : ranked_) {
        if (!state.experience.Knows(point)) fresh.push_back(point);
      }
      std::vector<Pick> picks = TakeNew(fresh, count, state);
      if (!picks.empty() || more == 1) return picks;
      Climb(state, random);
    }
    return std::vector<Pick>();
  }

 private:
  void Climb(const SearchState& state, Random& random) {
    Population population(state.space, state.tuning);
    for (int climb = 0; climb < kClimbs; ++climb) {
      std::vector<Point> parents;
      for (const auto& [us, point] : ranked_) {
        if (parents.size() < static_cast<size_t>(state.tuning.parents)) parents.push_back(point);
      }
      for (auto& drafted : population.Breed(parents, random)) ranked_.insert(std::move(drafted));
    }
  }

  std::set<std::pair<double, Point>> ranked_;
};

}  // namespace

std::unique_ptr<Strategy> MakeDraftStrategy() { return std::make_unique<DraftStrategy>(); }

}  // namespace hone
