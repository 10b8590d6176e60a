#include "deploy/runtime/run/instance.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "deploy/runtime/clock.h"

namespace hone {
namespace {

int FindPort(const std::vector<BundlePort>& ports, std::string_view name) {
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// So that its pages are there before the first run.
RuntimeError AllocateZeros(size_t bytes, const char* what, const Allocator& allocator, AlignedBuffer* buffer) {
  if (RuntimeError error = Allocate(bytes, what, allocator, buffer)) return error;
  std::memset(buffer->data(), 0, bytes);
  return {};
}

RuntimeResult<std::shared_ptr<KernelThreads>> ThreadsFor(const BundleGraph& graph, const Instance::Options& options) {
  if (options.pool != nullptr && (options.threads != 0 || options.pin)) {
    return RuntimeError(RuntimeCode::kInvalidArgument,
                        "the instance is given a pool of " + std::to_string(options.pool->threads()) +
                            " threads and also told how many to start or where; leave that zero, it is the pool's");
  }
  const bool on_device = !graph.device.empty();
  if (options.pool != nullptr && !on_device) return options.pool;
  int threads = on_device ? 1 : options.threads;
  if (threads == 0 && graph.threads > 0) threads = std::min(graph.threads, static_cast<int>(AllowedCpus().size()));
  return KernelThreads::OfPool({.threads = threads, .pin_workers = options.pin, .pin_caller = options.pin},
                               KernelThreads::Users::kOne);
}

std::string FailureText(int32_t result) {
  if (result != kTasksNotCalledOnce) return ", returned " + std::to_string(result);
  return ": the program's parallel_for returned and had not called every task exactly once";
}

}  // namespace

RuntimeResult<std::unique_ptr<Instance>> Instance::Create(std::shared_ptr<const Bundle> bundle,
                                                          const Options& options) {
  const BundleGraph& graph = bundle->graph();
  if (RuntimeError error = CheckFunctions(graph, options.functions)) return error;
  RuntimeResult<std::shared_ptr<KernelThreads>> threads = ThreadsFor(graph, options);
  if (!threads.ok()) return threads.error();

  std::unique_ptr<Instance> instance(new Instance);
  Instance& self = *instance;
  self.threads_ = *std::move(threads);
  self.input_set_.assign(graph.inputs.size(), 0);
  self.step_us_.assign(graph.steps.size(), 0.0);
  for (const BundlePort& port : graph.inputs) self.input_shapes_.push_back(port.shape);
  for (const BundlePort& port : graph.outputs) self.output_shapes_.push_back(port.shape);
  for (const BundleCopy& copy : graph.copies) self.copy_bytes_.push_back(graph.tensors[copy.to].bytes);
  for (const BundleSize& size : graph.sizes) self.sizes_.push_back(size.max);
  self.bound_shapes_.resize(graph.outputs.size());
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    const BundleStep& step = graph.steps[s];
    if (step.is_call()) self.function_calls_.try_emplace(s, step, options.functions.at(step.function));
  }
  self.bundle_ = std::move(bundle);
  RuntimeError error =
      graph.device.empty() ? self.PlaceOnHost(options.allocator) : self.PlaceOnDevice(options.allocator);
  if (error) return error;
  self.data_ = self.own_;
  self.background_ = std::make_unique<BackgroundRuns>([&self] { return self.RunNow(); }, options.pin);
  return instance;
}

RuntimeError Instance::PlaceOnHost(const Allocator& allocator) {
  const BundleGraph& graph = bundle_->graph();
  int64_t scratch = 0, thread_scratch = 0;
  for (const BundleKernel& kernel : graph.kernels) {
    scratch = std::max(scratch, kernel.scratch_bytes);
    thread_scratch = std::max(thread_scratch, kernel.thread_scratch_bytes);
  }
  const int64_t stride = static_cast<int64_t>(AlignUp(thread_scratch));
  const int64_t all_threads = stride * threads_->threads();
  if (RuntimeError error = AllocateZeros(graph.arena_bytes, "tensors", allocator, &arena_)) return error;
  if (RuntimeError error = AllocateZeros(scratch, "scratch", allocator, &scratch_)) return error;
  if (RuntimeError error = AllocateZeros(all_threads, "scratch", allocator, &thread_scratch_)) return error;

  for (const BundleTensor& tensor : graph.tensors) {
    // Constants are only read: the plan never lists one as an output of a step.
    char* base = tensor.region == BundleTensor::kArena ? arena_.data() : const_cast<char*>(bundle_->params());
    own_.push_back(base + tensor.offset);
  }
  PlaceCalls(stride);
  return {};
}

void Instance::PlaceCalls(int64_t thread_scratch_stride) {
  const BundleGraph& graph = bundle_->graph();
  size_t dims = 0;
  const auto add = [&](int kernel, const std::vector<int>& tensors) {
    for (const int tensor : tensors) pointers_.push_back(own_[tensor]);
    pointer_tensors_.insert(pointer_tensors_.end(), tensors.begin(), tensors.end());
    dims += graph.kernels[kernel].sizes.size();
    calls_.push_back({bundle_->kernel(kernel), HoneCall{}, kernel});
  };
  for (const BundleStep& step : graph.steps) {
    steps_.push_back({calls_.size(), calls_.size()});
    if (step.is_call()) continue;
    add(step.kernel, step.tensors);
    for (const BundleCase& c : step.cases) add(c.kernel, c.tensors);
  }
  dims_.resize(dims);
  void* const* tensors = pointers_.data();  // from here on the vectors do not grow
  int64_t* sizes = dims_.data();
  for (Call& call : calls_) {
    call.call.tensors = tensors;
    call.call.dims = sizes;
    call.call.scratch = scratch_.data();
    call.call.thread_scratch = thread_scratch_.data();
    call.call.thread_scratch_stride = thread_scratch_stride;
    threads_->Serve(&call.call);
    tensors += graph.kernels[call.kernel].tensor_bytes.size();
    sizes += graph.kernels[call.kernel].sizes.size();
  }
}

RuntimeError Instance::PlaceOnDevice(const Allocator& allocator) {
  const BundleGraph& graph = bundle_->graph();
  std::vector<size_t> offsets(graph.tensors.size(), 0);
  size_t bytes = 0;
  for (const auto* ports : {&graph.inputs, &graph.outputs}) {
    for (const BundlePort& port : *ports) {
      offsets[port.tensor] = bytes;
      bytes += AlignUp(static_cast<size_t>(graph.tensors[port.tensor].bytes));
    }
  }
  if (RuntimeError error = AllocateZeros(bytes, "inputs and outputs", allocator, &arena_)) return error;
  own_.assign(graph.tensors.size(), nullptr);
  for (const auto* ports : {&graph.inputs, &graph.outputs}) {
    for (const BundlePort& port : *ports) own_[port.tensor] = arena_.data() + offsets[port.tensor];
  }
  RuntimeResult<std::unique_ptr<DeviceSteps>> device = DeviceSteps::Create(*bundle_);
  if (!device.ok()) return device.error();
  device_ = *std::move(device);
  return {};
}

int Instance::FindInput(std::string_view name) const { return FindPort(bundle_->graph().inputs, name); }
int Instance::FindOutput(std::string_view name) const { return FindPort(bundle_->graph().outputs, name); }

void Instance::Rebind(int tensor, char* data) {
  data_[tensor] = data;
  if (device_ != nullptr) return;  // it is copied from there, or to there
  for (size_t at = 0; at < pointers_.size(); ++at) {
    if (pointer_tensors_[at] == tensor) pointers_[at] = data;
  }
}

void Instance::SetShape(int i, std::span<const int64_t> shape) {
  input_set_[i] = true;
  if (std::equal(shape.begin(), shape.end(), input_shapes_[i].begin())) return;
  std::copy(shape.begin(), shape.end(), input_shapes_[i].begin());
  resolved_ = false;
}

char* Instance::OwnInput(int i, std::span<const int64_t> shape) {
  const int tensor = bundle_->graph().inputs[i].tensor;
  if (data_[tensor] != own_[tensor]) Rebind(tensor, own_[tensor]);
  SetShape(i, shape);
  return own_[tensor];
}

void Instance::BindInput(int i, std::span<const int64_t> shape, char* data) {
  Rebind(bundle_->graph().inputs[i].tensor, data);
  SetShape(i, shape);
}

void Instance::BindOutput(int i, char* data) {
  bound_shapes_[i] = output_shapes_[i];
  Rebind(bundle_->graph().outputs[i].tensor, data);
}

int Instance::step_kernel(int step) const {
  return device_ != nullptr ? bundle_->graph().steps[step].kernel : calls_[steps_[step].chosen].kernel;
}

RuntimeError Instance::Run() { return running() ? RunIsUnderWay() : RunNow(); }

RuntimeError Instance::RunNow() {
  if (RuntimeError error = Resolve()) return error;
  if (!sizes_.empty()) {
    if (RuntimeError error = CheckBoundOutputs()) return error;
  }
  const bool profiling = profiling_.load(std::memory_order_relaxed);
  return device_ != nullptr ? device_->Run(data_, profiling ? &step_us_ : nullptr) : RunOnHost(profiling);
}

RuntimeError Instance::RunKernel(size_t step) {
  const Call& call = calls_[steps_[step].chosen];
  const int32_t result = call.fn(&call.call);
  if (result == 0) return {};
  return {RuntimeCode::kKernelFailed,
          "kernel `" + bundle_->graph().kernels[call.kernel].name + "`" + FailureText(result)};
}

RuntimeError Instance::RunOnHost(bool profiling) {
  const BundleGraph& graph = bundle_->graph();
  std::optional<KernelThreads::Turn> turn(std::in_place, *threads_);
  double before = profiling ? NowUs() : 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    RuntimeError error;
    if (graph.steps[i].is_call()) {
      turn.reset();  // a function may run another instance on these threads
      error = function_calls_.at(i).Run(data_);
      turn.emplace(*threads_);
    } else {
      error = RunKernel(i);
    }
    if (error) return {error.code(), "step " + std::to_string(i) + ", " + error.message()};
    if (profiling) {
      const double after = NowUs();
      step_us_[i] = after - before;
      before = after;
    }
  }
  for (size_t c = 0; c < graph.copies.size(); ++c) {
    std::memcpy(data_[graph.copies[c].to], data_[graph.copies[c].from], static_cast<size_t>(copy_bytes_[c]));
  }
  return {};
}

}  // namespace hone
