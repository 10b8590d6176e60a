#include "deploy/runtime/instance.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "deploy/runtime/clock.h"

namespace hone {
namespace {

int FindPort(const std::vector<BundlePort>& ports, std::string_view name) {
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// Zeroed, so that its pages are there before the first run.
RuntimeError Allocate(size_t bytes, const char* what, AlignedBuffer* buffer) {
  *buffer = AlignedBuffer(bytes);
  if (buffer->data() == nullptr) {
    return {RuntimeCode::kOutOfMemory, "no memory for " + std::to_string(bytes) + " bytes of " + what};
  }
  std::memset(buffer->data(), 0, bytes);
  return {};
}

}  // namespace

RuntimeResult<std::unique_ptr<Instance>> Instance::Create(std::shared_ptr<const Bundle> bundle,
                                                          const Options& options) {
  const BundleGraph& graph = bundle->graph();
  const bool on_device = !graph.device.empty();
  int threads = on_device ? 1 : options.threads;
  if (threads == 0 && graph.threads > 0) threads = std::min(graph.threads, static_cast<int>(AllowedCpus().size()));
  RuntimeResult<std::unique_ptr<ThreadPool>> pool =
      ThreadPool::Create({.threads = threads, .pin_workers = options.pin, .pin_caller = options.pin});
  if (!pool.ok()) return pool.error();

  std::unique_ptr<Instance> instance(new Instance);
  Instance& self = *instance;
  self.pool_ = *std::move(pool);
  self.input_set_.assign(graph.inputs.size(), 0);
  self.step_us_.assign(graph.steps.size(), 0.0);
  self.bundle_ = std::move(bundle);
  if (RuntimeError error = on_device ? self.PlaceOnDevice() : self.PlaceOnHost()) return error;
  self.data_ = self.own_;
  return instance;
}

RuntimeError Instance::PlaceOnHost() {
  const BundleGraph& graph = bundle_->graph();
  int64_t scratch = 0, thread_scratch = 0;
  for (const BundleKernel& kernel : graph.kernels) {
    scratch = std::max(scratch, kernel.scratch_bytes);
    thread_scratch = std::max(thread_scratch, kernel.thread_scratch_bytes);
  }
  const int64_t stride = static_cast<int64_t>(AlignUp(thread_scratch));
  if (RuntimeError error = Allocate(graph.arena_bytes, "tensors", &arena_)) return error;
  if (RuntimeError error = Allocate(scratch, "scratch", &scratch_)) return error;
  if (RuntimeError error = Allocate(stride * pool_->threads(), "scratch", &thread_scratch_)) return error;

  for (const BundleTensor& tensor : graph.tensors) {
    // Constants are only read: the plan never lists one as an output of a step.
    char* base = tensor.region == BundleTensor::kArena ? arena_.data() : const_cast<char*>(bundle_->params());
    own_.push_back(base + tensor.offset);
  }
  for (const BundleStep& step : graph.steps) {
    for (const int tensor : step.tensors) pointers_.push_back(own_[tensor]);
  }
  void* const* tensors = pointers_.data();  // from here on the vector does not grow
  for (const BundleStep& step : graph.steps) {
    HoneCall call{};
    call.tensors = tensors;
    call.scratch = scratch_.data();
    call.thread_scratch = thread_scratch_.data();
    call.thread_scratch_stride = stride;
    call.num_threads = pool_->threads();
    call.parallel_for = &ThreadPool::ParallelFor;
    call.pool = pool_.get();
    calls_.push_back({bundle_->kernel(step.kernel), call});
    tensors += step.tensors.size();
  }
  return {};
}

RuntimeError Instance::PlaceOnDevice() {
  const BundleGraph& graph = bundle_->graph();
  std::vector<size_t> offsets(graph.tensors.size(), 0);
  size_t bytes = 0;
  for (const auto* ports : {&graph.inputs, &graph.outputs}) {
    for (const BundlePort& port : *ports) {
      offsets[port.tensor] = bytes;
      bytes += AlignUp(static_cast<size_t>(graph.tensors[port.tensor].bytes));
    }
  }
  if (RuntimeError error = Allocate(bytes, "inputs and outputs", &arena_)) return error;
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
  size_t at = 0;
  for (const BundleStep& step : bundle_->graph().steps) {
    for (const int used : step.tensors) {
      if (used == tensor) pointers_[at] = data;
      ++at;
    }
  }
}

char* Instance::OwnInput(int i) {
  const int tensor = bundle_->graph().inputs[i].tensor;
  if (data_[tensor] != own_[tensor]) Rebind(tensor, own_[tensor]);
  input_set_[i] = true;
  return own_[tensor];
}

void Instance::BindInput(int i, char* data) {
  Rebind(bundle_->graph().inputs[i].tensor, data);
  input_set_[i] = true;
}

void Instance::BindOutput(int i, char* data) { Rebind(bundle_->graph().outputs[i].tensor, data); }

RuntimeError Instance::Run() {
  const BundleGraph& graph = bundle_->graph();
  for (size_t i = 0; i < input_set_.size(); ++i) {
    if (!input_set_[i]) {
      return {RuntimeCode::kInvalidArgument,
              "input `" + graph.inputs[i].name + "` has not been set; set or bind it before the run"};
    }
  }
  return device_ != nullptr ? device_->Run(data_, profiling_ ? &step_us_ : nullptr) : RunOnHost();
}

RuntimeError Instance::RunOnHost() {
  const BundleGraph& graph = bundle_->graph();
  const bool profiling = profiling_;
  double before = profiling ? NowUs() : 0;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const int32_t result = calls_[i].fn(&calls_[i].call);
    if (result != 0) {
      return {RuntimeCode::kKernelFailed, "step " + std::to_string(i) + ", kernel `" +
                                              graph.kernels[graph.steps[i].kernel].name + "`, returned " +
                                              std::to_string(result)};
    }
    if (profiling) {
      const double after = NowUs();
      step_us_[i] = after - before;
      before = after;
    }
  }
  for (const BundleCopy& copy : graph.copies) {
    std::memcpy(data_[copy.to], data_[copy.from], static_cast<size_t>(graph.tensors[copy.to].bytes));
  }
  return {};
}

}  // namespace hone
