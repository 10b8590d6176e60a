// In place of opencl_device.cc where OpenCL's headers were not at hand when the runtime was built.
#include "deploy/runtime/devices/opencl_device.h"

namespace hone {
namespace {

RuntimeError NotBuilt() {
  return {RuntimeCode::kUnsupported,
          "this runtime was built without OpenCL's headers; build it where opencl-c-headers is installed"};
}

}  // namespace

struct OpenClDevice::State {};

OpenClDevice::OpenClDevice(std::unique_ptr<State> state) : state_(std::move(state)) {}
OpenClDevice::~OpenClDevice() = default;
RuntimeResult<std::vector<DeviceFacts>> OpenClDevice::List() { return NotBuilt(); }
RuntimeResult<std::unique_ptr<Device>> OpenClDevice::Open(size_t, bool) { return NotBuilt(); }
const DeviceFacts& OpenClDevice::facts() const {
  static const DeviceFacts kNone;
  return kNone;
}
RuntimeError OpenClDevice::Build(std::span<const std::string>) { return NotBuilt(); }
RuntimeError OpenClDevice::Allocate(std::span<const int64_t>, std::span<const Part>) { return NotBuilt(); }
RuntimeError OpenClDevice::Write(size_t, const void*, int64_t, int64_t) { return NotBuilt(); }
RuntimeError OpenClDevice::Read(size_t, void*, int64_t, int64_t) { return NotBuilt(); }
RuntimeError OpenClDevice::Copy(size_t, size_t, int64_t, int64_t, int64_t) { return NotBuilt(); }
RuntimeError OpenClDevice::Start(const Launch&) { return NotBuilt(); }
RuntimeError OpenClDevice::Finish() { return NotBuilt(); }
RuntimeError OpenClDevice::KeepSequence(const std::function<RuntimeError()>&) { return NotBuilt(); }
RuntimeError OpenClDevice::StartSequence() { return NotBuilt(); }
void OpenClDevice::StartClock() {}
RuntimeError OpenClDevice::EndLap() { return NotBuilt(); }
RuntimeResult<std::vector<double>> OpenClDevice::StopClock() { return NotBuilt(); }

}  // namespace hone
