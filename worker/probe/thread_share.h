// Whether threads have cores of their own now. The processors of a virtual machine may share a core of their host for
// some seconds; nothing inside the machine says so, and what is timed by all threads meanwhile takes twice as long.
#pragma once

#include "compiler/target/target.h"

namespace hone {

// How many multiply-adds each of `threads` threads does a second while all work, over those of one that works alone.
// The best of some bursts of 0.1 ms; 1 for one thread, or where threads cannot be had. `target` is the host's.
double ShareOfThreads(const Target& target, int threads);

}  // namespace hone
