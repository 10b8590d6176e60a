// What a runner finds in the memory files that it is handed: code, kernel set, and the sets of tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/runtime/error.h"
#include "deploy/runtime/image/kernel_set.h"
#include "worker/runner/fenced_memory.h"
#include "worker/runner/protocol.h"

namespace hone {

// kOutOfMemory: "no memory for " and what it was for.
RuntimeError NoMemory(const char* what);

// All of a file. kCorrupt where it is empty; the message says `what` it was to be.
RuntimeResult<std::string> ReadMemoryFile(int fd, const char* what);
// kCorrupt where it is none, kInvalidArgument where its sizes are none that memory has.
RuntimeResult<KernelSet> ReadKernelSet(int fd);

struct TensorSet {
  std::vector<FencedMemory> inputs, outputs;
  std::vector<void*> originals;  // where each of the kernel set's params lies; inputs are read-only
};
// Maps `sets` of them. kInvalidArgument where a file is smaller than they are, kOutOfMemory.
RuntimeResult<std::vector<TensorSet>> MapTensorSets(const KernelSet& set, int sets, int inputs_fd, int outputs_fd);

// The values of a tensor turned around by so many elements, modulo how many it has.
void CopyTurned(const void* from, const KernelTensor& tensor, uint64_t turn, void* to);

}  // namespace hone
