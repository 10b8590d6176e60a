// What two kernels share that differ in what stands around their heaviest block alone.
#pragma once

#include <string>

#include "compiler/ir/stmt.h"

namespace hone {

// SHA-256 of the heaviest block of an unscheduled function: its iteration variables, what it computes, the types and
// shapes of what it reads and writes and how it walks them. Names do not count. Empty where the function has no such
// block (AnalyzeWorkload refuses it).
std::string AnchorOf(const PrimFunc& func);

}  // namespace hone
