// CUDA C++ as NVRTC compiles it without a header: floats of 16 bits are their bits, and every instruction that the
// language has no operator for is one helper around a line of PTX.
#pragma once

#include "compiler/codegen/gpu/dialect.h"

namespace hone {

// From sm_80 on: copies from global to shared memory are asynchronous where they are of 4 bytes or more, products of
// warps are mma.sync. Shared memory beyond 48 KB is given by the launch.
const Dialect& CudaCpp();

}  // namespace hone
