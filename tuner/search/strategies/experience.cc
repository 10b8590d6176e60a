#include "tuner/search/strategies/experience.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

constexpr double kGain = 0.005;  // a smaller one is noise
constexpr int kMostLosses = 2;   // a program that took the infrastructure down so often is left alone

// What says nothing about the candidate: the worker, the network or the user ended the attempt.
bool IsOfInfrastructure(v1::OutcomeKind kind) { return kind == v1::OUTCOME_INFRA || kind == v1::OUTCOME_CANCELLED; }

// An implausible time is neither a time nor a failure of the program.
bool IsFailureOfProgram(v1::OutcomeKind kind) {
  return kind == v1::OUTCOME_BUILD_ERROR || kind == v1::OUTCOME_CRASH || kind == v1::OUTCOME_TIMEOUT ||
         kind == v1::OUTCOME_OUT_OF_MEMORY || kind == v1::OUTCOME_WRONG_RESULT;
}

}  // namespace

void Experience::Refuse(const Point& point) {
  points_.insert(point);
  legality_.Learn(point, /*failed=*/true);
}

void Experience::GoesOut(const std::string& trace, Identified what) {
  traces_.insert(trace);
  programs_.insert(what.program.hash);
  if (what.point.has_value()) {
    points_.insert(*what.point);
    ++tried_[what.point->source];
  }
  out_[trace] = std::move(what);
}

void Experience::ComesBack(const v1::Observation& observation, Identified what) {
  if (const auto found = out_.find(observation.trace()); found != out_.end()) {
    what = std::move(found->second);
    out_.erase(found);
  }
  if (IsOfInfrastructure(observation.kind()) && ++lost_[what.program.hash] < kMostLosses) {
    traces_.erase(observation.trace());
    programs_.erase(what.program.hash);
    if (what.point.has_value()) points_.erase(*what.point);
    return;
  }
  traces_.insert(observation.trace());
  programs_.insert(what.program.hash);
  if (what.point.has_value()) points_.insert(*what.point);
  if (IsOfInfrastructure(observation.kind())) return;
  ++since_gain_;
  const bool timed =
      observation.kind() == v1::OUTCOME_OK && observation.median_us() > 0 && std::isfinite(observation.median_us());
  if (what.point.has_value() && (timed || IsFailureOfProgram(observation.kind())))
    legality_.Learn(*what.point, /*failed=*/!timed);
  if (!timed) return;
  const double us = observation.median_us();
  if (best_us_ == 0 || us < best_us_ * (1 - kGain)) since_gain_ = 0;
  if (best_us_ == 0 || us < best_us_) best_us_ = us;
  if (what.point.has_value()) {
    const std::pair<double, Point> place(us, *what.point);
    measured_.insert(std::lower_bound(measured_.begin(), measured_.end(), place), place);
  }
  if (what.program.draft_us > 0) timed_.push_back({std::move(what.program), us, std::move(what.point)});
}

int Experience::tried(size_t source) const {
  const auto found = tried_.find(source);
  return found == tried_.end() ? 0 : found->second;
}

}  // namespace hone
