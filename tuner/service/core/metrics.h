// The daemon's metrics in Prometheus' text format. Counts alone: no tenant's names, kernels or times are in them.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>

#include "tuner/dispatch/events/counts.h"
#include "tuner/dispatch/events/events.h"
#include "tuner/service/core/quota_keeper.h"

namespace hone {

// How long something took, in the buckets of a Prometheus histogram.
struct Durations {
  using Bounds = std::array<double, 10>;  // seconds
  static constexpr Bounds kOfCommits = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30};
  static constexpr Bounds kOfEvents = {1e-5, 3e-5, 1e-4, 1.5e-4, 1.75e-4, 2e-4, 2.5e-4, 3e-4, 1e-3, 1e-2};

  Bounds bounds;
  std::array<int64_t, std::tuple_size_v<Bounds> + 1> counts{};  // of each bucket alone; the last is beyond all bounds
  double sum = 0;

  void Add(double seconds);
  int64_t count() const;
};

// Of events, by what they are.
struct EventDurations {
  std::array<Durations, std::size(kEventNames)> of;

  EventDurations() { of.fill(Durations{Durations::kOfEvents}); }
};

struct ServiceMetrics {
  std::string version;
  double up_seconds = 0;
  bool leads = true;  // false: another daemon of the database does, and what follows is not known here
  uint64_t term = 0;
  FleetCounts counts;
  DispatchCounters counters;
  Durations commits{Durations::kOfCommits};  // transactions of the store
  EventDurations events;                     // what the dispatcher takes for one, by the clock
  EventDurations event_work;                 // and of processor time: where it had to wait for one, that is left out
  bool writable = true;
  int64_t database_cache_bytes = 0;
  int64_t search_crashes = 0;
  int64_t watches = 0;
  std::optional<QuotaKeeper::Counts> quota;  // where there is one
};

// Exposition format 0.0.4.
std::string MetricsText(const ServiceMetrics& metrics);

}  // namespace hone
