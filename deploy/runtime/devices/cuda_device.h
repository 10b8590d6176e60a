// A GPU of NVIDIA, through its driver (cuda_driver.h).
//
// Devices of a process share the driver's primary context with whatever else in it uses CUDA; each has a stream of its
// own. An error that the driver documents as the end of the process's work on the device makes it lost: every later
// call is kDeviceLost with the same words, and another device is opened by another process.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/runtime/devices/device.h"

namespace hone {

class CudaDevice : public Device {
 public:
  // Facts of all devices there are, in the order in which Open counts them. kUnsupported when there is no driver, one
  // that is too old, or no device, with what to install.
  static RuntimeResult<std::vector<DeviceFacts>> List();
  // kUnsupported as List; kNotFound when there are fewer; kDeviceLost when the driver does not give it.
  static RuntimeResult<std::unique_ptr<Device>> Open(size_t index = 0, bool with_clock = false);
  // Whether a device of that architecture ("sm_86") runs machine code for the other ("sm_80", "sm_90a"): that of its
  // generation up to its own; with a letter that of its own alone ("CUDA C++ Programming Guide", "Binary
  // Compatibility").
  static bool Runs(std::string_view architecture, std::string_view code);

  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;

  const DeviceFacts& facts() const override;
  // Of machine code (cubin) or PTX.
  RuntimeError Build(std::span<const std::string> code) override;
  RuntimeError Allocate(std::span<const int64_t> bytes, std::span<const Part> parts = {}) override;
  RuntimeError Write(size_t buffer, const void* from, int64_t bytes, int64_t offset = 0) override;
  RuntimeError Read(size_t buffer, void* to, int64_t bytes, int64_t offset = 0) override;
  RuntimeError Copy(size_t from, size_t to, int64_t bytes, int64_t from_offset = 0, int64_t to_offset = 0) override;
  RuntimeError Start(const Launch& launch) override;
  RuntimeError Finish() override;
  RuntimeError KeepSequence(const std::function<RuntimeError()>& work) override;
  RuntimeError StartSequence() override;
  void StartClock() override;
  RuntimeError EndLap() override;
  RuntimeResult<std::vector<double>> StopClock() override;

 private:
  struct State;
  explicit CudaDevice(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hone
