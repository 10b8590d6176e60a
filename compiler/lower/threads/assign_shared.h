// Places in a block's shared memory for what its kernel allocates there.
#pragma once

#include "compiler/lower/threads/device_program.h"

namespace hone {

// Takes allocations of shared memory out of the kernel's body and gives each its place; sets the launch's bytes. Of
// a kernel that needs more than `most_apart` bytes, those that are never in use at the same time, as operands and then
// results of a product, have the same bytes: where one follows another there, a barrier is put in between, behind a
// wait for all copies that are still on their way.
void AssignShared(Launch& launch, DeviceKernel& kernel, int64_t most_apart);

}  // namespace hone
