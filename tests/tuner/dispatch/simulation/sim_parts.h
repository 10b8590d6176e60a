// What the files of SimWorld share: who is in the world, and how its facts follow from texts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/tuner/dispatch/simulation/sim_world.h"
#include "worker/agent/session/build_queue.h"
#include "worker/agent/session/session_rules.h"
#include "worker/agent/session/work_queue.h"

namespace hone {

inline uint64_t Hash(const std::string& text) {
  uint64_t hash = 1469598103934665603u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash ^ hash >> 29;
}
inline double UniformOf(const std::string& text) { return static_cast<double>(Hash(text) % 1'000'003) / 1'000'003.0; }

struct SimWorld::Worker {
  int index = 0;
  bool up = false;
  Micros silent_until = 0;  // vanished: it neither hears nor speaks
  uint64_t life = 0;        // rises with each start: what an earlier one had under way is void
  std::string session;
  // What a true worker has: its leases and results, the builds of one that only builds, and what its session says.
  std::unique_ptr<WorkQueue> queue;
  std::unique_ptr<BuildQueue> build_queue;
  std::unique_ptr<SessionRules> rules;
  SessionWork& work() {
    if (builds_only) return *build_queue;
    return *queue;
  }
  bool hello_out = false;
  uint64_t hellos = 0, waits = 0;  // so far
  std::optional<v1::LeaseId> working;
  std::map<ReportedLease, v1::TrialResult> forged;  // what it says beside them
  // Of one that only measures: its calls for builds so far, and the latest one, which is 0 until it arrived.
  uint64_t calls = 0;
  ReplyTo build_call = 0;
  std::optional<v1::BuildLease> building;  // by one that only builds
  std::vector<v1::BuildResult> forged_builds;

  bool measures_only = false, builds_only = false, lies = false;
};

struct SimWorld::Client {
  Tenant tenant;
  v1::SubmitRequest request;
  uint64_t job = 0;  // once told
  bool stop = false;
  bool stop_answered = false;
  bool pause = false;  // what it wants of its job now
};

}  // namespace hone
