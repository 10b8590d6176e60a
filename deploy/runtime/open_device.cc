#include <algorithm>
#include <cstdlib>
#include <utility>

#include "deploy/runtime/device.h"
#include "deploy/runtime/opencl_device.h"

namespace hone {
namespace {

RuntimeResult<size_t> ChosenOpenClDevice() {
  if (const char* number = std::getenv("HONE_OPENCL_DEVICE")) return size_t{std::strtoul(number, nullptr, 10)};
  const RuntimeResult<std::vector<DeviceFacts>> devices = OpenClDevice::List();
  if (!devices.ok()) return devices.error();
  const auto gpu =
      std::find_if(devices->begin(), devices->end(), [](const DeviceFacts& facts) { return !facts.is_cpu; });
  return gpu == devices->end() ? size_t{0} : static_cast<size_t>(gpu - devices->begin());
}

}  // namespace

RuntimeResult<std::unique_ptr<Device>> OpenDevice(std::string_view language, bool with_clock) {
  if (language != "opencl")
    return RuntimeError(RuntimeCode::kUnsupported, "this runtime opens no devices of " + std::string(language));
  const RuntimeResult<size_t> index = ChosenOpenClDevice();
  if (!index.ok()) return index.error();
  RuntimeResult<std::unique_ptr<OpenClDevice>> device = OpenClDevice::Open(*index, with_clock);
  if (!device.ok()) return device.error();
  return std::unique_ptr<Device>(*std::move(device));
}

}  // namespace hone
