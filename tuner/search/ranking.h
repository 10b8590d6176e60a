// The cost model as a search asks it: how long would these programs take, and how sure is that.
#pragma once

#include <span>

#include "tuner/model/cost_model.h"
#include "tuner/search/experience.h"

namespace hone {

struct Estimate {
  double log_us = 0;
  double deviation = 0;  // of log_us
};

class Ranking {
 public:
  explicit Ranking(uint64_t seed) : seed_(seed) {}
  // Fits anew when enough has come in since it last did.
  void Learn(const std::vector<Experience::Timed>& timed);
  // One for each program; the drafts alone while nothing is trained.
  absl::StatusOr<std::vector<Estimate>> Of(std::span<const Program* const> programs) const;
  bool trained() const { return model_.trained(); }

 private:
  uint64_t seed_;
  CostModel model_;
  size_t trained_on_ = 0;
};

}  // namespace hone
