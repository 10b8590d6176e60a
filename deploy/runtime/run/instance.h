// Memory and threads to run a bundle with. The C interface (hone_runtime.h) is a thin cover over it.
//
// Create places everything: one arena for inputs, outputs and intermediates, scratch, and for every step the call it
// makes, so that a run allocates nothing. Of a bundle for a device the arena is in the device's memory: a run copies
// inputs there and outputs back. One thread at a time; instances that share threads (kernel_threads.h) run in turn.
//
// Of a bundle with symbolic sizes (sizes.h) the shapes of the inputs, as they were set or bound last, are those of the
// run; Resolve says what the outputs' are then. All memory is there from the beginning, for the greatest sizes.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deploy/runtime/bundle/aligned_buffer.h"
#include "deploy/runtime/bundle/bundle.h"
#include "deploy/runtime/run/background_runs.h"
#include "deploy/runtime/run/device_steps.h"
#include "deploy/runtime/run/function_call.h"
#include "deploy/runtime/run/kernel_threads.h"

namespace hone {

class Instance {
 public:
  struct Options {
    int threads = 0;   // 0: what the bundle was tuned for, at most the CPUs allowed
    bool pin = false;  // each thread, the caller included, on a CPU of its own
    // In place of a pool of the instance's own, which the two above describe; unused by a bundle for a device.
    std::shared_ptr<KernelThreads> pool = nullptr;
    Allocator allocator = {};         // of tensors and scratch; its context outlives the instance
    ProgramFunctions functions = {};  // those that the bundle calls, and any others; contexts outlive the instance
  };
  // kInvalidArgument, besides what is wrong with the options, names functions that the bundle calls and that are not
  // there.
  static RuntimeResult<std::unique_ptr<Instance>> Create(std::shared_ptr<const Bundle> bundle, const Options& options);

  const Bundle& bundle() const { return *bundle_; }
  int threads() const { return threads_->threads(); }  // of the host

  // -1 when there is none of that name.
  int FindInput(std::string_view name) const;
  int FindOutput(std::string_view name) const;

  // Where the tensor lies now: the instance's own memory, or what was bound.
  const char* output(int i) const { return data_[bundle_->graph().outputs[i].tensor]; }
  // "" when a tensor of this shape can be the input; else what is wrong.
  std::string InputMismatch(int i, std::span<const int64_t> shape) const;
  // The instance's own memory for an input of this shape, to be written now; what was bound before is used no more.
  char* OwnInput(int i, std::span<const int64_t> shape);
  char* OwnInput(int i) { return OwnInput(i, bundle_->graph().inputs[i].shape); }  // of its greatest shape
  // Memory of the caller's in place of the instance's: 64-byte aligned, as many bytes as the tensor has. An output's
  // shape is that of the next run.
  void BindInput(int i, std::span<const int64_t> shape, char* data);
  void BindInput(int i, char* data) { BindInput(i, bundle_->graph().inputs[i].shape, data); }
  void BindOutput(int i, char* data);

  // Takes the sizes of the run from the shapes of the inputs. kInvalidArgument names an input that was never set, or
  // one that does not agree with the others.
  RuntimeError Resolve();
  // Of the last Resolve; without symbolic sizes always the same.
  std::span<const int64_t> output_shape(int i) const { return output_shapes_[i]; }

  // Resolve's errors; kInvalidArgument names an output that is bound to memory of another shape than it has now;
  // kKernelFailed names step and result, or what a function of the program's said; kBusy.
  RuntimeError Run();

  // The same without waiting: BackgroundRuns' Start, Wait and running. While a run is under way the instance and what
  // is bound are its own: nothing here but `running`, `Wait`, `set_profiling` and what never changes is called. The
  // destructor waits for it.
  RuntimeError StartRun(BackgroundRuns::Callback callback) { return background_->Start(std::move(callback)); }
  RuntimeError Wait() { return background_->Wait(); }
  bool running() const { return background_->running(); }

  void set_profiling(bool on) { profiling_.store(on, std::memory_order_relaxed); }  // of runs that begin from now on
  double step_us(int step) const { return step_us_[step]; }  // of the last run, 0 when it was not profiled
  int step_kernel(int step) const;                           // which the last run called; no step that is a call

 private:
  struct Call {  // of a step or of one of its cases
    HoneKernelFn fn;
    HoneCall call;
    int kernel;
  };
  struct StepCalls {
    size_t first = 0;   // in calls_: the step's own, then those of its cases
    size_t chosen = 0;  // in calls_, for the sizes of the run
  };
  Instance() = default;
  RuntimeError PlaceOnHost(const Allocator& allocator);
  RuntimeError PlaceOnDevice(const Allocator& allocator);
  void PlaceCalls(int64_t thread_scratch_stride);
  RuntimeError RunNow();
  RuntimeError RunOnHost(bool profiling);
  RuntimeError RunKernel(size_t step);
  void Rebind(int tensor, char* data);
  void SetShape(int i, std::span<const int64_t> shape);
  RuntimeError FindSizes();
  RuntimeError FindOutputShapes();
  RuntimeError CheckBoundOutputs() const;
  void ChooseCalls();

  std::shared_ptr<const Bundle> bundle_;
  std::shared_ptr<KernelThreads> threads_;
  AlignedBuffer arena_, scratch_, thread_scratch_;
  std::unique_ptr<DeviceSteps> device_;  // of a bundle for one: it has the tensors, `arena_` its inputs and outputs
  std::vector<char*> own_;               // the instance's own memory of each tensor; null where only the device has it
  std::vector<char*> data_;              // where each tensor is now
  std::vector<void*> pointers_;          // the calls' tensors, one after another
  std::vector<int> pointer_tensors_;     // which tensor each is
  std::vector<int64_t> dims_;            // the calls' sizes, one after another
  std::vector<Call> calls_;
  std::vector<StepCalls> steps_;
  std::map<size_t, FunctionCall> function_calls_;  // of the steps that are calls
  std::vector<char> input_set_;
  std::vector<int64_t> sizes_;  // of the run
  std::vector<int64_t> copy_bytes_;
  std::vector<std::vector<int64_t>> input_shapes_, output_shapes_;
  std::vector<std::vector<int64_t>> bound_shapes_;  // of the outputs that are bound
  bool resolved_ = false;
  std::vector<double> step_us_;
  std::atomic<bool> profiling_ = false;
  std::unique_ptr<BackgroundRuns> background_;  // last: it waits for a run, which uses all the others
};

}  // namespace hone
