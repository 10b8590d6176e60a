// Builds points with all threads and remembers what they gave: a finalist of one round is often one of the next.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/search/strategies/experience.h"

namespace hone {

class Workbench {
 public:
  Workbench(const CandidateSpace& space, int threads) : space_(space), threads_(threads) {}

  // What each point gives, nullopt for those that were refused, which `experience` is told. The answer does not depend
  // on the number of threads.
  std::vector<std::optional<Built>> Build(std::span<const Point> points, Experience* experience);
  // The same for traces of others.
  std::vector<absl::StatusOr<Identified>> Identify(std::span<const std::string> traces) const;

  // Points that the draft took for legal and the schedule or lowering refused, and why the last one was. Each shows an
  // error in the draft of its source.
  int refused() const { return refused_; }
  const std::string& last_refusal() const { return last_refusal_; }

 private:
  const CandidateSpace& space_;
  int threads_;
  std::map<Point, Built> known_;
  int refused_ = 0;
  std::string last_refusal_;
};

}  // namespace hone
