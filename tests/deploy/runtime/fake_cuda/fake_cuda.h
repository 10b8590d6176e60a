// NVIDIA's driver and run-time compiler, of the tests' own: two libraries that have the entries which Hone uses, and
// run kernels on this CPU. Never installed; tests name them in HONE_CUDA_LIBRARY and HONE_NVRTC.
//
// The compiler takes the text as it is, and the driver has the C++ compiler of this machine make functions of it: what
// runs is the CUDA C++ that Hone prints. The driver is as unkind as NVIDIA's documentation lets it be:
//   - Work of a stream is done when somebody waits for it, and not before.
//   - Asynchronous copies of a kernel land when they are waited for.
//   - Memory is poisoned when it is allocated, and lies between pages that nobody may touch: a kernel that does loses
//     the device, and whoever waits hears it, as does every call that follows.
//   - A call without a current context, of a handle that is none, or out of a launch's limits, is refused.
//
// What it is told, in HONE_FAKE_CUDA or by hone_fake_cuda_reset, as words between blanks:
//   devices=2 memory=1000000 capability=8.0 driver=12040    what there is
//   fail=cuLaunchKernel:3:719      the third call of that entry returns that error; several may be given
//   count=/dev/shm/FILE            calls are counted over all processes that name the file, instead of in this one
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

void hone_fake_cuda_reset(const char* words);  // as if the process began, but for cuInit
int hone_fake_cuda_live(void);                 // contexts, modules, pieces of memory, streams, events, graphs there are
const char* hone_fake_cuda_calls(void);        // names of the entries called since the reset, between blanks
int hone_fake_cuda_count(const char* entry);   // how many of those are of that entry

#ifdef __cplusplus
}
#endif
