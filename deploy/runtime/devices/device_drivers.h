// The drivers there is a class for: one row each, which is all that tells one language of devices from another here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "deploy/runtime/devices/device.h"

namespace hone {

struct DeviceDriver {
  std::string_view language;  // of targets and bundles: "opencl"
  const char* name;           // for people: "OpenCL"
  const char* chosen;         // the environment variable with the number of the device to use
  // Its process maps the memory of all devices, so that no limit of address space can be set for it.
  bool maps_devices;
  // No device of it is a processor of the host: the host may be busy while one is measured.
  bool beside_host;
  RuntimeResult<std::vector<DeviceFacts>> (*list)();
  RuntimeResult<std::unique_ptr<Device>> (*open)(size_t index, bool with_clock);
  // Whether a device of an architecture (DeviceFacts) runs code for another (that of a target).
  bool (*runs)(std::string_view architecture, std::string_view code);
};

// In the order of `hone doctor`.
std::span<const DeviceDriver> DeviceDrivers();
// The language of a target or of a bundle's device: "cuda" of "cuda:sm_90a,l2=50M".
std::string_view DeviceLanguage(std::string_view target);
// Whose turn it is to measure on a target (compiler/support/turn_lock.h): "" for the host and what may be a part of it.
std::string_view MeasuredBesideHost(std::string_view target);
// nullptr when there is none of that language.
const DeviceDriver* FindDeviceDriver(std::string_view language);

}  // namespace hone
