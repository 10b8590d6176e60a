#include <algorithm>
#include <cstdlib>
#include <string>

#include "deploy/runtime/devices/cuda_device.h"
#include "deploy/runtime/devices/device_drivers.h"
#include "deploy/runtime/devices/opencl_device.h"

namespace hone {
namespace {

// The driver compiles for whatever there is.
bool RunsAll(std::string_view, std::string_view) { return true; }

// clang-format off
constexpr DeviceDriver kDrivers[] = {
    {"opencl", "OpenCL", "HONE_OPENCL_DEVICE", false, false, &OpenClDevice::List, &OpenClDevice::Open, &RunsAll},
    {"cuda", "CUDA", "HONE_CUDA_DEVICE", true, true, &CudaDevice::List, &CudaDevice::Open, &CudaDevice::Runs},
};
// clang-format on

// "1, NVIDIA H100 (sm_90)"
std::string NameOf(size_t index, const DeviceFacts& facts) {
  return std::to_string(index) + ", " + facts.name +
         (facts.architecture.empty() ? "" : " (" + facts.architecture + ")");
}

RuntimeError RunsNot(const DeviceDriver& driver, std::string_view code, const std::string& devices) {
  return RuntimeError(RuntimeCode::kUnsupported, std::string("no ") + driver.name + " device here runs code for " +
                                                     std::string(code) + ": there is " + devices +
                                                     "; compile for that one's architecture");
}

// The number of the device that is to run code for an architecture.
RuntimeResult<size_t> Choose(const DeviceDriver& driver, std::string_view code) {
  const RuntimeResult<std::vector<DeviceFacts>> listed = driver.list();
  if (!listed.ok()) return listed.error();
  const std::vector<DeviceFacts>& devices = *listed;
  if (const char* number = std::getenv(driver.chosen)) {
    const size_t index = std::strtoul(number, nullptr, 10);
    if (index >= devices.size()) {
      return RuntimeError(RuntimeCode::kNotFound,
                          std::string("there is no ") + driver.name + " device " + std::to_string(index) + ", which " +
                              driver.chosen + " names, only " + std::to_string(devices.size()) + ", counted from 0");
    }
    if (driver.runs(devices[index].architecture, code)) return index;
    return RunsNot(driver, code, NameOf(index, devices[index]) + ", which " + driver.chosen + " names");
  }
  std::string names;
  size_t chosen = devices.size();
  for (size_t i = 0; i < devices.size(); ++i) {
    names += (i == 0 ? "" : "; ") + NameOf(i, devices[i]);
    if (!driver.runs(devices[i].architecture, code)) continue;
    if (chosen == devices.size() || (devices[chosen].is_cpu && !devices[i].is_cpu)) chosen = i;
  }
  if (chosen == devices.size()) return RunsNot(driver, code, names);
  return chosen;
}

}  // namespace

std::span<const DeviceDriver> DeviceDrivers() { return kDrivers; }

std::string_view DeviceLanguage(std::string_view target) { return target.substr(0, target.find_first_of(":,")); }

const DeviceDriver* FindDeviceDriver(std::string_view language) {
  const auto* driver = std::ranges::find(kDrivers, language, &DeviceDriver::language);
  return driver == std::end(kDrivers) ? nullptr : driver;
}

std::string_view MeasuredBesideHost(std::string_view target) {
  const DeviceDriver* const driver = FindDeviceDriver(DeviceLanguage(target));
  return driver != nullptr && driver->beside_host ? driver->language : std::string_view();
}

RuntimeResult<std::unique_ptr<Device>> OpenDevice(std::string_view target, bool with_clock) {
  const std::string_view name = target.substr(0, target.find(','));
  const std::string_view language = DeviceLanguage(name);
  const DeviceDriver* const driver = FindDeviceDriver(language);
  if (driver == nullptr)
    return RuntimeError(RuntimeCode::kUnsupported, "this runtime opens no devices for " + std::string(name));
  const RuntimeResult<size_t> index = Choose(*driver, name.substr(std::min(language.size() + 1, name.size())));
  if (!index.ok()) return index.error();
  return driver->open(*index, with_clock);
}

}  // namespace hone
