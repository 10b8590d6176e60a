#include "deploy/runtime/instance.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace hone {
namespace {

double NowUs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

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
  int threads = options.threads;
  if (threads == 0 && graph.threads > 0) threads = std::min(graph.threads, static_cast<int>(AllowedCpus().size()));
  RuntimeResult<std::unique_ptr<ThreadPool>> pool =
      ThreadPool::Create({.threads = threads, .pin_workers = options.pin, .pin_caller = options.pin});
  if (!pool.ok()) return pool.error();

  std::unique_ptr<Instance> instance(new Instance);
  Instance& self = *instance;
  self.pool_ = *std::move(pool);
  int64_t scratch = 0, thread_scratch = 0;
  for (const BundleKernel& kernel : graph.kernels) {
    scratch = std::max(scratch, kernel.scratch_bytes);
    thread_scratch = std::max(thread_scratch, kernel.thread_scratch_bytes);
  }
  const int64_t stride = static_cast<int64_t>(AlignUp(thread_scratch));
  if (RuntimeError error = Allocate(graph.arena_bytes, "tensors", &self.arena_)) return error;
  if (RuntimeError error = Allocate(scratch, "scratch", &self.scratch_)) return error;
  if (RuntimeError error = Allocate(stride * self.pool_->threads(), "scratch", &self.thread_scratch_)) return error;

  for (const BundleTensor& tensor : graph.tensors) {
    // Constants are only read: the plan never lists one as an output of a step.
    char* base = tensor.region == BundleTensor::kArena ? self.arena_.data() : const_cast<char*>(bundle->params());
    self.data_.push_back(base + tensor.offset);
  }
  for (const BundleStep& step : graph.steps) {
    for (const int tensor : step.tensors) self.pointers_.push_back(self.data_[tensor]);
  }
  void* const* tensors = self.pointers_.data();  // from here on the vector does not grow
  for (const BundleStep& step : graph.steps) {
    HoneCall call{};
    call.tensors = tensors;
    call.scratch = self.scratch_.data();
    call.thread_scratch = self.thread_scratch_.data();
    call.thread_scratch_stride = stride;
    call.num_threads = self.pool_->threads();
    call.parallel_for = &ThreadPool::ParallelFor;
    call.pool = self.pool_.get();
    self.calls_.push_back({bundle->kernel(step.kernel), call});
    tensors += step.tensors.size();
  }
  self.input_set_.assign(graph.inputs.size(), 0);
  self.step_us_.assign(graph.steps.size(), 0.0);
  self.bundle_ = std::move(bundle);
  return instance;
}

int Instance::FindInput(std::string_view name) const { return FindPort(bundle_->graph().inputs, name); }
int Instance::FindOutput(std::string_view name) const { return FindPort(bundle_->graph().outputs, name); }

void Instance::Rebind(int tensor, char* data) {
  data_[tensor] = data;
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
  char* own = arena_.data() + bundle_->graph().tensors[tensor].offset;
  if (data_[tensor] != own) Rebind(tensor, own);
  input_set_[i] = true;
  return own;
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
