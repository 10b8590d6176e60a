// Memory and threads to run a bundle with. The C interface (hone_runtime.h) is a thin cover over it.
//
// Create places everything: one arena for inputs, outputs and intermediates, scratch, and for every step the call it
// makes, so that a run allocates nothing. Of a bundle for a device the arena is in the device's memory: a run copies
// inputs there and outputs back. One thread at a time.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "deploy/runtime/aligned_buffer.h"
#include "deploy/runtime/bundle.h"
#include "deploy/runtime/device_steps.h"
#include "deploy/runtime/thread_pool.h"

namespace hone {

class Instance {
 public:
  struct Options {
    int threads = 0;   // 0: what the bundle was tuned for, at most the CPUs allowed
    bool pin = false;  // each thread, the caller included, on a CPU of its own
  };
  static RuntimeResult<std::unique_ptr<Instance>> Create(std::shared_ptr<const Bundle> bundle, const Options& options);

  const Bundle& bundle() const { return *bundle_; }
  int threads() const { return pool_->threads(); }  // of the host

  // -1 when there is none of that name.
  int FindInput(std::string_view name) const;
  int FindOutput(std::string_view name) const;

  // Where the tensor lies now: the instance's own memory, or what was bound.
  const char* output(int i) const { return data_[bundle_->graph().outputs[i].tensor]; }
  // The instance's own memory for an input, to be written now; what was bound before is used no more.
  char* OwnInput(int i);
  // Memory of the caller's in place of the instance's: 64-byte aligned, as many bytes as the tensor has.
  void BindInput(int i, char* data);
  void BindOutput(int i, char* data);

  // kInvalidArgument names an input that was never set; kKernelFailed names step and result.
  RuntimeError Run();

  void set_profiling(bool on) { profiling_ = on; }
  double step_us(int step) const { return step_us_[step]; }  // of the last run, 0 when it was not profiled

 private:
  struct Call {
    HoneKernelFn fn;
    HoneCall call;
  };
  Instance() = default;
  RuntimeError PlaceOnHost();
  RuntimeError PlaceOnDevice();
  RuntimeError RunOnHost();
  void Rebind(int tensor, char* data);

  std::shared_ptr<const Bundle> bundle_;
  std::unique_ptr<ThreadPool> pool_;
  AlignedBuffer arena_, scratch_, thread_scratch_;
  std::unique_ptr<DeviceSteps> device_;  // of a bundle for one: it has the tensors, `arena_` its inputs and outputs
  std::vector<char*> own_;               // the instance's own memory of each tensor; null where only the device has it
  std::vector<char*> data_;              // where each tensor is now
  std::vector<void*> pointers_;          // the calls' tensors, one after another
  std::vector<Call> calls_;
  std::vector<char> input_set_;
  std::vector<double> step_us_;
  bool profiling_ = false;
};

}  // namespace hone
