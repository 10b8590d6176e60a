// From a scheduled program to what a device runs: text that its driver compiles, and the launches that it takes.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/compile.h"
#include "compiler/schedule/program.h"
#include "compiler/target/gpu_target.h"

namespace hone {

// Of the result `object` is the text, and the kernel set has launches in place of a function. The same program, target
// and symbol, which kernels are named after, give the same bytes in every process. FailedPrecondition where the program
// cannot be lowered or printed, takes more threads or shared memory than the target has, or prepares constants.
absl::StatusOr<CompiledKernel> CompileDeviceKernel(const ScheduledProgram& program, const GpuTarget& target,
                                                   const std::string& symbol);

// As GeneratorFingerprint (compile.h), of the text that this makes.
std::string DeviceGeneratorFingerprint();

}  // namespace hone
