// The filter of system calls as a program for seccomp.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "compiler/sandbox/policy.h"

namespace hone {

// Calls of another architecture's numbers end the process, whatever they are.
std::vector<sock_filter> SystemCallFilter(SystemCalls calls);

}  // namespace hone
