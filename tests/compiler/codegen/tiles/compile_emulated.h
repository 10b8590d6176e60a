// Compiles a program for an x86 target and runs the result on a machine that lacks the target's instructions: the code
// is what our generator makes for the target, up to the selection of instructions, and where it calls one of LLVM's
// functions for an instruction it calls a function of this process in its place. What LLVM makes of those functions,
// and its registers, are not tested so; assembly is (tile_op_test.cc), and the instructions themselves where a machine
// has them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/codegen/compile.h"
#include "compiler/target/target.h"
#include "tests/compiler/codegen/machine_code/x86_functions.h"

namespace hone::testing {

struct EmulatedKernel {
  CompiledKernel kernel;             // for this machine and this process
  std::map<std::string, int> calls;  // of functions that were replaced, by their names; how many are in the code
};

// NotFound when the code calls a function that `find` has no body for.
absl::StatusOr<EmulatedKernel> CompileEmulated(const ScheduledProgram& program, const Target& target,
                                               const CompileOptions& options,
                                               X86Body (*find)(std::string_view) = FindX86Body);

}  // namespace hone::testing
