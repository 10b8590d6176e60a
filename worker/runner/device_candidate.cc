#include "worker/runner/device_candidate.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "deploy/runtime/bundle/aligned_buffer.h"
#include "deploy/runtime/clock.h"
#include "worker/runner/poison.h"

namespace hone {
namespace {

// Buffers of the device; tensors and areas of scratch are parts of the first two.
enum : size_t { kFenced, kPlain, kFlush, kBuffers };
constexpr int64_t kFence = 4096;            // bytes, before and behind
constexpr int64_t kLeastFlushed = 8 << 20;  // of a device that does not tell the size of its cache
constexpr size_t kPatch = 64;

int64_t Aligned(int64_t bytes) {
  return static_cast<int64_t>(AlignUp(static_cast<size_t>(bytes), static_cast<size_t>(Device::kPartAlignment)));
}

void Fail(RunnerReply* reply, const RuntimeError& error) {
  switch (error.code()) {
    case RuntimeCode::kOutOfMemory: reply->outcome = RunnerOutcome::kOutOfMemory; break;
    case RuntimeCode::kInvalidArgument: reply->outcome = RunnerOutcome::kRefused; break;
    case RuntimeCode::kDeviceLost: reply->outcome = RunnerOutcome::kDeviceLost; break;
    default: reply->outcome = RunnerOutcome::kKernelFailed;
  }
  std::snprintf(reply->message, sizeof(reply->message), "%s", error.message().c_str());
}

}  // namespace

RuntimeResult<std::unique_ptr<ServedCandidate>> DeviceCandidate::Load(const LoadRequest& request,
                                                                      std::span<const int> files) {
  RuntimeResult<std::unique_ptr<Device>> device = OpenDevice(request.device, /*with_clock=*/true);
  if (!device.ok()) return RuntimeError(RuntimeCode::kNotFound, device.error().message());
  return LoadOn(*std::move(device), request, files);
}

RuntimeResult<std::unique_ptr<ServedCandidate>> DeviceCandidate::LoadOn(std::unique_ptr<Device> device,
                                                                        const LoadRequest& request,
                                                                        std::span<const int> files) {
  std::unique_ptr<DeviceCandidate> candidate(new DeviceCandidate);
  DeviceCandidate& self = *candidate;
  self.device_ = std::move(device);
  RuntimeResult<KernelSet> set = ReadKernelSet(files[1]);
  if (!set.ok()) return set.error();
  self.set_ = *std::move(set);
  if (self.set_.launches.empty())
    return RuntimeError(RuntimeCode::kInvalidArgument, "kernel set: it has no launches, so it is none for a device");
  RuntimeResult<std::string> text = ReadMemoryFile(files[0], "the kernels");
  if (!text.ok()) return text.error();
  if (RuntimeError error = self.device_->Build({&*text, 1})) return error;
  RuntimeResult<std::vector<TensorSet>> sets = MapTensorSets(self.set_, request.sets, files[2], files[3]);
  if (!sets.ok()) return sets.error();
  self.sets_ = *std::move(sets);
  if (RuntimeError error = self.PlaceTensors()) return error;
  // Drivers compile for the size of a block when it is first launched: here, where there is time for it.
  if (RuntimeError error = self.WriteInputs(0, 0)) return error;
  if (RuntimeError error = self.RunOnce(self.plain_launches_)) return error;
  if (RuntimeError error = self.device_->Finish()) return error;
  return std::unique_ptr<ServedCandidate>(std::move(candidate));
}

DeviceCandidate::Layout DeviceCandidate::LayOut(int64_t fence) const {
  Layout layout{{}, fence};
  for (const int64_t bytes : sizes_) {
    layout.offsets.push_back(layout.bytes);
    layout.bytes = Aligned(layout.bytes + bytes) + fence;
  }
  return layout;
}

RuntimeError DeviceCandidate::PlaceTensors() {
  for (const KernelTensor& param : set_.params) sizes_.push_back(param.bytes);
  for (const ScratchArea& area : set_.areas) sizes_.push_back(area.bytes);
  fenced_ = LayOut(kFence);
  plain_ = LayOut(0);
  std::vector<Device::Part> parts;
  for (const auto& [buffer, layout] : {std::pair(kFenced, &fenced_), std::pair(kPlain, &plain_)}) {
    for (size_t i = 0; i < sizes_.size(); ++i) parts.push_back({buffer, layout->offsets[i], sizes_[i]});
  }
  const int64_t bytes[kBuffers] = {fenced_.bytes, plain_.bytes,
                                   std::max(kLeastFlushed, 2 * device_->facts().cache_bytes)};
  if (RuntimeError error = device_->Allocate(bytes, parts)) return error;
  fenced_launches_ = LaunchesOn(kBuffers);
  plain_launches_ = LaunchesOn(kBuffers + sizes_.size());
  image_.resize(static_cast<size_t>(fenced_.bytes));
  return {};
}

std::vector<Device::Launch> DeviceCandidate::LaunchesOn(size_t first_part) const {
  std::vector<Device::Launch> launches;
  for (const KernelLaunch& launch : set_.launches) {
    launches.push_back({launch.kernel, launch.grid, launch.block, {}, launch.shared_bytes});
    for (const int argument : launch.arguments)
      launches.back().buffers.push_back(first_part + static_cast<size_t>(argument));
  }
  return launches;
}

RuntimeError DeviceCandidate::RunOnce(const std::vector<Device::Launch>& launches) {
  for (const Device::Launch& launch : launches) {
    if (RuntimeError error = device_->Start(launch)) return error;
  }
  return {};
}

void DeviceCandidate::Verify(const VerifyRequest& request, RunnerReply* reply) {
  if (request.set < 0 || request.set >= static_cast<int>(sets_.size()))
    return Fail(reply, {RuntimeCode::kInvalidArgument, "there is no set " + std::to_string(request.set)});
  Poison(image_.data(), image_.size(), request.set);
  for (size_t i = 0; i < inputs(); ++i)
    std::memcpy(&image_[static_cast<size_t>(fenced_.offsets[i])], input(request.set, i),
                static_cast<size_t>(sizes_[i]));
  // What the agent left in the outputs: poison, or zeros.
  const TensorSet& set = sets_[static_cast<size_t>(request.set)];
  for (size_t i = inputs(); i < params(); ++i)
    std::memcpy(&image_[static_cast<size_t>(fenced_.offsets[i])], set.originals[i], static_cast<size_t>(sizes_[i]));
  RuntimeError error = device_->Write(kFenced, image_.data(), fenced_.bytes);
  const double start = NowUs();
  if (error.ok()) error = RunOnce(fenced_launches_);
  if (error.ok()) error = device_->Finish();
  reply->elapsed_us = NowUs() - start;
  if (error.ok()) error = device_->Read(kFenced, image_.data(), fenced_.bytes);
  if (error) return Fail(reply, error);
  if (const std::string harm = WhatWasHarmed(request.set); !harm.empty())
    return Fail(reply, {RuntimeCode::kKernelFailed, harm});
  for (size_t i = inputs(); i < params(); ++i)
    std::memcpy(set.originals[i], &image_[static_cast<size_t>(fenced_.offsets[i])], static_cast<size_t>(sizes_[i]));
}

std::string DeviceCandidate::WhatWasHarmed(int set) const {
  const auto name = [&](size_t i) {
    if (i < inputs()) return "input " + std::to_string(i);
    return i < params() ? "output " + std::to_string(i - inputs()) : "scratch " + std::to_string(i - params());
  };
  size_t behind = 0;  // of the memory before the tensor, where it ends
  for (size_t i = 0; i <= sizes_.size(); ++i) {
    const size_t at = i < sizes_.size() ? static_cast<size_t>(fenced_.offsets[i]) : image_.size();
    if (!IsPoisoned(image_.data(), behind, at, set)) {
      // The half that is nearer to it.
      const bool past = i > 0 && (i == sizes_.size() || !IsPoisoned(image_.data(), behind, (behind + at) / 2, set));
      return past ? "wrote past the end of " + name(i - 1) : "wrote before " + name(i);
    }
    if (i == sizes_.size()) break;
    behind = at + static_cast<size_t>(sizes_[i]);
    if (i < inputs() && std::memcmp(&image_[at], input(set, i), static_cast<size_t>(sizes_[i])) != 0)
      return "wrote within " + name(i);
  }
  return "";
}

RuntimeError DeviceCandidate::WriteInputs(int set, uint64_t turn) {
  for (size_t i = 0; i < inputs(); ++i) {
    CopyTurned(input(set, i), set_.params[i], turn, image_.data());
    if (RuntimeError error = device_->Write(kPlain, image_.data(), sizes_[i], plain_.offsets[i])) return error;
  }
  written_set_ = set;
  written_turn_ = turn;
  return {};
}

// The same transfers in the same order for both kinds, so that the device's caches hold the same afterwards.
RuntimeError DeviceCandidate::Renew(const TimeRequest& request, int call) {
  const bool unseen = request.renewal == Renewal::kUnseen;
  for (size_t i = inputs(); i < sizes_.size(); ++i) {
    if (RuntimeError error = device_->Read(kPlain, image_.data(), sizes_[i], plain_.offsets[i])) return error;
    if (unseen) Poison(image_.data(), static_cast<size_t>(sizes_[i]), 0);
    if (RuntimeError error = device_->Write(kPlain, image_.data(), sizes_[i], plain_.offsets[i])) return error;
  }
  return WriteInputs(request.set, unseen ? request.turn * static_cast<uint64_t>(call + 1) : written_turn_);
}

RuntimeError DeviceCandidate::PoisonPatches(uint64_t where) {
  for (size_t i = inputs(); i < params(); ++i) {
    const auto bytes = static_cast<size_t>(sizes_[i]);
    if (bytes == 0) continue;
    const size_t at = where % (bytes + kPatch - 1) / kPatch * kPatch;
    char patch[kPatch];
    Poison(patch, kPatch, 0);
    const size_t length = std::min(kPatch, bytes - std::min(at, bytes - 1));
    const int64_t offset = plain_.offsets[i] + static_cast<int64_t>(at);
    if (RuntimeError error = device_->Write(kPlain, patch, static_cast<int64_t>(length), offset)) return error;
  }
  return {};
}

// Twice as much as the cache holds goes through it. Not waited for: what is launched next follows it at once, so that
// no time passes between the clock's start and the launch.
RuntimeError DeviceCandidate::FlushCache() {
  const int64_t bytes = std::max(kLeastFlushed, 2 * device_->facts().cache_bytes);
  return device_->Copy(kFlush, kFlush, bytes / 2, 0, bytes / 2);
}

RuntimeResult<double> DeviceCandidate::TimeCalls(int calls) {
  device_->StartClock();
  for (int i = 0; i < calls; ++i) {
    if (RuntimeError error = RunOnce(plain_launches_)) return error;
  }
  RuntimeResult<std::vector<double>> laps = device_->StopClock();
  if (!laps.ok()) return laps.error();
  return laps->front();
}

RuntimeError DeviceCandidate::TimeSamples(const TimeRequest& request, RunnerReply* reply) {
  const bool one_by_one = request.renewal != Renewal::kNone || request.flushed != 0;
  for (int s = 0; s < request.samples; ++s) {
    const bool patched = request.copy_outputs != 0 && request.renewal == Renewal::kNone && s == request.samples - 1;
    double us = 0;
    // Calls that follow each other, the last of them alone where something is to be done before it.
    int left = request.inner;
    while (left > 0) {
      if (request.renewal != Renewal::kNone) {
        if (RuntimeError error = Renew(request, request.inner - left)) return error;
      }
      if (patched && left == 1) {
        if (RuntimeError error = PoisonPatches(request.turn)) return error;
      }
      if (request.flushed != 0) {
        if (RuntimeError error = FlushCache()) return error;
      }
      const int calls = one_by_one ? 1 : patched && left > 1 ? left - 1 : left;
      const RuntimeResult<double> took = TimeCalls(calls);
      if (!took.ok()) return took.error();
      us += *took;
      left -= calls;
    }
    reply->samples[s] = {us / request.inner, 0, 0};
  }
  return {};
}

RuntimeError DeviceCandidate::CopyOutputs(int set) {
  for (size_t i = inputs(); i < params(); ++i) {
    void* to = sets_[static_cast<size_t>(set)].originals[i];
    if (RuntimeError error = device_->Read(kPlain, to, sizes_[i], plain_.offsets[i])) return error;
  }
  return {};
}

void DeviceCandidate::Time(const TimeRequest& request, RunnerReply* reply) {
  const bool counts =
      request.samples >= 0 && request.samples <= kRunnerMaxSamples && request.inner >= 1 && request.warm_up >= 0;
  if (!counts || request.set < 0 || request.set >= static_cast<int>(sets_.size()) ||
      request.renewal > Renewal::kUnseen) {
    return Fail(reply, {RuntimeCode::kInvalidArgument, "a number of samples, repeats, or of a set is out of range"});
  }
  // Values that were turned stay as they are for kSame; everything else is about the values of the set.
  const bool turned_stay = request.renewal == Renewal::kSame && written_set_ == request.set;
  RuntimeError error;
  if (!turned_stay && (written_set_ != request.set || written_turn_ != 0)) error = WriteInputs(request.set, 0);
  const double begin = NowUs();
  for (int i = 0; i < request.warm_up && error.ok(); ++i) error = RunOnce(plain_launches_);
  if (error.ok()) error = device_->Finish();
  if (error.ok()) error = TimeSamples(request, reply);
  reply->elapsed_us = NowUs() - begin;
  if (error.ok() && request.copy_outputs != 0) error = CopyOutputs(request.set);
  if (error) return Fail(reply, error);
  reply->num_samples = request.samples;
}

}  // namespace hone
