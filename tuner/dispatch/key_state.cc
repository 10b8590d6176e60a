#include "tuner/dispatch/key_state.h"

#include <algorithm>

namespace hone {

void KeyState::Load(const KeyHistory& history, const DispatchOptions& options) {
  loaded_ = true;
  seeds = history.seeds;
  std::set<std::pair<double, std::string>> claimed;
  for (const PastTrial& trial : history.trials) {
    if (trial.claimed) {
      claimed.emplace(history.best_claimed && trial.trace == history.best_trace ? 0 : trial.median_us, trial.trace);
      continue;
    }
    known_.insert(trial.trace);
    Observe(trial.trace, trial.kind, trial.median_us, 0, options);
  }
  for (const auto& [us, trace] : claimed) {
    claims_.push_back(trace);
    seeds.push_back(trace);
  }
  if (history.best_record != 0 && !history.best_claimed) {
    duelled_.insert(history.duelled.begin(), history.duelled.end());
    Crown(history.best_trace, history.best_record, history.best_us);
  }
  results_since_duel = 0;
  trials_since_gain_ = 0;  // whoever asks for new trials gets them, however long earlier jobs found nothing
  searched = static_cast<int>(history.trials.size()) >= options.batch;
}

void KeyState::Observe(const std::string& trace, v1::OutcomeKind kind, double median_us, double seconds,
                       const DispatchOptions& options) {
  v1::Observation observation;
  observation.set_trace(trace);
  observation.set_kind(kind);
  ++trials_since_gain_;
  ++results_since_duel;
  if (kind == v1::OUTCOME_OK) {
    observation.set_median_us(median_us);
    ++verified_;
    verified_us_[trace] = median_us;
    by_time_.emplace(median_us, trace);
    if (fastest_us_ == 0 || median_us < fastest_us_ * (1 - options.stall_gain)) trials_since_gain_ = 0;
    if (fastest_us_ == 0 || median_us < fastest_us_) fastest_us_ = median_us;
  }
  log_->Append(std::move(observation));
  ++observed_;
  if (seconds > 0) seconds_per_trial_ = seconds_per_trial_ == 0 ? seconds : 0.9 * seconds_per_trial_ + 0.1 * seconds;
  if (++in_round_ >= (round_size > 0 ? round_size : options.batch)) {
    in_round_ = 0;
    rounds_.push_back(fastest_us_);
  }
}

void KeyState::GrantMore(const DispatchOptions& options) {
  const int most = verified_ > 0 ? options.stall_trials : options.hopeless_failures;
  trials_since_gain_ = std::min(trials_since_gain_, std::max(0, most - 2 * options.batch));
}

std::optional<double> KeyState::TimeOf(const std::string& trace) const {
  const auto found = verified_us_.find(trace);
  if (found == verified_us_.end()) return std::nullopt;
  return found->second;
}

void KeyState::Crown(const std::string& trace, uint64_t record, double us) {
  best_trace_ = trace;
  best_record_ = record;
  best_us_ = us;
  duelled_.insert(trace);
}

std::optional<std::string> KeyState::Challenger(const DispatchOptions& options) const {
  for (const auto& [us, trace] : by_time_) {
    if (best_us_ > 0 && us >= best_us_ * (1 - options.duel_margin)) return std::nullopt;
    if (duelled_.count(trace) == 0) return trace;
  }
  return std::nullopt;
}

}  // namespace hone
