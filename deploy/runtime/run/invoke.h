// Runs one task's kernels from an image on buffers that the caller owns. The runner, the packager and tests use it.
//
//   Image image = ...;  KernelSet set = ...;
//   RuntimeResult<Invocation> invocation = Invocation::Create(image, set, pool);
//   invocation->Prepare(tensors);              // packs the constant operands, once
//   invocation->Bind(tensors);                 // whenever a pointer changes
//   invocation->Run();                         // again and again; allocates nothing
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "deploy/runtime/bundle/aligned_buffer.h"
#include "deploy/runtime/error.h"
#include "deploy/runtime/image/image.h"
#include "deploy/runtime/image/kernel_set.h"
#include "deploy/runtime/kernel_abi.h"
#include "deploy/runtime/run/thread_pool.h"

namespace hone {

// Calls one kernel with the pool's threads. `scratch` and `thread_scratch` must hold what the kernel set states.
struct KernelCall {
  HoneKernelFn fn = nullptr;
  std::span<void* const> tensors;
  void* scratch = nullptr;
  void* thread_scratch = nullptr;
  int64_t thread_scratch_stride = 0;
  std::span<const int64_t> dims = {};  // values of the symbolic sizes
  // Who runs its parallel loops in place of the pool, and what that is handed as `pool`.
  struct {
    int32_t (*run)(void* pool, HoneTaskFn fn, void* closure, int64_t extent) = nullptr;
    void* pool = nullptr;
  } parallel_for = {};
};
int32_t CallKernel(const KernelCall& call, ThreadPool& pool);

class Invocation {
 public:
  // Finds the symbols, allocates scratch and the packed constants. `image` and `pool` must outlive the result.
  // kInvalidArgument when a symbol is missing or the set contradicts itself, kOutOfMemory.
  static RuntimeResult<Invocation> Create(const Image& image, const KernelSet& set, ThreadPool& pool);

  // Runs the prepare kernels. `tensors` has one pointer for each of set.params, in their original form; only those of
  // prepared constants are read. kKernelFailed names the symbol and its result.
  RuntimeError Prepare(std::span<void* const> tensors);
  // One pointer for each of set.params, 64-byte aligned; those of prepared constants are ignored.
  void Bind(std::span<void* const> tensors);
  // The values of the main kernel's symbolic sizes, which the tensors have; none for a kernel without.
  void BindSizes(std::span<const int64_t> sizes) { sizes_.assign(sizes.begin(), sizes.end()); }
  // 0, or what the kernel returned. Prepare (where there is something to prepare) and Bind come first.
  int32_t Run();

  // The memory that kernels may leave anything in: shared, and of all threads.
  std::array<std::span<char>, 2> scratch() const {
    return {std::span(scratch_.data(), scratch_.size()), std::span(thread_scratch_.data(), thread_scratch_.size())};
  }
  // What the kernel reads or writes as set.params[param]: the packed form of a prepared constant, else what is bound.
  std::span<const char> operand(int param) const;

 private:
  KernelSet set_;
  ThreadPool* pool_ = nullptr;
  HoneKernelFn main_ = nullptr;
  std::vector<HoneKernelFn> prepare_;
  std::vector<AlignedBuffer> packed_;
  AlignedBuffer scratch_, thread_scratch_;
  int64_t thread_scratch_stride_ = 0;
  std::vector<void*> tensors_;
  std::vector<int64_t> sizes_;
};

}  // namespace hone
