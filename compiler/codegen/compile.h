// From a scheduled program to machine code.
//
// The object is a position-independent ELF file without undefined symbols: link_image.h makes an image of one or
// several. Every call is independent of every other and may run on any thread. The same program, target and options
// give the same bytes in every process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/program.h"
#include "compiler/target/target.h"
#include "deploy/runtime/image/kernel_set.h"

namespace hone {

struct CompileOptions {
  std::string symbol = "kernel";  // the main kernel; prepare kernels are symbol + "_prepare0", ...
  NumericLevel numeric = NumericLevel::kDefault;
  bool optimize = true;  // false: no clean-up passes and the quickest code generation
  bool fuse = true;      // multiplications and additions into one rounding; false: each rounds, as the interpreter does
  int threads = 0;       // threads the program will run with; 1 calls loop bodies directly, 0 is unknown
  // Who calls the kernel passes the values of its symbolic sizes in HoneCall::dims. The kernel set says of such a
  // dimension, and of scratch memory, what the greatest size takes. false: a function with symbolic sizes is refused.
  bool symbolic = false;
};

struct CompiledKernel {
  KernelSet set;
  std::string object;
  uint64_t program_hash = 0;  // StructuralHash of the main function and of every prepare function
  // Loops that the schedule vectorises and that have no vector form: a text for each, with the reason. They are serial.
  std::vector<std::string> serial_loops;
};

// FailedPrecondition when the program cannot be lowered, InvalidArgument when the target is not one of LLVM's.
absl::StatusOr<CompiledKernel> CompileKernel(const ScheduledProgram& program, const Target& target,
                                             const CompileOptions& options = {});

// The plain build of an unscheduled function: one thread, every element computed in the order the program states, each
// operation rounded as written (nothing is contracted). The reference that candidates are compared with. Takes every
// function, float64 too.
absl::StatusOr<CompiledKernel> CompilePlain(const PrimFunc& func, const Target& target,
                                            const CompileOptions& options = {});

// The same code as text: assembly of the target, for tests and for people.
absl::StatusOr<std::string> CompileToAssembly(const ScheduledProgram& program, const Target& target,
                                              const CompileOptions& options = {});

// The same code before instructions are selected, as text of LLVM's intermediate representation. It still names LLVM's
// functions for single instructions, llvm.x86.*, which a test can replace to run the code on a machine without them.
absl::StatusOr<std::string> CompileToLlvmIr(const ScheduledProgram& program, const Target& target,
                                            const CompileOptions& options = {});

// Changes whenever the same program might compile to other bytes: our own version and LLVM's.
std::string GeneratorFingerprint();

}  // namespace hone
