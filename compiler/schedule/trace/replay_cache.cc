#include "compiler/schedule/trace/replay_cache.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/schedule/primitives/sample.h"
#include "compiler/schedule/trace/replay.h"
#include "compiler/schedule/trace/step_compare.h"
#include "compiler/schedule/trace/step_refs.h"

namespace hone {
namespace {

constexpr size_t kStride = 8;  // a schedule is kept at least every so many steps

// The numbers a sample gives, where they are all its decision changes. Nothing for other steps, and for decisions that
// are not legal by themselves.
std::optional<std::vector<int64_t>> SampledNumbers(const Step& step) {
  if (const auto* tile = step.As<SamplePerfectTileStep>()) {
    const std::vector<int64_t>& factors = tile->decision;
    if (factors.empty() || static_cast<int64_t>(factors.size()) != tile->n) return std::nullopt;
    if (*std::min_element(factors.begin(), factors.end()) < 1) return std::nullopt;
    if (tile->max_innermost_factor > 0 && tile->n > 1 && factors.back() > tile->max_innermost_factor) {
      return std::nullopt;
    }
    return factors;
  }
  if (const auto* choice = step.As<SampleCategoricalStep>()) {
    if (choice->decision < 0 || choice->decision >= static_cast<int64_t>(choice->candidates.size())) {
      return std::nullopt;
    }
    return std::vector<int64_t>{choice->candidates[static_cast<size_t>(choice->decision)]};
  }
  return std::nullopt;
}

// The product of a tile's factors, -1 when it is too large for any loop.
int64_t Product(const std::vector<int64_t>& factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return -1;
  }
  return product;
}

uint64_t Mix(uint64_t state, uint64_t value) {
  state = (state ^ value) * 0x9E3779B97F4A7C15u;
  return state ^ state >> 29;
}

// A trace as the program sees it: samples without their decisions, and beside every step the sampled numbers it reads.
class Seen {
 public:
  explicit Seen(const Trace& trace) : trace_(trace) {
    keys_.reserve(trace.steps.size() + 1);
    keys_.push_back(0x5851F42D4C957F2Du);
    reads_.reserve(trace.steps.size());
    for (size_t i = 0; i < trace.steps.size(); ++i) {
      samples_.push_back(SampledNumbers(trace.steps[i]));
      std::vector<int64_t>& read = reads_.emplace_back();
      ForEachRef(trace.steps[i], [&](int s, int k) {
        if (s < 0 || s >= static_cast<int>(i) || !samples_[s].has_value()) return;
        if (k >= 0 && k < static_cast<int>(samples_[s]->size())) read.push_back((*samples_[s])[k]);
      });
      uint64_t key = Mix(keys_.back(), samples_[i].has_value() ? SampleKey(i) : HashOf(trace.steps[i]));
      for (const int64_t number : read) key = Mix(key, static_cast<uint64_t>(number));
      keys_.push_back(Mix(key, static_cast<uint64_t>(trace.outputs[i])));
    }
  }

  uint64_t key(size_t steps) const { return keys_[steps]; }
  bool ReadsDecision(size_t i) const { return !reads_[i].empty(); }
  const std::optional<std::vector<int64_t>>& sample(size_t i) const { return samples_[i]; }

  // Whether the program after `steps` steps is the same for both.
  bool SameUpTo(size_t steps, const Seen& other) const {
    if (steps > other.trace_.steps.size()) return false;
    for (size_t i = 0; i < steps; ++i) {
      if (trace_.outputs[i] != other.trace_.outputs[i] || reads_[i] != other.reads_[i]) return false;
      if (samples_[i].has_value() != other.samples_[i].has_value()) return false;
      if (!(samples_[i].has_value() ? SameSample(i, other) : SameStep(trace_.steps[i], other.trace_.steps[i]))) {
        return false;
      }
    }
    return true;
  }

 private:
  // What decides whether a sample is legal where it stands, beyond its own fields.
  uint64_t SampleKey(size_t i) const {
    const Step& step = trace_.steps[i];
    const auto* tile = step.As<SamplePerfectTileStep>();
    uint64_t key = Mix(tile == nullptr ? 1 : 2, samples_[i]->size());
    if (tile == nullptr) return key;
    key = Mix(key, static_cast<uint64_t>(tile->loop.step));
    return Mix(Mix(key, static_cast<uint64_t>(tile->loop.output)), static_cast<uint64_t>(Product(tile->decision)));
  }
  bool SameSample(size_t i, const Seen& other) const {
    const Step &a = trace_.steps[i], &b = other.trace_.steps[i];
    if (&a.info() != &b.info() || samples_[i]->size() != other.samples_[i]->size()) return false;
    const auto *x = a.As<SamplePerfectTileStep>(), *y = b.As<SamplePerfectTileStep>();
    if (x != nullptr) return x->loop == y->loop && Product(x->decision) == Product(y->decision);
    const auto *c = a.As<SampleCategoricalStep>(), *d = b.As<SampleCategoricalStep>();
    const auto legal = [](const SampleCategoricalStep& s) {
      return s.probs.empty() || s.probs.size() == s.candidates.size();
    };
    return legal(*c) && legal(*d);
  }

  const Trace& trace_;
  std::vector<uint64_t> keys_;                                // after each number of steps
  std::vector<std::vector<int64_t>> reads_;                   // sampled numbers that each step reads
  std::vector<std::optional<std::vector<int64_t>>> samples_;  // what each sample gives
};

}  // namespace

struct ReplayCache::State {
  struct Kept {
    Schedule schedule;
    uint64_t last_use;
  };
  PrimFunc workload;
  size_t capacity;
  std::unordered_map<uint64_t, Kept> kept;  // by key
  uint64_t uses = 0;
  Figures figures;

  void Keep(uint64_t key, const Schedule& schedule) {
    if (capacity == 0) return;
    if (kept.size() >= capacity && !kept.contains(key)) {
      kept.erase(std::min_element(kept.begin(), kept.end(),
                                  [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; }));
    }
    kept.insert_or_assign(key, Kept{schedule, ++uses});
  }
};

ReplayCache::ReplayCache(PrimFunc workload, size_t capacity) : state_(std::make_unique<State>()) {
  state_->workload = std::move(workload);
  state_->capacity = capacity;
}
ReplayCache::~ReplayCache() = default;

const ReplayCache::Figures& ReplayCache::figures() const { return state_->figures; }

absl::StatusOr<Schedule> ReplayCache::Replay(const Trace& trace) {
  const Seen seen(trace);
  std::optional<Schedule> schedule;
  size_t done = 0;
  for (size_t steps = trace.steps.size(); steps > 0 && !schedule.has_value(); --steps) {
    const auto it = state_->kept.find(seen.key(steps));
    if (it == state_->kept.end()) continue;
    const Trace& known = it->second.schedule.trace();
    if (known.steps.size() != steps || !Seen(known).SameUpTo(steps, seen)) continue;
    it->second.last_use = ++state_->uses;
    schedule = it->second.schedule;
    done = steps;
    for (size_t i = 0; i < steps; ++i) {  // the same program; the decisions are this trace's own
      if (seen.sample(i).has_value() && !SameStep(known.steps[i], trace.steps[i])) {
        schedule->Redecide(static_cast<int>(i), trace.steps[i], *seen.sample(i));
      }
    }
  }
  if (!schedule.has_value()) schedule.emplace(state_->workload);
  state_->figures.steps_saved += static_cast<int64_t>(done);
  for (size_t i = done; i < trace.steps.size(); ++i) {
    const bool parts_here = seen.ReadsDecision(i) || i % kStride == 0;
    if (parts_here && i > done &&
        schedule->trace().outputs ==
            std::vector<int>(trace.outputs.begin(), trace.outputs.begin() + static_cast<ptrdiff_t>(i))) {
      state_->Keep(seen.key(i), *schedule);
    }
    if (const absl::Status status = ReplayStep(trace, i, *schedule); !status.ok()) return status;
    ++state_->figures.steps_done;
  }
  return *std::move(schedule);
}

}  // namespace hone
