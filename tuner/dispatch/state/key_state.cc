#include "tuner/dispatch/state/key_state.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hone {

void KeyState::Load(const KeyHistory& history, const DispatchOptions& options) {
  loaded_ = true;
  seeds = history.seeds;
  std::set<std::pair<double, std::string>> claimed;
  std::map<std::string, SharedReporter> reporters;  // by their texts
  const bool has_best = history.best_record != 0 && !history.best_claimed;
  for (const PastTrial& trial : history.trials) {
    if (trial.claimed) {
      claimed.emplace(history.best_claimed && trial.trace == history.best_trace ? 0 : trial.median_us, trial.trace);
      continue;
    }
    OfTrace& of_trace = Entry(trial.trace);
    of_trace.known = true;
    SharedReporter& who = reporters[trial.worker];
    if (who == nullptr) who = std::make_shared<const Reporter>(ReporterFromText(trial.worker));
    const Claim claim{.who = who, .trace = of_trace.text.get(), .us = trial.median_us};
    if (trial.kind == v1::OUTCOME_OK && !trial.worker.empty()) {
      of_trace.measured_by = claim.who;
      of_trace.measured_before = true;
      NoteFastest(claim);
    }
    // In doubt when the last job ended, or the daemon.
    const bool in_doubt = has_best && trial.kind == v1::OUTCOME_OK && trial.trace != history.best_trace &&
                          trial.median_us * options.disagreement < history.best_us;
    if (in_doubt) {
      SetTime(of_trace, trial.median_us);
      doubted_.push_back(claim);
    } else {
      Observe(of_trace, trial.kind, trial.median_us, 0, options);
    }
  }
  for (const auto& [us, trace] : claimed) {
    claims_.push_back(trace);
    seeds.push_back(trace);
  }
  if (has_best) {
    for (const std::string& trace : history.duelled) {
      MarkDuelled(trace);
      EndDoubt(trace, options);
    }
    Crown(history.best_trace, history.best_record, history.best_us);
    best_generator_ = history.best_generator;
    best_driver_ = history.best_driver;
    best_digest_ = history.best_digest;
  }
  results_since_duel = 0;
  trials_since_gain_ = 0;  // whoever asks for new trials gets them, however long earlier jobs found nothing
  searched = static_cast<int>(history.trials.size()) >= options.batch;
}

void KeyState::Observe(const std::string& trace, v1::OutcomeKind kind, double median_us, double seconds,
                       const DispatchOptions& options) {
  Observe(Entry(trace), kind, median_us, seconds, options);
}

void KeyState::Observe(OfTrace& of_trace, v1::OutcomeKind kind, double median_us, double seconds,
                       const DispatchOptions& options) {
  ++trials_since_gain_;
  ++results_since_duel;
  if (kind == v1::OUTCOME_OK) {
    ++verified_;
    SetTime(of_trace, median_us);
    if (fastest_us_ == 0 || median_us < fastest_us_ * (1 - options.stall_gain)) trials_since_gain_ = 0;
    if (fastest_us_ == 0 || median_us < fastest_us_) fastest_us_ = median_us;
  }
  log_->Append({of_trace.text, kind, median_us});
  ++observed_;
  if (seconds > 0) seconds_per_trial_ = seconds_per_trial_ == 0 ? seconds : 0.9 * seconds_per_trial_ + 0.1 * seconds;
  if (++in_round_ >= (round_size > 0 ? round_size : options.batch)) {
    in_round_ = 0;
    rounds_.push_back(fastest_us_);
  }
}

void KeyState::SetTime(OfTrace& of_trace, double us) {
  if (of_trace.us.has_value()) challengers_.erase({*of_trace.us, of_trace.text.get()});
  of_trace.us = us;
  if (!of_trace.duelled) challengers_.insert({us, of_trace.text.get()});
}

void KeyState::ObserveTime(const std::string& trace, SharedReporter who, double median_us, double seconds,
                           const DispatchOptions& options) {
  OfTrace& of_trace = Entry(trace);
  of_trace.measured_by = who;
  const Claim claim{.who = std::move(who), .trace = of_trace.text.get(), .us = median_us, .seconds = seconds};
  if (InDoubt(claim, options)) {
    SetTime(of_trace, median_us);
    doubted_.push_back(claim);
    ++results_since_duel;
  } else {
    Observe(of_trace, v1::OUTCOME_OK, median_us, seconds, options);
  }
  NoteFastest(claim);
  EndDoubts(options);
}

void KeyState::NoteFastest(const Claim& claim) {
  fastest_.insert(std::ranges::upper_bound(fastest_, claim.us, {}, &Claim::us), claim);
  const Reporter& least = *fastest_.front().who;
  bool has_principal = false, has_worker = false;  // another than that of the least
  const auto adds_nothing = [&](const Claim& c) {
    const bool principal = IsOtherPrincipal(*c.who, least), worker = c.who->worker != least.worker;
    const bool adds = (principal && !has_principal) || (worker && !has_worker);
    has_principal |= principal;
    has_worker |= worker;
    return !adds;
  };
  fastest_.erase(std::remove_if(fastest_.begin() + 1, fastest_.end(), adds_nothing), fastest_.end());
}

const KeyState::Claim* KeyState::FastestOfOthers(const Reporter& who) const {
  const auto first = [&](auto is_other) -> const Claim* {
    const auto found = std::ranges::find_if(fastest_, [&](const Claim& c) { return is_other(*c.who); });
    return found == fastest_.end() ? nullptr : &*found;
  };
  // Beside other principals a worker of the same one counts for nothing: one caller may have many names.
  const Claim* other = first([&](const Reporter& of) { return IsOtherPrincipal(of, who); });
  return other != nullptr ? other : first([&](const Reporter& of) { return of.worker != who.worker; });
}

bool KeyState::InDoubt(const Claim& claim, const DispatchOptions& options) const {
  if (best_us_ <= 0) return false;
  const Claim* other = FastestOfOthers(*claim.who);
  if (other == nullptr && !claim.who->worker.empty()) return false;
  const double near = other == nullptr ? best_us_ : std::min(best_us_, other->us);
  return claim.us * options.disagreement < near;
}

void KeyState::EndDoubts(const DispatchOptions& options) {
  if (doubted_.empty()) return;
  const auto ended =
      std::ranges::stable_partition(doubted_, [&](const Claim& claim) { return InDoubt(claim, options); });
  const std::vector<Claim> believed(ended.begin(), ended.end());
  doubted_.erase(ended.begin(), ended.end());
  for (const Claim& claim : believed) Observe(*claim.trace, v1::OUTCOME_OK, claim.us, claim.seconds, options);
}

void KeyState::EndDoubt(const std::string& trace, const DispatchOptions& options) {
  const auto found = std::ranges::find_if(doubted_, [&](const Claim& claim) { return *claim.trace == trace; });
  if (found == doubted_.end()) return;
  const Claim claim = *found;
  doubted_.erase(found);
  const bool won = trace == best_trace_;
  if (!won) Entry(trace).us.reset();
  Observe(trace, won ? v1::OUTCOME_OK : v1::OUTCOME_INVALID_TIMING, won ? best_us_ : 0, claim.seconds, options);
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

KeyState::OfTrace& KeyState::Entry(const std::string& trace) {
  const auto found = traces_.find(trace);
  if (found != traces_.end()) return found->second;
  auto text = std::make_shared<const std::string>(trace);
  return traces_.try_emplace(*text, OfTrace{.text = text}).first->second;
}

const Reporter& KeyState::MeasuredBy(const std::string& trace) const {
  static const Reporter kNobody;
  const SharedReporter& who = Of(trace).measured_by;
  return who == nullptr ? kNobody : *who;
}

void KeyState::Crown(const std::string& trace, uint64_t record, double us) {
  best_trace_ = trace;
  best_record_ = record;
  best_us_ = us;
  MarkDuelled(trace);
}

void KeyState::MarkDuelled(const std::string& trace) {
  OfTrace& of_trace = Entry(trace);
  of_trace.duelled = true;
  if (of_trace.us.has_value()) challengers_.erase({*of_trace.us, of_trace.text.get()});
}

void KeyState::Uncrown() {
  best_trace_.clear();
  best_record_ = 0;
  best_us_ = 0;
}

const std::string* KeyState::Challenger(double margin) const {
  if (challengers_.empty()) return nullptr;
  const Challenges& first = *challengers_.begin();
  const bool fast = best_us_ <= 0 || first.us < best_us_ * (1 - margin);
  return fast ? first.trace : nullptr;
}

}  // namespace hone
