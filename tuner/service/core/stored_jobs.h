// Jobs as the database has them, for when no daemon runs.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "database/store/store.h"
#include "hone/v1/tune.pb.h"

namespace hone {

// All jobs with their tasks, by id, as a daemon would tell of them. One that is not at its end says that it goes on
// with the next daemon.
absl::StatusOr<std::vector<v1::JobSnapshot>> StoredJobs(TuningStore& store);

}  // namespace hone
