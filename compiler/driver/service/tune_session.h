// One `hone tune` from the connection on: the job is submitted and watched, what is ours is mended while it runs, and
// the model is built and timed as it was and as it is now.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compiler/driver/models/model.h"
#include "compiler/driver/service_options.h"
#include "hone/v1/tune.pb.h"

namespace hone {

// The model as it is cut for one device class.
struct TunedTarget {
  BuildSettings settings;
  ResolvedSettings resolved;
  std::shared_ptr<const Model> model;
};
struct TuneOrder {
  std::string model_path;  // as it was given
  ServiceOptions service;
  std::vector<TunedTarget> targets;  // the job's own first, then those of its parts; at least one
  absl::Duration patience;           // without progress
  bool json = false;
  bool detach = false;  // the job is submitted, its number printed, and no more

  const TunedTarget& own() const { return targets.front(); }
};

// Reports on standard error, and as JSON lines on standard output. Exit codes 4 (no valid schedule), 5 (no daemon, or
// held up for longer than `patience`, or without progress for that long and ten minutes at least), 130 and 143
// (interrupted; 130 also when another command stopped the job).
absl::Status RunTuning(const TuneOrder& order, const v1::SubmitRequest& request);

}  // namespace hone
