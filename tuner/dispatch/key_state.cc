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
    AddKnown(trial.trace);
    Observe(trial.trace, trial.kind, trial.median_us, 0, options);
  }
  for (const auto& [us, trace] : claimed) {
    claims_.push_back(trace);
    seeds.push_back(trace);
  }
  if (history.best_record != 0 && !history.best_claimed) {
    for (const std::string& trace : history.duelled) MarkDuelled(trace);
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
    auto& [text, of_trace] = *traces_.try_emplace(trace).first;
    if (of_trace.us.has_value()) challengers_.erase({*of_trace.us, &text});
    of_trace.us = median_us;
    if (!of_trace.duelled) challengers_.insert({median_us, &text});
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

const KeyState::OfTrace& KeyState::Of(const std::string& trace) const {
  static const OfTrace kNone;
  const auto found = traces_.find(trace);
  return found == traces_.end() ? kNone : found->second;
}

void KeyState::Crown(const std::string& trace, uint64_t record, double us) {
  best_trace_ = trace;
  best_record_ = record;
  best_us_ = us;
  MarkDuelled(trace);
}

void KeyState::MarkDuelled(const std::string& trace) {
  auto& [text, of_trace] = *traces_.try_emplace(trace).first;
  of_trace.duelled = true;
  if (of_trace.us.has_value()) challengers_.erase({*of_trace.us, &text});
}

const std::string* KeyState::Challenger(const DispatchOptions& options) const {
  if (challengers_.empty()) return nullptr;
  const Challenges& first = *challengers_.begin();
  const bool fast = best_us_ <= 0 || first.us < best_us_ * (1 - options.duel_margin);
  return fast ? first.trace : nullptr;
}

}  // namespace hone
