#include "tuner/search/strategies/strategy.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

namespace hone {

std::unique_ptr<Strategy> MakeStrategy(v1::SearchStrategy strategy, uint64_t seed, TaskModel model) {
  switch (strategy) {
    case v1::SEARCH_RANDOM: return MakeRandomStrategy();
    case v1::SEARCH_DRAFT: return MakeDraftStrategy();
    default: return MakeModelStrategy(seed, std::move(model));
  }
}

std::vector<Pick> TakeNew(const std::vector<Point>& points, int count, const SearchState& state) {
  std::vector<Pick> picks;
  std::set<uint64_t> taken;
  for (size_t at = 0; at < points.size() && static_cast<int>(picks.size()) < count;) {
    const size_t some = std::min(points.size() - at, static_cast<size_t>(count) - picks.size());
    const std::span<const Point> next(points.data() + at, some);
    std::vector<std::optional<Built>> built = state.workbench.Build(next, &state.experience);
    for (size_t i = 0; i < some; ++i) {
      if (!built[i].has_value()) continue;
      const Program& program = built[i]->program;
      if (state.experience.KnowsProgram(program.hash) || !taken.insert(program.hash).second) {
        state.experience.Skip(next[i]);
        continue;
      }
      const double us = program.draft_us;
      picks.push_back({next[i], *std::move(built[i]), us, state.space.sources()[next[i].source].kind()});
    }
    at += some;
  }
  return picks;
}

}  // namespace hone
