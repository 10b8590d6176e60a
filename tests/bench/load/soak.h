// A load that goes on, with a fault every five seconds.
#pragma once

#include "tests/bench/load/load.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {

// A worker vanishes, searches are killed, the daemon stands still, its disk is full, it is killed and started again.
// Prints memory and descriptors, kills the daemon in the end and counts what was acknowledged and is not in the
// database: 1, an exit code, when there is any, and when after half an hour or more memory has grown by more than 1 MiB
// an hour: the slope of a line through the lowest of each minute, less twice its standard error. Memory is looked at
// after the first third; the daemon is killed before that alone, since a new process begins anew.
int Soak(const LoadBenchOptions& options, const TempFolder& folder);

}  // namespace hone
