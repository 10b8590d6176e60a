// What the nests of a program for a CPU are drafted and built for.
#pragma once

#include "compiler/target/machine.h"
#include "compiler/target/target.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

struct NestContext {
  const WorkloadInfo* info = nullptr;  // outlives what is made with it
  Target target;
  Machine machine;
  int threads = 1;
};

}  // namespace hone
