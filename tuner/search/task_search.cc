#include "tuner/search/task_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <thread>

#include "compiler/ir/structural.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/trace.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "tuner/model/features.h"

namespace hone {
namespace {

// What a candidate that failed is taken to be worth, so that the model learns to stay away: e^2 of its draft.
constexpr float kFailedLogRatio = 2.0f;
// How much of a standard deviation is credited to a candidate.
constexpr double kUncertaintyCredit = 0.5;
constexpr double kLikenessPenalty = 0.15;  // in log time, for the same choice
constexpr double kHopeless = 1.1;          // in log time, behind the best: three times slower
constexpr int kDescentsOfOthers = 4;
constexpr size_t kRowsBetweenTrainings = 8;
constexpr int kRounds = 6;  // of finalists that were all refused, before a batch is given up

Choice RandomChoice(const Generator& generator, Random& random) {
  Choice choice;
  for (const Knob& knob : generator.knobs()) choice.push_back(static_cast<int>(random.Below(knob.candidates.size())));
  return choice;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TaskSearch>> TaskSearch::Create(const PrimFunc& workload, const SpaceOptions& options,
                                                               uint64_t seed, const SearchTuning& tuning) {
  std::unique_ptr<TaskSearch> search(new TaskSearch);
  search->workload_ = workload;
  search->target_ = options.target;
  search->machine_ = options.machine;
  search->threads_ = options.threads;
  search->seed_ = seed;
  search->tuning_ = tuning;
  HONE_ASSIGN_OR_RETURN(search->generators_, Generators(workload, options));
  search->tried_.assign(search->generators_.size(), 0);
  return search;
}

std::optional<TaskSearch::Point> TaskSearch::PointOf(const std::string& text) const {
  const absl::StatusOr<Trace> trace = ParseTrace(text);
  const std::optional<Origin> origin = trace.ok() ? OriginOf(*trace) : std::nullopt;
  if (!origin.has_value()) return std::nullopt;
  for (size_t g = 0; g < generators_.size(); ++g) {
    const std::vector<Knob>& knobs = generators_[g]->knobs();
    if (generators_[g]->name() != origin->generator || knobs.size() != origin->choice.size()) continue;
    bool inside = true;
    for (size_t k = 0; k < knobs.size(); ++k) {
      inside = inside && origin->choice[k] >= 0 && origin->choice[k] < static_cast<int>(knobs[k].candidates.size());
    }
    if (inside) return Point{g, origin->choice};
  }
  return std::nullopt;
}

void TaskSearch::Observe(const v1::Observation& observation) {
  ++observations_;
  seen_traces_.insert(observation.trace());
  Finalist finalist;
  if (const auto known = proposed_.find(observation.trace()); known != proposed_.end()) {
    finalist = std::move(known->second);
    proposed_.erase(known);
  } else {
    const std::optional<Point> point = PointOf(observation.trace());
    if (!point.has_value()) return;
    finalist.point = *point;
    finalist.status = Build(&finalist);
  }
  seen_.insert(finalist.point);
  if (finalist.status.ok()) seen_programs_.insert(finalist.program);
  const bool timed = observation.kind() == v1::OUTCOME_OK && observation.median_us() > 0;
  if (timed) {
    const auto place = std::pair(observation.median_us(), finalist.point);
    measured_.insert(std::lower_bound(measured_.begin(), measured_.end(), place), place);
  }
  if (!finalist.status.ok() || finalist.draft_us <= 0) return;
  TrainingRow row;
  row.features = finalist.features;
  row.log_ratio = timed ? static_cast<float>(std::log(observation.median_us() / finalist.draft_us)) : kFailedLogRatio;
  rows_.push_back(std::move(row));
}

void TaskSearch::NotePending(const std::string& trace) {
  if (!seen_traces_.insert(trace).second) return;
  if (const std::optional<Point> point = PointOf(trace)) seen_.insert(*point);
}

void TaskSearch::AddSeed(const std::string& trace) { seeds_.push_back(trace); }

std::vector<TaskSearch::Point> TaskSearch::Neighbours(const Point& point) const {
  std::vector<Point> found;
  const std::vector<Knob>& knobs = generators_[point.generator]->knobs();
  for (size_t k = 0; k < knobs.size(); ++k) {
    for (const int step : {-1, 1}) {
      Point near = point;
      near.choice[k] += step;
      if (near.choice[k] >= 0 && near.choice[k] < static_cast<int>(knobs[k].candidates.size()))
        found.push_back(std::move(near));
    }
  }
  return found;
}

std::vector<std::pair<double, TaskSearch::Point>> TaskSearch::Breed(Random& random) {
  std::set<Point> pool;
  std::vector<std::pair<double, Point>> drafted;
  const auto offer = [&](Point point) {
    if (seen_.count(point) > 0 || !pool.insert(point).second) return;
    if (const std::optional<double> us = generators_[point.generator]->Draft(point.choice))
      drafted.emplace_back(*us, std::move(point));
  };
  const size_t parents = std::min(measured_.size(), static_cast<size_t>(tuning_.parents));
  for (size_t p = 0; p < parents; ++p) {
    for (Point& near : Neighbours(measured_[p].second)) offer(std::move(near));
  }
  const size_t wanted = static_cast<size_t>(tuning_.pool);
  for (size_t attempt = 0; attempt < wanted * 4 && pool.size() < wanted; ++attempt) {
    Point point;
    if (parents > 0 && random.Chance(0.6)) {
      point = measured_[random.Below(parents)].second;
      if (parents > 1 && random.Chance(0.3)) {  // cross with another of the same generator
        const Point& other = measured_[random.Below(parents)].second;
        if (other.generator == point.generator) {
          for (size_t k = 0; k < point.choice.size(); ++k) {
            if (random.Chance(0.5)) point.choice[k] = other.choice[k];
          }
        }
      }
      const std::vector<Knob>& knobs = generators_[point.generator]->knobs();
      for (int changes = 1 + static_cast<int>(random.Below(3)); changes > 0 && !knobs.empty(); --changes) {
        const size_t k = random.Below(knobs.size());
        point.choice[k] = static_cast<int>(random.Below(knobs[k].candidates.size()));
      }
    } else {
      // Half of them where the best so far came from, so that many sources do not make the search thin.
      const size_t leading = measured_.empty() ? 0 : measured_[0].second.generator;
      point.generator = random.Chance(0.5) ? leading : random.Below(generators_.size());
      point.choice = RandomChoice(*generators_[point.generator], random);
    }
    offer(std::move(point));
  }
  for (size_t g = 0; g < generators_.size(); ++g) {
    if (!Favourites()[g].has_value() || (tried_[g] > 0 && !measured_.empty())) continue;
    offer({g, *Favourites()[g]});
    for (Point& near : Neighbours({g, *Favourites()[g]})) offer(std::move(near));
  }
  std::sort(drafted.begin(), drafted.end());
  return drafted;
}

const std::vector<std::optional<Choice>>& TaskSearch::Favourites() {
  if (!favourites_.empty()) return favourites_;
  for (const auto& generator : generators_) {
    // The first is what an untuned build takes; a rough answer does for the others, which are bred further anyway.
    const absl::StatusOr<Choice> best = BestByDraft(*generator, favourites_.empty() ? kDescents : kDescentsOfOthers);
    favourites_.push_back(best.ok() ? std::optional(*best) : std::nullopt);
  }
  return favourites_;
}

std::string TaskSearch::SourceOf(size_t generator) const {
  const std::string& name = generators_[generator]->name();
  return name.substr(0, name.find(':'));
}

absl::Status TaskSearch::Build(Finalist* finalist) const {
  const Generator& generator = *generators_[finalist->point.generator];
  HONE_ASSIGN_OR_RETURN(const Schedule schedule, generator.Build(finalist->point.choice));
  HONE_ASSIGN_OR_RETURN(const LoweredFunc lowered, Lower(schedule.func()));
  std::vector<int64_t> values;
  for (size_t k = 0; k < generator.knobs().size(); ++k) {
    values.push_back(generator.knobs()[k].candidates[static_cast<size_t>(finalist->point.choice[k])]);
  }
  finalist->draft_us = generator.Draft(finalist->point.choice).value_or(0);
  finalist->trace = ToText(schedule.trace());
  finalist->program = StructuralHash(lowered.func);
  finalist->features = ExtractFeatures(lowered, target_, machine_, threads_, finalist->draft_us, values);
  return absl::OkStatus();
}

double TaskSearch::Similarity(const Point& a, const Point& b) const {
  if (a.generator != b.generator || a.choice.empty()) return 0;
  int same = 0;
  for (size_t k = 0; k < a.choice.size(); ++k) same += a.choice[k] == b.choice[k] ? 1 : 0;
  return static_cast<double>(same) / static_cast<double>(a.choice.size());
}

void TaskSearch::TrainIfDue() {
  if (rows_.size() < trained_rows_ + kRowsBetweenTrainings) return;
  if (model_.Train(rows_, seed_ + rows_.size()).ok()) trained_rows_ = rows_.size();
}

absl::StatusOr<std::vector<TaskSearch::Finalist>> TaskSearch::Rank(std::vector<Finalist> finalists) {
  std::atomic<size_t> next{0};
  const auto build = [&] {
    for (size_t i; (i = next++) < finalists.size();) finalists[i].status = Build(&finalists[i]);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < tuning_.threads; ++t) others.emplace_back(build);
  build();
  for (std::thread& other : others) other.join();
  for (const Finalist& finalist : finalists) {
    if (finalist.status.ok()) continue;
    seen_.insert(finalist.point);  // it will not be better next time
    ++refused_;
    last_refusal_ = std::string(finalist.status.message());
  }
  for (const Finalist& finalist : finalists) {
    if (finalist.status.ok() && seen_programs_.count(finalist.program) > 0) seen_.insert(finalist.point);
  }
  std::erase_if(finalists, [this](const Finalist& f) {
    return !f.status.ok() || seen_traces_.count(f.trace) > 0 || seen_programs_.count(f.program) > 0;
  });

  TrainIfDue();
  std::vector<std::vector<float>> features;
  for (const Finalist& finalist : finalists) features.push_back(finalist.features);
  HONE_ASSIGN_OR_RETURN(const std::vector<Prediction> predictions, model_.Predict(features));
  for (size_t i = 0; i < finalists.size(); ++i) {
    const double log_us = std::log(finalists[i].draft_us) + predictions[i].log_ratio;
    finalists[i].predicted_us = std::exp(log_us);
    finalists[i].score = log_us - kUncertaintyCredit * predictions[i].deviation;
  }
  std::stable_sort(finalists.begin(), finalists.end(),
                   [](const Finalist& a, const Finalist& b) { return a.score < b.score; });
  return finalists;
}

absl::StatusOr<std::vector<v1::Candidate>> TaskSearch::Propose(int count) {
  Random random(seed_, ++round_ * 1000003 + observations_);
  std::vector<v1::Candidate> batch;
  for (const std::string& seed : seeds_) {
    if (!seen_traces_.insert(seed).second) continue;
    const absl::StatusOr<Trace> trace = ParseTrace(seed);
    if (!trace.ok() || !Replay(*trace, workload_).ok()) continue;
    v1::Candidate& candidate = batch.emplace_back();
    candidate.set_trace(seed);
    candidate.set_source("seed");
  }
  seeds_.clear();

  // A round in which everything was refused is not the end of the space.
  for (int attempt = 0; attempt < kRounds && batch.empty(); ++attempt) {
    std::vector<Finalist> finalists =
        ChooseFinalists(static_cast<size_t>(std::max(tuning_.finalists, count + count / 2)), random);
    if (finalists.empty()) break;
    HONE_ASSIGN_OR_RETURN(std::vector<Finalist> ranked, Rank(std::move(finalists)));
    Choose(count, std::move(ranked), random, &batch);
  }
  return batch;
}

// Relatives of what measured best, then the draft's favourites, then some at random.
std::vector<TaskSearch::Finalist> TaskSearch::ChooseFinalists(size_t wanted, Random& random) {
  const std::vector<std::pair<double, Point>> pool = Breed(random);
  std::vector<Finalist> finalists;
  std::set<Point> taken;
  const auto take = [&](const Point& point, const std::string& source) {
    if (finalists.size() >= wanted || seen_.count(point) > 0 || !taken.insert(point).second) return;
    if (!generators_[point.generator]->Draft(point.choice).has_value()) return;
    Finalist& finalist = finalists.emplace_back();
    finalist.point = point;
    finalist.source = source;
  };
  for (size_t p = 0; p < std::min<size_t>(measured_.size(), 2); ++p) {
    for (const Point& near : Neighbours(measured_[p].second)) take(near, "mutate");
  }
  for (size_t i = 0; i < pool.size() && finalists.size() < wanted * 3 / 4; ++i) {
    take(pool[i].second, SourceOf(pool[i].second.generator));
  }
  // The favourite of every source that is not among them: the draft may be unjust to all of a kind.
  std::set<size_t> present;
  for (const Finalist& finalist : finalists) present.insert(finalist.point.generator);
  for (const auto& [us, point] : pool) {
    if (present.insert(point.generator).second) take(point, SourceOf(point.generator));
  }
  for (size_t i = 0; i < pool.size() && finalists.size() < wanted; ++i) {
    const Point& point = pool[random.Below(pool.size())].second;
    take(point, SourceOf(point.generator));
  }
  return finalists;
}

size_t TaskSearch::LeastTried(const std::vector<Finalist>& ranked) const {
  size_t best = 0;
  for (size_t i = 1; i < ranked.size(); ++i) {  // best score first
    if (ranked[i].score > ranked[0].score + kHopeless) break;
    if (tried_[ranked[i].point.generator] < tried_[ranked[best].point.generator]) best = i;
  }
  return best;
}

// The best first, each a little spoiled by its likeness to those already out; now and then one at random, or of a
// source that has had little of a chance.
void TaskSearch::Choose(int count, std::vector<Finalist> ranked, Random& random, std::vector<v1::Candidate>* batch) {
  while (static_cast<int>(batch->size()) < count && !ranked.empty()) {
    size_t best = 0;
    if (batch->size() % static_cast<size_t>(tuning_.sourced) == static_cast<size_t>(tuning_.sourced) - 1) {
      best = LeastTried(ranked);
    } else if (random.Chance(tuning_.explore)) {
      best = random.Below(ranked.size());
    } else {
      double best_value = 0;
      for (size_t i = 0; i < ranked.size(); ++i) {
        double alike = 0;
        for (const auto& [trace, other] : proposed_) alike = std::max(alike, Similarity(ranked[i].point, other.point));
        const double value = ranked[i].score + kLikenessPenalty * alike * alike;
        if (i == 0 || value < best_value) {
          best_value = value;
          best = i;
        }
      }
    }
    Finalist finalist = std::move(ranked[best]);
    ranked.erase(ranked.begin() + static_cast<std::ptrdiff_t>(best));
    if (!seen_traces_.insert(finalist.trace).second || !seen_programs_.insert(finalist.program).second) continue;
    seen_.insert(finalist.point);
    ++tried_[finalist.point.generator];
    v1::Candidate& candidate = batch->emplace_back();
    candidate.set_trace(finalist.trace);
    candidate.set_predicted_us(finalist.predicted_us);
    candidate.set_source(finalist.source);
    proposed_[finalist.trace] = std::move(finalist);
  }
}

}  // namespace hone
