#include "worker/measure/race.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/support/check.h"

namespace hone {

Race::Race(int challengers, bool has_champion, uint64_t seed, const RaceOptions& options)
    : options_(options),
      has_champion_(has_champion),
      random_(seed),
      states_(challengers, RaceState::kRunning),
      failed_(challengers, 0),
      times_(challengers) {}

std::optional<int> Race::Next() {
  if (order_.empty()) StartRound();
  if (order_.empty()) return std::nullopt;
  return order_.back();
}

void Race::StartRound() {
  if (noisy()) return;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == RaceState::kRunning) order_.push_back(static_cast<int>(i));
  }
  if (order_.empty()) return;
  if (has_champion_) order_.insert(order_.end(), {kChampionA, kChampionB});
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_.Below(i)]);
  round_.assign(states_.size() + 2, 0);
}

void Race::Add(double us) {
  HONE_CHECK(!order_.empty() && us > 0) << "a time nobody asked for, or none: " << us;
  const int who = order_.back();
  order_.pop_back();
  round_[who >= 0 ? static_cast<size_t>(who) : states_.size() + static_cast<size_t>(-1 - who)] = us;
  if (order_.empty()) EndRound();
}

void Race::Fail() {
  HONE_CHECK(!order_.empty()) << "a failure nobody asked for";
  const int who = order_.back();
  order_.pop_back();
  if (who >= 0) {
    failed_[who] = 1;
    states_[who] = RaceState::kLost;
  }
  if (order_.empty()) EndRound();
}

void Race::EndRound() {
  if (has_champion_) {
    const double a = round_[states_.size()], b = round_[states_.size() + 1];
    if (a == 0 || b == 0) {
      ++bad_rounds_;
      return;
    }
    // Both come from one kernel: their logs differ by noise * sqrt(2) or so.
    const double disagreement = std::abs(std::log(a / b));
    disagreements_.push_back(disagreement);
    if (disagreement > options_.z * noise() * std::sqrt(2.0)) {
      ++bad_rounds_;
      return;
    }
    champion_.push_back(std::sqrt(a * b));
  }
  ++rounds_;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (round_[i] > 0 && !failed_[i]) times_[i].push_back(round_[i]);
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == RaceState::kRunning) Judge(static_cast<int>(i));
  }
}

void Race::Judge(int challenger) {
  if (rounds_ < options_.min_rounds) return;
  const std::vector<double>& own = times_[challenger];
  std::vector<double> rival(champion_.begin(), champion_.end());
  if (!has_champion_) {
    double best = std::numeric_limits<double>::infinity();
    int leader = -1;
    for (size_t i = 0; i < times_.size(); ++i) {
      if (failed_[i] || static_cast<int>(times_[i].size()) < rounds_) continue;
      const double median = Median(times_[i]);
      if (median < best) best = median, leader = static_cast<int>(i);
    }
    // The leader is measured when it knows itself well.
    if (leader == challenger || leader < 0) {
      const double width = ConfidenceOfMedian(own).RelativeHalfWidth();
      if (rounds_ >= options_.max_rounds || (rounds_ >= 2 * options_.min_rounds && width < options_.tie_half_width)) {
        states_[challenger] = RaceState::kMeasured;
      }
      return;
    }
    rival = times_[leader];
  }
  const PairedRatio ratio = CompareInterleaved(own, rival);
  // The champion's time is the mean of two samples.
  const double sigma = std::max(ratio.log_sigma, noise() * std::sqrt(has_champion_ ? 1.5 : 2.0));
  const double error = 1.2533 * sigma / std::sqrt(static_cast<double>(ratio.pairs));
  const double half_width = options_.z * error;
  if (std::log(ratio.ratio) - options_.lose_z * error > options_.lose_margin) {
    states_[challenger] = RaceState::kLost;
  } else if (half_width < options_.tie_half_width || rounds_ >= options_.max_rounds ||
             std::log(ratio.ratio) + half_width < -options_.win_margin) {
    states_[challenger] = RaceState::kMeasured;
  }
}

double Race::noise() const {
  if (disagreements_.size() < 3) return options_.machine_sigma;
  // The median of |x| is 0.6745 standard deviations of a normal x, and x is the difference of two samples.
  return std::max(options_.machine_sigma, kMadToSigma * Median(disagreements_) / std::sqrt(2.0));
}

bool Race::noisy() const { return bad_rounds_ > options_.max_bad_rounds || noise() > options_.max_noise; }

std::optional<PairedRatio> Race::ratio(int challenger) const {
  const std::vector<double>& own = times_[challenger];
  if (!has_champion_ || own.empty()) return std::nullopt;
  // A challenger is in every good round until it leaves: its samples go with the first of the champion's.
  return CompareInterleaved(own, std::span(champion_).first(own.size()));
}

}  // namespace hone
