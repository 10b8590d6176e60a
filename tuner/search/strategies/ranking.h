// The cost model as a search asks it: how long would these programs take, and how sure is that.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tuner/model/device_model.h"
#include "tuner/search/strategies/experience.h"

namespace hone {

// The model of the device class, shared with its other tasks, and which of them this one is.
struct TaskModel {
  std::shared_ptr<DeviceModel> model;  // nullptr: one of its own
  uint64_t task = 0;
};

struct Estimate {
  double log_us = 0;
  double deviation = 0;  // of log_us
};

class Ranking {
 public:
  Ranking(uint64_t seed, TaskModel model);
  // Gives the model what has come in since the last call, and trains it when that is enough.
  absl::Status Learn(std::span<const Experience::Timed> timed);
  // One for each program; the drafts alone while nothing is trained.
  absl::StatusOr<std::vector<Estimate>> Of(std::span<const Program* const> programs) const;
  bool trained() const { return model_.model->trained(); }

 private:
  uint64_t seed_;
  TaskModel model_;
  size_t given_ = 0;  // of what was timed
};

}  // namespace hone
