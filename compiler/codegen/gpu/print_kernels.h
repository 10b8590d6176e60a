// The kernels of a device program as source text, for a compiler at run time.
//
// What a thread runs is one lane program, whatever the language: scalars alone, each in a variable or in an array of
// the thread's own, and vectors only where a run of elements is read or written at once.
//   - Floats of 16 bits lie in memory as their bits and are computed as floats, rounded after every operation.
//   - Integers that index memory are C's, which do not overflow; those that are data wrap.
//   - Quotients and remainders round down: as shifts and masks by powers of two, as C's where the dividend is proven
//     not to be negative, through a helper otherwise.
//   - Asynchronous copies (ir/effects.h) are the intrinsics of the target. Where it has none they are made at once,
//     which is one of the moments at which they may land, and nothing is waited for.
// The text is a function of the program, the dialect and the features alone.
#pragma once

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/gpu/dialect.h"
#include "compiler/lower/threads/device_program.h"

namespace hone {

// `features`: of the target, as FeaturesOf(GpuTarget) names them. FailedPrecondition for what the dialect has no words
// for: a tile operation of a warp, an atomic update, a cast that rounds twice. The message names it.
absl::StatusOr<std::string> PrintKernels(const DeviceProgram& program, const Dialect& dialect,
                                         const std::set<std::string>& features);

}  // namespace hone
