// Tasks whose workload and schedules are made of their name: fake workers and fake searches know how to time them.
#pragma once

#include <string>

#include "compiler/support/sha256.h"
#include "hone/v1/tune.pb.h"

namespace hone {

inline v1::TaskSpec FakeTask(const std::string& name, double weight = 1) {
  v1::TaskSpec task;
  task.mutable_workload()->set_name(name);
  task.mutable_workload()->set_text("text of " + name);
  task.mutable_workload()->set_hash(Sha256(task.workload().text()));
  task.mutable_workload()->set_flop(1e6);
  task.set_weight(weight);
  task.set_default_trace(name + " default");
  return task;
}

}  // namespace hone
