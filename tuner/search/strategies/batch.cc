#include "tuner/search/strategies/batch.h"

#include <algorithm>
#include <map>
#include <set>

#include "tuner/search/strategies/population.h"

namespace hone {
namespace {

constexpr double kLikenessPenalty = 0.15;  // in log time, for the same choice
constexpr double kHopeless = 1.1;          // in log time, behind the best: three times slower

class Batch {
 public:
  Batch(const SearchState& state, Random& random) : state_(state), random_(random) {
    for (const auto& [trace, out] : state.experience.out()) {
      if (out.point.has_value()) out_.push_back(*out.point);
    }
  }

  size_t Best(const std::vector<Finalist>& finalists, size_t place) {
    // As long as nothing was timed, every other one: what a draft says of one source is not comparable to another's.
    const size_t every = state_.experience.timed().empty() ? 2 : static_cast<size_t>(state_.tuning.sourced);
    if (place % every == every - 1) return LeastTried(finalists);
    if (random_.Chance(state_.tuning.explore)) return random_.Below(finalists.size());
    size_t best = 0;
    double best_value = 0;
    for (size_t i = 0; i < finalists.size(); ++i) {
      const double value = finalists[i].score + kLikenessPenalty * Likeness(finalists[i].pick.point);
      if (i > 0 && value >= best_value) continue;
      best_value = value;
      best = i;
    }
    return best;
  }

  void GoesOut(const Point& point) {
    out_.push_back(point);
    ++tried_[point.source];
  }

 private:
  double Likeness(const Point& point) const {
    double alike = 0;
    for (const Point& other : out_) alike = std::max(alike, Similarity(point, other));
    return alike * alike;
  }

  int TriedOf(size_t source) const {
    const auto found = tried_.find(source);
    return state_.experience.tried(source) + (found == tried_.end() ? 0 : found->second);
  }

  size_t LeastTried(const std::vector<Finalist>& finalists) const {
    size_t best = 0;
    for (size_t i = 1; i < finalists.size(); ++i) {  // best score first
      if (finalists[i].score > finalists[0].score + kHopeless) break;
      if (TriedOf(finalists[i].pick.point.source) < TriedOf(finalists[best].pick.point.source)) best = i;
    }
    return best;
  }

  const SearchState& state_;
  Random& random_;
  std::vector<Point> out_;
  std::map<size_t, int> tried_;  // in this batch, by source
};

}  // namespace

std::vector<Pick> ChooseBatch(int count, std::vector<Finalist> finalists, const SearchState& state, Random& random) {
  std::stable_sort(finalists.begin(), finalists.end(),
                   [](const Finalist& a, const Finalist& b) { return a.score < b.score; });
  Batch batch(state, random);
  std::vector<Pick> picks;
  std::set<uint64_t> programs;
  while (static_cast<int>(picks.size()) < count && !finalists.empty()) {
    const size_t best = batch.Best(finalists, picks.size());
    Pick pick = std::move(finalists[best].pick);
    finalists.erase(finalists.begin() + static_cast<std::ptrdiff_t>(best));
    if (!programs.insert(pick.built.program.hash).second) continue;
    batch.GoesOut(pick.point);
    picks.push_back(std::move(pick));
  }
  return picks;
}

}  // namespace hone
