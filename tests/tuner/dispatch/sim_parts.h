// What the files of SimWorld share: who is in the world, and how its facts follow from texts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "tests/tuner/dispatch/sim_world.h"
#include "worker/agent/work_queue.h"

namespace hone {

inline constexpr Micros kSecond = 1'000'000;

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
  bool known = false;  // its Hello was answered
  uint64_t seq = 0;
  bool waiting = false;              // a Sync is out
  std::unique_ptr<WorkQueue> queue;  // the leases and results that a true worker would hold, in its own code
  std::optional<v1::LeaseId> working;
  std::map<ReportedLease, v1::TrialResult> forged;  // what it says beside them
  // Of one that only measures: whether it waits for a build, in the latest of its calls, which is 0 until it arrived.
  bool asks = false;
  uint64_t calls = 0;
  ReplyTo build_call = 0;
  // Of one that only builds, by their number, attempt and epoch:
  using BuildToken = std::tuple<uint64_t, uint32_t, uint64_t>;
  static BuildToken TokenOf(const v1::BuildId& id) { return {id.build(), id.attempt(), id.epoch()}; }
  std::map<BuildToken, v1::BuildLease> builds;
  std::map<BuildToken, v1::BuildResult> built;
  bool building = false;

  bool measures_only = false, builds_only = false;
};

struct SimWorld::Client {
  Tenant tenant;
  v1::SubmitRequest request;
  uint64_t job = 0;  // once told
  bool stop = false;
  bool stop_answered = false;
};

}  // namespace hone
