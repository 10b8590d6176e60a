// A device that OpenCL knows. Of what is installed the ICD loader, libOpenCL.so.1, is opened at run time: nothing links
// it, and where it is missing Open says so.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "deploy/runtime/devices/device.h"

namespace hone {

class OpenClDevice : public Device {
 public:
  // Facts of all devices there are, in the order in which Open counts them. kUnsupported when there is no loader, no
  // driver or no device, with what to install.
  static RuntimeResult<std::vector<DeviceFacts>> List();
  // A context of its own on that device. kUnsupported as List; kNotFound when there are fewer.
  static RuntimeResult<std::unique_ptr<Device>> Open(size_t index = 0, bool with_clock = false);
  ~OpenClDevice() override;
  OpenClDevice(const OpenClDevice&) = delete;

  const DeviceFacts& facts() const override;
  // Of sources. PoCL compiles those with barriers unoptimized: version 3.1, which Debian 12 has, fails an assertion of
  // its own on some loops with barriers otherwise, and ends the process.
  RuntimeError Build(std::span<const std::string> code) override;
  RuntimeError Allocate(std::span<const int64_t> bytes, std::span<const Part> parts = {}) override;
  RuntimeError Write(size_t buffer, const void* from, int64_t bytes, int64_t offset = 0) override;
  RuntimeError Read(size_t buffer, void* to, int64_t bytes, int64_t offset = 0) override;
  RuntimeError Copy(size_t from, size_t to, int64_t bytes, int64_t from_offset = 0, int64_t to_offset = 0) override;
  RuntimeError Start(const Launch& launch) override;
  RuntimeError Finish() override;
  // OpenCL 3.0 has none; cl_khr_command_buffer is provisional.
  RuntimeError KeepSequence(const std::function<RuntimeError()>&) override;
  RuntimeError StartSequence() override;
  void StartClock() override;
  RuntimeError EndLap() override;
  RuntimeResult<std::vector<double>> StopClock() override;

 private:
  struct State;
  explicit OpenClDevice(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hone
