// CUDA C++ as NVRTC compiles it without a header: floats of 16 bits are their bits, and every instruction that the
// language has no operator for is one helper around a line of PTX.
#pragma once

#include "compiler/codegen/gpu/dialect.h"

namespace hone {

// Products of warps are mma.sync; copies from global to shared memory are asynchronous where the target has cp.async of
// their bytes. Shared memory beyond 48 KB is given by the launch.
const Dialect& CudaCpp();

}  // namespace hone
