// Candidates of one task, from traces to outcomes: built, verified, and raced against the champion and each other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hone/v1/fleet.pb.h"
#include "worker/agent/builder_pool.h"
#include "worker/agent/task_context.h"
#include "worker/measure/race.h"

namespace hone {

// Wall time by what it was spent on.
struct PhaseSeconds {
  double build = 0, verify = 0, measure = 0;
};

class TrialBatch {
 public:
  // Says which leases changed phase, before they do.
  using PhaseNote = std::function<void(const v1::LeaseId&, v1::Phase)>;

  // `noise` is the machine's log noise of one sample, pooled over the worker's races: read, and brought up to date.
  TrialBatch(const TaskContext& task, std::string target, BuilderPool& builders, double* noise, PhaseNote note);

  // Leases of this task with equal threads, level and champion; a duel comes alone, and is the same with more rounds,
  // since champion and challengers always run in fresh processes, in turn. One outcome for each, in order.
  std::vector<v1::Outcome> Run(const std::vector<v1::Lease>& leases);

  const PhaseSeconds& seconds() const { return seconds_; }

 private:
  struct Contender;
  // One for each lease, and the champion's behind them when they name one. Outcomes of those that cannot be built are
  // set.
  std::vector<Contender> Build(const std::vector<v1::Lease>& leases);
  void Verify(Contender& contender) const;
  // Times everybody that is still in; the champion, if any, is the last. Whoever got no usable figure stays in, and
  // false says that the machine was not quiet enough.
  bool Measure(std::vector<Contender>& contenders, bool has_champion, RaceOptions options);
  void CheckAsWinner(Contender& contender) const;
  v1::BuildRequest RequestFor(const v1::Lease& lease, const std::string& trace, uint64_t id) const;

  const TaskContext& task_;
  std::string target_;
  BuilderPool& builders_;
  PhaseNote note_;
  PhaseSeconds seconds_;
  double* noise_;
};

}  // namespace hone
