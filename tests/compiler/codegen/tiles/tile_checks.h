// That the code of a tile operation computes what the operation means, wherever it may run.
#pragma once

#include <string>

#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"

namespace hone::testing {

// On this machine or, where a board is named, on that CPU. `workload` is the program before it was scheduled.
void ExpectComputes(const Schedule& schedule, const PrimFunc& workload, const Target& target,
                    const std::string& board = "");

// On this machine, whatever it has, the code for an x86 target whose instructions are functions of this process
// (compile_emulated.h): with random numbers, and the ends of their types. Integers, and sums of floats that are exact,
// are those of the interpreter; other sums of floats are as near as in any other order. `function` must be called, and
// nothing is where it is empty. Where this machine has the instructions, they give the same bits.
void ExpectComputesEmulated(const Schedule& schedule, const PrimFunc& workload, const Target& target,
                            const std::string& function);

// Every pass keeps the result with what the target has, and leaves the intrinsic's instruction to the code generator.
void ExpectPassesKeep(const Schedule& schedule, const Target& target, const std::string& intrinsic);

}  // namespace hone::testing
