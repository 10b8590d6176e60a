// A batch of candidates of one task, from traces to outcomes: built, verified, and raced against the champion and each
// other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hone/v1/fleet.pb.h"
#include "worker/agent/builds/builders.h"
#include "worker/agent/builds/known_builds.h"
#include "worker/agent/session/phase_seconds.h"
#include "worker/agent/trials/task_context.h"
#include "worker/measure/timed_race.h"

namespace hone {

class TrialBatch {
 public:
  // Says which leases changed phase, before they do.
  using PhaseNote = std::function<void(const v1::LeaseId&, v1::Phase)>;
  // Says that timings are taken from now on, and for about how long.
  using QuietNote = std::function<void(absl::Duration)>;

  // `known` is what the worker built for the task, `noise` the machine's log noise of one sample, pooled over the
  // worker's races: both are read, and brought up to date.
  TrialBatch(const TaskContext& task, const v1::DeviceProfile& device, Builders& builders, KnownBuilds* known,
             double* noise, PhaseNote note, QuietNote quiet);
  ~TrialBatch();

  // Once, first: builds and verifies, each as soon as it is built. Nothing is timed, so that others may work beside it.
  // Leases of this task with equal threads, level and champion; a duel comes alone, and is the same with more rounds,
  // since champion and challengers always run in fresh processes, in turn.
  void Prepare(const std::vector<v1::Lease>& leases);
  // Once, then: with the machine for itself. One outcome for each lease, in order.
  std::vector<v1::Outcome> Measure();

  const PhaseSeconds& seconds() const { return seconds_; }

 private:
  struct Contender;
  std::span<Contender> challengers();  // all but the champion
  // One for each lease, and the champion's behind them when they name one.
  void AddContenders(const std::vector<v1::Lease>& leases);
  // Of one that is built. Sets the outcome of whoever cannot go on.
  void Verify(Contender& contender);
  // Loads it into a runner, and unless it was right on these inputs before, holds its outputs against the oracle.
  // Whoever fails is built again when it is asked for again.
  void Load(Contender& contender);
  // Samples in microseconds; nullopt for whoever is out, which a failure makes it.
  static std::optional<std::vector<double>> TimeOf(Contender& contender, const TimeRequest& request);
  // Whether all threads of the host have cores of their own now, as when it was probed.
  bool HasItsCores() const;
  // Times everybody that is still in. Whoever got no usable figure stays in, and false says that the machine was not
  // quiet enough, or that a first time, which no champion's stands beside, was taken without cores for all threads:
  // that one counts at the last attempt alone.
  bool RunRace(TimedRaceOptions options, bool last_attempt);
  // Both of one that has a time.
  void CheckAsWinner(Contender& contender) const;
  // One call more, under the clock, on inputs that it was not timed on, with outputs and scratch destroyed before:
  // whoever leaves them wrong has no time. A long call that is no faster than the champion's costs no further one.
  void CheckOnOtherInputs(Contender& contender) const;
  // The bytes of whoever would be the best so far go along, for the database to keep.
  void AttachObjectOfBest();
  v1::BuildRequest RequestFor(const v1::Lease& lease, const std::string& trace) const;

  const TaskContext& task_;
  const v1::DeviceProfile& device_;
  Builders& builders_;
  PhaseNote note_;
  QuietNote quiet_;
  PhaseSeconds seconds_;
  KnownBuilds* known_;
  double* noise_;
  std::vector<Contender> contenders_;  // the champion, if any, is the last
  size_t leases_ = 0;
};

}  // namespace hone
