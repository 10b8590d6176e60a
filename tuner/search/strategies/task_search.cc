#include "tuner/search/strategies/task_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/ir/structural.h"
#include "compiler/support/status_macros.h"
#include "tuner/search/candidates/generated_space.h"

namespace hone {
namespace {

constexpr size_t kSeedShare = 4;   // one in so many of a batch may be a seed
constexpr int kStalledAfter = 48;  // candidates without a gain, after which what is around the best is gone through
constexpr uint64_t kRounds = 1 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<TaskSearch>> TaskSearch::Create(const PrimFunc& workload, const SpaceOptions& options,
                                                               uint64_t seed, const SearchTuning& tuning,
                                                               v1::SearchStrategy strategy,
                                                               std::shared_ptr<DeviceModel> model) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<CandidateSpace> space, MakeGeneratedSpace(workload, options));
  // Times on another number of threads are another task; the numeric level only limits what is tried.
  const uint64_t task = StructuralHash(workload) * 1000003 + static_cast<uint64_t>(options.threads);
  return std::make_unique<TaskSearch>(std::move(space), MakeStrategy(strategy, seed, {std::move(model), task}), seed,
                                      tuning);
}

absl::StatusOr<std::unique_ptr<TaskSearch>> TaskSearch::CreateForGpu(const PrimFunc& workload, const GpuTarget& target,
                                                                     uint64_t seed, const SearchTuning& tuning,
                                                                     v1::SearchStrategy strategy,
                                                                     std::shared_ptr<DeviceModel> model) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<CandidateSpace> space, MakeGpuSpace(workload, target));
  return std::make_unique<TaskSearch>(
      std::move(space), MakeStrategy(strategy, seed, {std::move(model), StructuralHash(workload)}), seed, tuning);
}

TaskSearch::TaskSearch(std::shared_ptr<const CandidateSpace> space, std::unique_ptr<Strategy> strategy, uint64_t seed,
                       const SearchTuning& tuning)
    : space_(std::move(space)),
      strategy_(std::move(strategy)),
      seed_(seed),
      tuning_(tuning),
      workbench_(*space_, tuning.threads) {}

void TaskSearch::Observe(const v1::Observation& observation) {
  ++observations_;
  rounds_ = 0;
  inbox_.push_back(observation);
}

void TaskSearch::NotePending(const std::string& trace) {
  if (experience_.Knows(trace)) return;
  inbox_.emplace_back().set_trace(trace);
}

void TaskSearch::AddSeed(const std::string& trace) {
  if (seeds_given_.insert(trace).second) seeds_.push_back(trace);
}

void TaskSearch::File() {
  std::vector<std::string> foreign;
  std::vector<bool> is_foreign;
  for (const v1::Observation& one : inbox_) {
    is_foreign.push_back(!experience_.IsOut(one.trace()));
    if (is_foreign.back()) foreign.push_back(one.trace());
  }
  std::vector<absl::StatusOr<Identified>> identified = workbench_.Identify(foreign);
  size_t next = 0;
  for (size_t i = 0; i < inbox_.size(); ++i) {
    const v1::Observation& one = inbox_[i];
    if (one.kind() != v1::OUTCOME_UNSPECIFIED) {
      const bool timed = one.kind() == v1::OUTCOME_OK && std::isfinite(one.median_us());
      judge_.Observe(one.trace(), timed ? one.median_us() : 0);
    }
    if (!is_foreign[i]) {
      if (experience_.IsOut(one.trace())) experience_.ComesBack(one, {});  // else it came back twice
      continue;
    }
    absl::StatusOr<Identified>& what = identified[next++];
    if (!what.ok()) {
      experience_.KnowTrace(one.trace());
    } else if (one.kind() != v1::OUTCOME_UNSPECIFIED) {
      experience_.ComesBack(one, *std::move(what));
    } else if (!experience_.Knows(one.trace())) {
      experience_.GoesOut(one.trace(), *std::move(what));
    }
  }
  inbox_.clear();
}

void TaskSearch::ProposeSeeds(size_t most, std::vector<v1::Candidate>* batch) {
  while (batch->size() < most && !seeds_.empty()) {
    const std::string seed = std::move(seeds_.front());
    seeds_.pop_front();
    Identified what;
    std::string trace;
    if ((what.point = space_->Fit(seed)).has_value()) {
      absl::StatusOr<Built> built = space_->Build(*what.point);
      if (!built.ok()) continue;
      what.program = std::move(built->program);
      trace = std::move(built->trace);
    } else {
      absl::StatusOr<Identified> as_it_is = space_->Identify(seed);
      if (!as_it_is.ok()) continue;
      what = *std::move(as_it_is);
      trace = seed;
    }
    if (experience_.Knows(trace) || experience_.KnowsProgram(what.program.hash)) continue;
    v1::Candidate& candidate = batch->emplace_back();
    candidate.set_trace(trace);
    candidate.set_predicted_us(what.program.draft_us);
    candidate.set_source("seed");
    experience_.GoesOut(trace, std::move(what));
  }
}

absl::StatusOr<std::vector<v1::Candidate>> TaskSearch::Propose(int count, bool polish) {
  File();
  Random random(seed_, observations_ * kRounds + experience_.out().size() * 1024 + rounds_++);
  std::vector<v1::Candidate> batch;
  ProposeSeeds(std::max<size_t>(1, static_cast<size_t>(count) / kSeedShare), &batch);
  const int rest = count - static_cast<int>(batch.size());
  if (rest <= 0) return batch;
  const SearchState state{*space_, experience_, workbench_, tuning_,
                          polish || experience_.since_gain() >= kStalledAfter};
  HONE_ASSIGN_OR_RETURN(std::vector<Pick> picks, strategy_->Next(rest, state, random));
  for (Pick& pick : picks) {
    v1::Candidate& candidate = batch.emplace_back();
    candidate.set_trace(pick.built.trace);
    candidate.set_predicted_us(pick.predicted_us);
    candidate.set_source(pick.source);
    if (pick.ranked) judge_.Add({pick.built.trace, pick.built.program.draft_us, pick.predicted_us});
    experience_.GoesOut(pick.built.trace, {pick.point, std::move(pick.built.program)});
  }
  judge_.CloseBatch();
  return batch;
}

}  // namespace hone
