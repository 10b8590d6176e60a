// OpenCL C 1.2: what OpenCL devices compile, and PoCL among them, which runs on CPUs.
#pragma once

#include "compiler/codegen/gpu/dialect.h"

namespace hone {

// Sub-groups and tile operations of warps are not used: the kernels run on every device. Copies are made at once.
const Dialect& OpenClC();

}  // namespace hone
