#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "compiler/support/status_macros.h"
#include "tuner/search/strategies/batch.h"
#include "tuner/search/strategies/draft_correction.h"
#include "tuner/search/strategies/population.h"
#include "tuner/search/strategies/ranking.h"
#include "tuner/search/strategies/strategy.h"

namespace hone {
namespace {

constexpr double kUncertaintyCredit = 0.5;  // of a standard deviation
constexpr double kCorrectionShare = 0.5;    // of a prediction, beside the model
constexpr double kRiskPenalty = 2.0;        // in log time, for a point that is sure to fail
constexpr int kPolished = 3;                // best points whose neighbourhoods are gone through near the end
constexpr size_t kClimbed = 8;              // finalists with the best scores, around which more are looked for
constexpr size_t kAround = 16;              // of what is around them, by the corrected draft
constexpr int kAttempts = 6;                // finalists that were all refused, before a batch is given up

class ModelStrategy : public Strategy {
 public:
  ModelStrategy(uint64_t seed, TaskModel model) : ranking_(seed, std::move(model)) {}

  absl::StatusOr<std::vector<Pick>> Next(int count, const SearchState& state, Random& random) override {
    HONE_RETURN_IF_ERROR(ranking_.Learn(state.experience.timed()));
    std::vector<DraftCorrection::Sample> samples;
    for (const Experience::Timed& timed : state.experience.timed()) {
      if (timed.point.has_value()) samples.push_back({*timed.point, std::log(timed.us / timed.program.draft_us)});
    }
    correction_ = DraftCorrection::Fit(samples);
    if (state.polish) {
      HONE_ASSIGN_OR_RETURN(std::vector<Pick> picks, Polish(count, state, random));
      if (!picks.empty()) return picks;
    }
    // A round in which everything was refused is not the end of the space.
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::vector<Point> points = ChooseFinalists(count, state, random);
      if (points.empty()) break;
      HONE_ASSIGN_OR_RETURN(std::vector<Finalist> finalists, Rank(points, state));
      if (ranking_.trained()) HONE_RETURN_IF_ERROR(Climb(points, state, &finalists));
      std::vector<Pick> picks = ChooseBatch(count, std::move(finalists), state, random);
      if (!picks.empty()) return picks;
    }
    return std::vector<Pick>();
  }

 private:
  // What is left of the neighbourhood of the best point, then of the next ones: the cost model may be blind to a step
  // that the space still has (search.md 2f).
  absl::StatusOr<std::vector<Pick>> Polish(int count, const SearchState& state, Random& random) {
    const auto& measured = state.experience.measured();
    for (size_t p = 0; p < std::min<size_t>(measured.size(), kPolished); ++p) {
      std::vector<Point> near;
      for (Point& point : Neighbours(state.space, measured[p].second)) {
        if (!state.experience.Knows(point) && state.space.Draft(point).has_value()) near.push_back(std::move(point));
      }
      if (near.empty()) continue;
      HONE_ASSIGN_OR_RETURN(std::vector<Finalist> finalists, Rank(near, state));
      std::stable_sort(finalists.begin(), finalists.end(),
                       [](const Finalist& a, const Finalist& b) { return a.score < b.score; });
      std::vector<Pick> picks;
      std::set<uint64_t> programs;
      for (Finalist& finalist : finalists) {
        if (static_cast<int>(picks.size()) >= count || !programs.insert(finalist.pick.built.program.hash).second)
          continue;
        finalist.pick.source = "polish";
        picks.push_back(std::move(finalist.pick));
      }
      if (!picks.empty()) return picks;
    }
    return std::vector<Pick>();
  }

  std::vector<Point> ChooseFinalists(int count, const SearchState& state, Random& random) {
    const size_t wanted = static_cast<size_t>(std::max(state.tuning.finalists, 2 * count));
    const auto& measured = state.experience.measured();
    std::vector<Point> parents;
    for (size_t p = 0; p < std::min(measured.size(), static_cast<size_t>(state.tuning.parents)); ++p)
      parents.push_back(measured[p].second);

    std::vector<std::pair<double, Point>> pool;
    for (auto& [us, point] : Population(state.space, state.tuning).Breed(parents, random)) {
      if (state.experience.Knows(point)) continue;
      const double score = Corrected(us, point, state);
      pool.emplace_back(score, std::move(point));
    }
    std::sort(pool.begin(), pool.end());

    std::vector<Point> finalists;
    std::set<Point> taken;
    const auto take = [&](const Point& point) {
      if (finalists.size() < wanted && taken.insert(point).second) finalists.push_back(point);
    };
    // A quarter for what is around the two best, half for the draft's order, the rest at random: the draft may be
    // unjust.
    std::set<Point> around;
    for (size_t p = 0; p < std::min<size_t>(parents.size(), 2); ++p) {
      for (Point& near : Neighbours(state.space, parents[p])) around.insert(std::move(near));
    }
    for (const auto& [us, point] : pool) {
      if (finalists.size() < wanted / 4 && around.count(point) > 0) take(point);
    }
    for (size_t i = 0; i < pool.size() && finalists.size() < wanted * 3 / 4; ++i) take(pool[i].second);
    std::set<size_t> present;
    for (const Point& point : finalists) present.insert(point.source);
    for (const auto& [us, point] : pool) {
      if (present.insert(point.source).second) take(point);
    }
    for (size_t i = 0; i < pool.size() && finalists.size() < wanted; ++i) take(pool[random.Below(pool.size())].second);
    return finalists;
  }

  // What is around the best finalists by the model, as a second generation that it ranks too.
  absl::Status Climb(const std::vector<Point>& points, const SearchState& state, std::vector<Finalist>* finalists) {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < finalists->size(); ++i) order.emplace_back((*finalists)[i].score, i);
    std::sort(order.begin(), order.end());
    if (order.size() > kClimbed) order.resize(kClimbed);
    std::set<Point> met(points.begin(), points.end());
    std::vector<std::pair<double, Point>> around;
    for (const auto& [score, i] : order) {
      for (Point& near : Neighbours(state.space, (*finalists)[i].pick.point)) {
        if (state.experience.Knows(near) || !met.insert(near).second) continue;
        const std::optional<double> us = state.space.Draft(near);
        if (!us.has_value()) continue;
        const double corrected = Corrected(*us, near, state);
        around.emplace_back(corrected, std::move(near));
      }
    }
    std::sort(around.begin(), around.end());
    if (around.size() > kAround) around.resize(kAround);
    std::vector<Point> more;
    for (auto& [score, point] : around) more.push_back(std::move(point));
    HONE_ASSIGN_OR_RETURN(std::vector<Finalist> ranked, Rank(more, state));
    finalists->insert(finalists->end(), std::make_move_iterator(ranked.begin()), std::make_move_iterator(ranked.end()));
    return absl::OkStatus();
  }

  double Corrected(double draft_us, const Point& point, const SearchState& state) const {
    return std::log(draft_us) + correction_.Of(point) + kRiskPenalty * state.experience.legality().RiskOf(point);
  }

  // Those that can be built and are new, with their scores.
  absl::StatusOr<std::vector<Finalist>> Rank(const std::vector<Point>& points, const SearchState& state) {
    std::vector<std::optional<Built>> built = state.workbench.Build(points, &state.experience);
    std::vector<Finalist> finalists;
    for (size_t i = 0; i < points.size(); ++i) {
      if (!built[i].has_value()) continue;
      if (state.experience.KnowsProgram(built[i]->program.hash)) {
        state.experience.Skip(points[i]);
        continue;
      }
      Finalist& finalist = finalists.emplace_back();
      finalist.pick.point = points[i];
      finalist.pick.built = *std::move(built[i]);
    }
    std::vector<const Program*> asked;
    for (const Finalist& finalist : finalists) asked.push_back(&finalist.pick.built.program);
    HONE_ASSIGN_OR_RETURN(const std::vector<Estimate> estimates, ranking_.Of(asked));
    for (size_t i = 0; i < finalists.size(); ++i) {
      const Point& point = finalists[i].pick.point;
      // The trees see the stores and all tasks, the correction sees the knobs and this task alone: their mean errs less
      // than either. As long as nothing is trained the correction stands in for the model, and as long as nothing of
      // the task is timed there is none.
      const double share = !ranking_.trained() ? 1 : state.experience.timed().empty() ? 0 : kCorrectionShare;
      const double corrected = std::log(finalists[i].pick.built.program.draft_us) + correction_.Of(point);
      const double log_us = share * corrected + (1 - share) * estimates[i].log_us;
      finalists[i].pick.predicted_us = std::exp(log_us);
      finalists[i].score = log_us - kUncertaintyCredit * estimates[i].deviation +
                           kRiskPenalty * state.experience.legality().RiskOf(point);
      finalists[i].pick.source = SourceOf(point, state);
      finalists[i].pick.ranked = ranking_.trained();
    }
    return finalists;
  }

  // "mutate" beside what measured best, else the kind of its source.
  static std::string SourceOf(const Point& point, const SearchState& state) {
    const auto& measured = state.experience.measured();
    for (size_t p = 0; p < std::min<size_t>(measured.size(), 2); ++p) {
      const double knobs = static_cast<double>(std::max<size_t>(point.choice.size(), 1));
      if (Similarity(point, measured[p].second) > 1 - 1.5 / knobs) return "mutate";
    }
    return state.space.sources()[point.source].kind();
  }

  Ranking ranking_;
  DraftCorrection correction_;
};

}  // namespace

std::unique_ptr<Strategy> MakeModelStrategy(uint64_t seed, TaskModel model) {
  return std::make_unique<ModelStrategy>(seed, std::move(model));
}

}  // namespace hone
