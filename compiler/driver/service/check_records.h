// After Hone was built anew: whether it still makes the code that was measured of the schedules on record. What it does
// counts as before; what it does not is stale, and the next job on the key measures it again (CheckRecord).
#pragma once

#include "absl/status/statusor.h"
#include "compiler/driver/models/model.h"
#include "compiler/driver/service_options.h"
#include "tuner/service/client.h"

namespace hone {

struct RecordChecks {
  int holding = 0, stale = 0;  // of the best records that another generator's code was measured for
};
// Compiles the schedules of those records, on all cores, and tells the daemon: each is looked at once by a generator.
// PermissionDenied where the caller is no admin of its tenant: the daemon then finds it out by itself.
absl::StatusOr<RecordChecks> CheckRecords(const Model& model, const ResolvedSettings& settings,
                                          const ServiceOptions& service, DaemonClient& daemon);

}  // namespace hone
