// The module that `hone opt` reads, and the function of it that is meant.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/module.h"

namespace hone {

// All of the file, or a module of the one function named `func` where that is not "". InvalidArgument where the text is
// no program or has no such function.
absl::StatusOr<IrModule> ReadModule(const std::string& file, const std::string& func);

// The one tensor function that a trace or a run is about. InvalidArgument, with the file's name, where there is none or
// more than one.
absl::StatusOr<PrimFunc> OnlyTensorFunction(const std::string& file, const IrModule& module);

}  // namespace hone
