// Whether code for the target that a worker claims runs on what it measures: a program of ours is built for it, run and
// checked as the oracle of a task is. A machine may lack what its target has: the target was stated by hand, it was
// moved to another host while it ran, or its cores differ.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "compiler/support/turn_lock.h"
#include "worker/agent/builds/builders.h"
#include "worker/agent/trials/task_context.h"

namespace hone {

class ClaimedTarget {
 public:
  ClaimedTarget(std::string target, Builders& builders, TaskRunners runners)
      : target_(std::move(target)), builders_(builders), runners_(std::move(runners)) {}

  // Tries it, which takes about as long as a candidate does: the turn is needed. False when the program cannot be run,
  // or comes to something else; a machine that lacks processes, memory or a builder says nothing about it, and what was
  // found before stands.
  bool Holds();
  // What was found last, in words that go behind "waits for"; "" when it holds. What does not hold is tried again once
  // a minute, for which the turn is waited for.
  std::string Lacks(absl::Time now, TurnLock& turn);
  const std::string& why() const { return lacks_; }

 private:
  std::string target_;
  Builders& builders_;
  TaskRunners runners_;
  std::string lacks_;
  absl::Time looked_ = absl::InfinitePast();
};

}  // namespace hone
