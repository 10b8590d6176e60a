/* How a compiled kernel is called: by the runner that measures it and by a deployed bundle alike. Plain C.
 *
 * An image exports `int32_t kernel(const HoneCall*)`; 0 is success. Tensor pointers are 64-byte aligned, contiguous and
 * do not alias, inputs first, outputs last. The kernel reads and writes nothing past the end of a tensor. It calls back
 * only through `parallel_for`. An image has no undefined symbols and no writable data. */
#ifndef HONE_DEPLOY_RUNTIME_KERNEL_ABI_H_
#define HONE_DEPLOY_RUNTIME_KERNEL_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs iterations [begin, end) of a parallel loop on the thread with number `thread` in [0, num_threads). */
typedef int32_t (*HoneTaskFn)(void* closure, int64_t begin, int64_t end, int32_t thread);

typedef struct HoneCall {
  void* const* tensors; /* one pointer for each parameter of the kernel */
  const int64_t* dims;  /* values of the symbolic sizes, NULL when there are none */
  void* scratch;        /* scratch_bytes of the kernel, shared by its threads, 64-byte aligned */
  void* thread_scratch; /* num_threads areas; area t starts at t * thread_scratch_stride */
  int64_t thread_scratch_stride;
  int32_t num_threads;
  int32_t reserved;
  /* Splits [0, extent) into contiguous ranges, one for each thread, and returns when all are done: 0, or the first
   * non-zero result. Never nested. */
  int32_t (*parallel_for)(void* pool, HoneTaskFn fn, void* closure, int64_t extent);
  void* pool;
  void* stream; /* CUDA stream, NULL on a CPU */
} HoneCall;

typedef int32_t (*HoneKernelFn)(const HoneCall* call);

#ifdef __cplusplus
}
#endif
#endif
