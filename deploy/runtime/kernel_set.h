// What a compiled task consists of: a main kernel, and `prepare` kernels that pack its constant operands once.
// The compiler fills it, worker and bundle carry it, the runtime follows it.
#pragma once

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

struct KernelSet {
  std::string symbol;                // the main kernel: its tensors are `params`, packed ones in their packed form
  std::vector<KernelTensor> params;  // as the task states them, inputs first, outputs last
  int num_outputs = 1;
  std::vector<PreparedConstant> prepared;
  int64_t scratch_bytes = 0;         // shared, for one call
  int64_t thread_scratch_bytes = 0;  // for each thread
};

// A compact, versioned binary form, for hand-over between processes and for bundles.
std::string Serialize(const KernelSet& set);
// False when the bytes are not a kernel set; `*error` says why.
bool Parse(const std::string& bytes, KernelSet* set, std::string* error);

}  // namespace hone
