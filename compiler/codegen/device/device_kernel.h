// From a scheduled program to what a device runs: what its driver takes, text or machine code, and the launches.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/codegen/compile.h"
#include "compiler/schedule/program.h"
#include "compiler/target/gpu_target.h"

namespace hone {

// Of the result `object` is what the driver takes (OpenCL C, or machine code of the target's architecture), and the
// kernel set has launches in place of a function. The same program, target and symbol, which kernels are named after,
// give the same bytes in every process. FailedPrecondition where the program cannot be lowered or printed, takes more
// threads or shared memory than the target has, or prepares constants, and where the language's compiler is not here.
absl::StatusOr<CompiledKernel> CompileDeviceKernel(const ScheduledProgram& program, const GpuTarget& target,
                                                   const std::string& symbol);

// As GeneratorFingerprint (compile.h), of what this makes for a target: the release of a compiler is part of it.
std::string DeviceGeneratorFingerprint(const GpuTarget& target);

// Opens what CompileDeviceKernel needs of this machine's files for a language ("cuda"), for a process that is about to
// lock itself in. What is missing CompileDeviceKernel says.
void PrepareDeviceCompiler(std::string_view language);

}  // namespace hone
