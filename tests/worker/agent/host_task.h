// A task of a workload for this host, as a worker prepares one.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/sandbox/layers.h"
#include "compiler/target/target.h"
#include "hone/v1/common.pb.h"
#include "worker/agent/builds/builders.h"
#include "worker/agent/trials/task_context.h"

namespace hone::testing {

// `workload`: the text of its function. `limit`: of each run of the oracle.
inline absl::StatusOr<std::unique_ptr<TaskContext>> HostTask(const std::string& workload, Builders& builders,
                                                             absl::Duration limit = absl::Seconds(20)) {
  v1::Workload proto;
  proto.set_text(workload);
  return TaskContext::Create(proto, HostTarget().text, builders, limit, {LayersSomeSystemsLack()});
}

}  // namespace hone::testing
