// The search for one task: proposes the next candidates from what was observed so far.
//
// It files what comes back (experience.h), adapts the best of like workloads to this one, and leaves the rest to its
// strategy (strategy.h). What comes next is a function of the seed, the request, the observations in their order and
// what the model has learnt from other tasks, so a search can be repeated, and another process can go on from the log.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/gpu_target.h"
#include "hone/v1/search.pb.h"
#include "tuner/search/strategies/batch_judge.h"
#include "tuner/search/strategies/strategy.h"
#include "tuner/space/generator.h"

namespace hone {

class TaskSearch {
 public:
  // FailedPrecondition where no generator applies. `model` is shared with the other searches for the device class; one
  // of its own when there is none.
  static absl::StatusOr<std::unique_ptr<TaskSearch>> Create(const PrimFunc& workload, const SpaceOptions& options,
                                                            uint64_t seed, const SearchTuning& tuning = {},
                                                            v1::SearchStrategy strategy = v1::SEARCH_MODEL,
                                                            std::shared_ptr<DeviceModel> model = nullptr);
  // The same for a GPU, whose schedules only reorder.
  static absl::StatusOr<std::unique_ptr<TaskSearch>> CreateForGpu(const PrimFunc& workload, const GpuTarget& target,
                                                                  uint64_t seed, const SearchTuning& tuning,
                                                                  v1::SearchStrategy strategy,
                                                                  std::shared_ptr<DeviceModel> model);
  TaskSearch(std::shared_ptr<const CandidateSpace> space, std::unique_ptr<Strategy> strategy, uint64_t seed,
             const SearchTuning& tuning);

  size_t num_observations() const { return observations_; }
  void Observe(const v1::Observation& observation);
  // A candidate that is out already, proposed by an earlier life of this search: not to be proposed again.
  void NotePending(const std::string& trace);
  // The trace of a like workload: what it comes to here is tried soon, a quarter of a batch being seeds at most. A
  // trace whose generator is not here is tried as it is, if it replays. One that was added before is left out.
  void AddSeed(const std::string& trace);

  // At most `count` candidates of programs that were never proposed or observed; fewer when the space runs out.
  // `polish`: the budget nears its end.
  absl::StatusOr<std::vector<v1::Candidate>> Propose(int count, bool polish = false);

  int refused() const { return workbench_.refused(); }
  const std::string& last_refusal() const { return workbench_.last_refusal(); }
  const CandidateSpace& space() const { return *space_; }
  const Experience& experience() const { return experience_; }
  // Of the batches whose times have become known since the last call.
  BatchScores TakeScores() { return judge_.Take(); }

 private:
  void File();  // what has come in since the last batch
  void ProposeSeeds(size_t most, std::vector<v1::Candidate>* batch);

  const std::shared_ptr<const CandidateSpace> space_;
  const std::unique_ptr<Strategy> strategy_;
  const uint64_t seed_;
  const SearchTuning tuning_;
  Experience experience_;
  Workbench workbench_;
  BatchJudge judge_;
  std::vector<v1::Observation> inbox_;  // kind OUTCOME_UNSPECIFIED: pending
  std::deque<std::string> seeds_;
  std::set<std::string> seeds_given_;
  size_t observations_ = 0;
  uint64_t rounds_ = 0;  // since the last observation
};

}  // namespace hone
