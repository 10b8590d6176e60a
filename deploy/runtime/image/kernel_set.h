// What a compiled task consists of: a main kernel, and `prepare` kernels that pack its constant operands once; of a
// device, launches of kernels.
// The compiler fills it, worker and bundle carry it, the runtime follows it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hone {

struct KernelTensor {
  std::string dtype;  // "float32", as in the program text
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

// A constant parameter that the main kernel takes in another form: run `symbol` once with tensors {original, packed}.
struct PreparedConstant {
  int param = 0;  // index in `params`
  std::string symbol;
  KernelTensor packed;
  int64_t scratch_bytes = 0;
  int64_t thread_scratch_bytes = 0;
};

// Of a kernel set for a device, whose code is text that the device compiles: what its launches hand to one another.
struct ScratchArea {
  int64_t offset = 0, bytes = 0;  // of scratch_bytes
};
// One of the runs of a kernel that a call consists of, in order.
struct KernelLaunch {
  std::string kernel;                      // its name in the text
  std::array<int64_t, 3> grid{}, block{};  // blocks, and threads of each
  std::vector<int> arguments;              // count `params`, then `areas`
  int64_t shared_bytes = 0;                // of a block's shared memory that the launch gives
};

// A symbolic size (compiler/ir/symbolic_sizes.h): whoever calls the kernel passes its value in HoneCall::dims.
struct KernelSize {
  std::string name;
  int64_t min = 1, max = 1;
};

struct KernelSet {
  std::string symbol;                // the main kernel: its tensors are `params`, packed ones in their packed form
  std::vector<KernelTensor> params;  // as the task states them, inputs first, outputs last
  int num_outputs = 1;
  std::vector<PreparedConstant> prepared;
  int64_t scratch_bytes = 0;         // shared, for one call
  int64_t thread_scratch_bytes = 0;  // for each thread
  std::vector<ScratchArea> areas;    // of a device
  std::vector<KernelLaunch> launches;
  // In the order of HoneCall::dims. Shapes and bytes of the tensors, and scratch, are what the greatest ones take.
  std::vector<KernelSize> sizes = {};
};

// A compact, versioned binary form, for hand-over between processes and for bundles.
std::string Serialize(const KernelSet& set);
// False when the bytes are not a kernel set; `*error` says why.
bool Parse(const std::string& bytes, KernelSet* set, std::string* error);

}  // namespace hone
