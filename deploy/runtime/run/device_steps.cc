#include "deploy/runtime/run/device_steps.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hone {
namespace {

// Buffers of the device; tensors and areas of scratch are parts of them.
enum : size_t { kArena, kParams, kScratch, kBuffers };

}  // namespace

RuntimeResult<std::unique_ptr<DeviceSteps>> DeviceSteps::Create(const Bundle& bundle) {
  std::unique_ptr<DeviceSteps> steps(new DeviceSteps(bundle));
  RuntimeResult<std::unique_ptr<Device>> device = OpenDevice(bundle.graph().target, /*with_clock=*/true);
  if (!device.ok()) return device.error().Annotate("made for " + bundle.graph().target);
  steps->device_ = *std::move(device);
  if (RuntimeError error = steps->device_->Build(bundle.sources())) {
    const bool refused = error.code() == RuntimeCode::kInvalidArgument;
    return refused ? RuntimeError(RuntimeCode::kUnsupported, error.message()) : error;
  }
  if (RuntimeError error = steps->Allocate()) return error;
  return steps;
}

RuntimeError DeviceSteps::Allocate() {
  const BundleGraph& graph = bundle_.graph();
  int64_t params = 0, scratch = 0;
  std::vector<Device::Part> parts;
  for (const BundleTensor& tensor : graph.tensors) {
    const bool constant = tensor.region == BundleTensor::kParams;
    if (constant) params = std::max(params, tensor.offset + tensor.bytes);
    buffer_of_tensor_.push_back(kBuffers + parts.size());
    parts.push_back({constant ? kParams : kArena, tensor.offset, tensor.bytes});
  }
  std::vector<size_t> first_area;  // of each kernel
  for (const BundleKernel& kernel : graph.kernels) {
    first_area.push_back(kBuffers + parts.size());
    for (const ScratchArea& area : kernel.scratch) parts.push_back({kScratch, area.offset, area.bytes});
    scratch = std::max(scratch, kernel.scratch_bytes);
  }
  const int64_t bytes[kBuffers] = {graph.arena_bytes, params, scratch};
  if (RuntimeError error = device_->Allocate(bytes, parts)) return error;
  for (const BundleStep& step : graph.steps) {
    const size_t kernel = static_cast<size_t>(step.kernel);
    std::vector<Device::Launch>& launches = launches_.emplace_back();
    for (const KernelLaunch& launch : graph.kernels[kernel].launches) {
      launches.push_back({launch.kernel, launch.grid, launch.block, {}, launch.shared_bytes});
      for (const int argument : launch.arguments) {
        const size_t at = static_cast<size_t>(argument), tensors = step.tensors.size();
        launches.back().buffers.push_back(at < tensors ? buffer_of_tensor_[static_cast<size_t>(step.tensors[at])]
                                                       : first_area[kernel] + at - tensors);
      }
    }
  }
  return device_->Write(kParams, bundle_.params(), params);
}

RuntimeError DeviceSteps::StartStep(size_t step) {
  for (const Device::Launch& launch : launches_[step]) {
    if (RuntimeError error = device_->Start(launch)) return error;
  }
  return {};
}

RuntimeError DeviceSteps::StartSteps(bool with_laps) {
  const BundleGraph& graph = bundle_.graph();
  for (size_t s = 0; s < launches_.size(); ++s) {
    RuntimeError error = StartStep(s);
    if (error.ok() && with_laps) error = device_->EndLap();
    if (error.ok()) continue;
    const BundleKernel& kernel = graph.kernels[static_cast<size_t>(graph.steps[s].kernel)];
    return error.Annotate("step " + std::to_string(s) + ", kernel `" + kernel.name + "`");
  }
  return {};
}

RuntimeError DeviceSteps::StartCopies() {
  const BundleGraph& graph = bundle_.graph();
  for (const BundleCopy& copy : graph.copies) {
    const size_t from = static_cast<size_t>(copy.from), to = static_cast<size_t>(copy.to);
    if (RuntimeError error = device_->Copy(buffer_of_tensor_[from], buffer_of_tensor_[to], graph.tensors[to].bytes))
      return error;
  }
  return {};
}

RuntimeError DeviceSteps::StartAll() {
  const auto one_by_one = [this] {
    const RuntimeError error = StartSteps(/*with_laps=*/false);
    return error ? error : StartCopies();
  };
  if (handed_ == Handed::kSecond) {
    const RuntimeError error = device_->KeepSequence(one_by_one);
    if (error && error.code() != RuntimeCode::kUnsupported) return error;
    handed_ = error ? Handed::kOneByOne : Handed::kAtOnce;
  }
  if (handed_ == Handed::kAtOnce) return device_->StartSequence();
  const RuntimeError error = one_by_one();
  if (error.ok() && handed_ == Handed::kFirst) handed_ = Handed::kSecond;
  return error;
}

RuntimeError DeviceSteps::StartTimed(std::vector<double>* step_us) {
  device_->StartClock();
  if (RuntimeError error = StartSteps(/*with_laps=*/true)) return error;
  if (!launches_.empty()) {
    RuntimeResult<std::vector<double>> laps = device_->StopClock();
    if (!laps.ok()) return laps.error();
    *step_us = *std::move(laps);
  }
  return StartCopies();
}

RuntimeError DeviceSteps::Run(const std::vector<char*>& data, std::vector<double>* step_us) {
  const BundleGraph& graph = bundle_.graph();
  const auto bytes = [&](int tensor) { return graph.tensors[static_cast<size_t>(tensor)].bytes; };
  const auto buffer = [&](int tensor) { return buffer_of_tensor_[static_cast<size_t>(tensor)]; };
  for (const BundlePort& input : graph.inputs) {
    const char* from = data[static_cast<size_t>(input.tensor)];
    if (RuntimeError error = device_->Write(buffer(input.tensor), from, bytes(input.tensor))) return error;
  }
  if (RuntimeError error = step_us != nullptr ? StartTimed(step_us) : StartAll()) return error;
  if (RuntimeError error = device_->Finish()) { return error.Annotate("the device stopped within a run"); }
  for (const BundlePort& output : graph.outputs) {
    char* to = data[static_cast<size_t>(output.tensor)];
    if (RuntimeError error = device_->Read(buffer(output.tensor), to, bytes(output.tensor))) return error;
  }
  return {};
}

}  // namespace hone
