// A candidate for a device inside its runner: the program as its driver compiles it, fenced memory for verification,
// plain memory for timing, both the device's. As of a deployed bundle, the text is compiled where it runs.
//
// A device has no pages that fault. Poisoned bytes stand around every tensor in their place: after a run on fenced
// memory they are looked at, and so are the inputs, which no kernel may change.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "deploy/runtime/devices/device.h"
#include "deploy/runtime/error.h"
#include "deploy/runtime/image/kernel_set.h"
#include "worker/runner/protocol.h"
#include "worker/runner/served_candidate.h"
#include "worker/runner/tensor_sets.h"

namespace hone {

class DeviceCandidate : public ServedCandidate {
 public:
  // `files`: the kernels as their driver takes them, kernel set, inputs and outputs. They stay the caller's. The
  // kernels run once on plain memory, so that what their driver does for a first launch is done. kNotFound where there
  // is no device of the request's.
  static RuntimeResult<std::unique_ptr<ServedCandidate>> Load(const LoadRequest& request, std::span<const int> files);
  // On a device that is open already, with a clock.
  static RuntimeResult<std::unique_ptr<ServedCandidate>> LoadOn(std::unique_ptr<Device> device,
                                                                const LoadRequest& request, std::span<const int> files);

  void Verify(const VerifyRequest& request, RunnerReply* reply) override;
  void Time(const TimeRequest& request, RunnerReply* reply) override;
  ServedCandidate::Place Describe(const void*) const override { return {}; }  // a driver's memory is not ours to name

 private:
  // One after another, where tensors and then areas of scratch lie in a buffer.
  struct Layout {
    std::vector<int64_t> offsets;
    int64_t bytes = 0;
  };
  DeviceCandidate() = default;
  RuntimeError PlaceTensors();
  Layout LayOut(int64_t fence) const;
  std::vector<Device::Launch> LaunchesOn(size_t first_part) const;
  size_t params() const { return set_.params.size(); }
  size_t inputs() const { return InputsOf(set_).size(); }
  const char* input(int set, size_t i) const {
    return static_cast<const char*>(sets_[static_cast<size_t>(set)].originals[i]);
  }

  RuntimeError RunOnce(const std::vector<Device::Launch>& launches);
  // "" where the bytes around tensors, and the inputs, are as they were before the run on a set.
  std::string WhatWasHarmed(int set) const;
  RuntimeError TimeSamples(const TimeRequest& request, RunnerReply* reply);
  RuntimeResult<double> TimeCalls(int calls);
  RuntimeError WriteInputs(int set, uint64_t turn);
  RuntimeError Renew(const TimeRequest& request, int call);
  RuntimeError PoisonPatches(uint64_t where);
  RuntimeError FlushCache();
  RuntimeError CopyOutputs(int set);

  KernelSet set_;
  std::unique_ptr<Device> device_;
  std::vector<TensorSet> sets_;
  std::vector<int64_t> sizes_;  // of tensors, then of areas
  Layout fenced_, plain_;
  std::vector<Device::Launch> fenced_launches_, plain_launches_;
  std::vector<char> image_;  // of fenced memory, or of a tensor, on the host
  int written_set_ = -1;     // whose values the plain inputs hold
  uint64_t written_turn_ = 0;
};

}  // namespace hone
