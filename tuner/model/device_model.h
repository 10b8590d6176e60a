// The cost model of a device class, shared by the tasks of a search process and, stored, by all processes.
//
// What each task observes trains one model. Trained rows are remembered, a bounded sample of them is stored with the
// trees, and another process goes on with its own rows behind those: nothing is forgotten but what the bound drops, and
// whoever has so many more that the trees are to be made anew does so for all. Losing a stored model costs only what
// was learnt.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuner/model/cost_model.h"

namespace hone {

class DeviceModel {
 public:
  // At most so many programs are remembered and so many bytes are stored; the fastest of every task stay.
  static constexpr size_t kMostRows = 2000;
  static constexpr size_t kMostBytes = 4 << 20;

  // A verified time of a program; none for a failure: what does not run has no latency. One that is known already (the
  // same task and program) is left out.
  void Observe(TrainingRow row);
  size_t rows() const { return rows_.size(); }
  bool trained() const { return model_.trained(); }

  // Trains where enough was observed since. The model is a function of the rows in their order and the seed, not of how
  // often it is asked: a process that starts over from the log has the same. Cheap otherwise; on the whole a few
  // milliseconds for every row.
  absl::Status TrainIfDue(uint64_t seed);
  // With the task's intercept, as far as times of the task are known: log_ratio is then that of the time itself. The
  // fewer of them there are, the less of the trees' correction is left: other tasks' times say little about this one.
  absl::StatusOr<std::vector<Prediction>> Predict(uint64_t task, std::span<const ProgramFeatures> programs) const;

  // Takes up a stored model: its rows beside those observed here, its trees where none are trained here on more. What
  // came after these trees, here and there, corrects them at the next training. FailedPrecondition for another version
  // of the features, DataLoss for what is no model; both leave it as it was.
  absl::Status Merge(const std::string& stored);
  absl::StatusOr<std::string> Save() const;
  // Whether so much was observed here that no stored model has, as far as Save and Merge tell, that it is worth to be
  // stored.
  bool worth_saving() const;
  void NoteSaved() { unsaved_ = 0; }

 private:
  size_t Forget(size_t rows);  // of the first; how many of them are left

  std::vector<TrainingRow> rows_;
  std::set<std::pair<uint64_t, uint64_t>> known_;  // task, program
  CostModel base_;                                 // trained on the first base_rows_ rows
  CostModel model_;                                // base_, corrected on the rows since
  size_t base_rows_ = 0;
  size_t trained_rows_ = 0;  // that model_ has seen
  size_t unsaved_ = 0;       // rows that were observed here since the last that was stored
};

}  // namespace hone
