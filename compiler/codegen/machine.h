// LLVM's side that does not depend on a program: target machines, the list of clean-up passes, object files.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace hone {

// A machine for code of this target, kept by the calling thread: it is valid while the thread lives and must not be
// used by another. InvalidArgument when LLVM does not know the target.
absl::StatusOr<llvm::TargetMachine*> MachineFor(const Target& target, bool optimize);

// The few passes that scheduled code needs: accumulators into registers, common addresses found, invariants out of
// loops. Neither vectoriser nor unroller: the schedule has decided.
void CleanUp(llvm::Module& module, llvm::TargetMachine& machine);

std::string EmitObject(llvm::Module& module, llvm::TargetMachine& machine);
std::string EmitAssembly(llvm::Module& module, llvm::TargetMachine& machine);

std::string LlvmVersion();

}  // namespace hone
