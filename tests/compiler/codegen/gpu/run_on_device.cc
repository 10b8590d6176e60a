#include "tests/compiler/codegen/gpu/run_on_device.h"

#include <algorithm>
#include <memory>
#include <string>

#include "compiler/codegen/cuda/cuda_cpp.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/codegen/opencl/opencl_c.h"
#include "compiler/interp/interpreter.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/gpu_target.h"
#include "deploy/runtime/devices/opencl_device.h"
#include "tests/compiler/schedule/campaign.h"

namespace hone::testing {
namespace {

constexpr int64_t kGuardBytes = 256;
constexpr char kGuard = 0x5A;

absl::Status ToStatus(const RuntimeError& error) {
  return error ? absl::InternalError(error.message()) : absl::OkStatus();
}

// The contents of a buffer before the run, with the guard behind them.
std::vector<char> Guarded(const DeviceProgram& program, size_t buffer, const std::vector<NdArray>& args) {
  std::vector<char> bytes(static_cast<size_t>(program.buffers[buffer].bytes), static_cast<char>(kUnwrittenByte));
  if (buffer < program.params) std::copy(args[buffer].data.begin(), args[buffer].data.end(), bytes.begin());
  bytes.insert(bytes.end(), kGuardBytes, kGuard);
  return bytes;
}

}  // namespace

absl::Status RunCode(Device& device, const DeviceProgram& program, const Dialect& dialect, const std::string& code,
                     std::vector<NdArray>& args) {
  HONE_RETURN_IF_ERROR(ToStatus(device.Build({&code, 1})));
  std::vector<int64_t> sizes;
  for (const DeviceProgram::Memory& memory : program.buffers) sizes.push_back(memory.bytes + kGuardBytes);
  HONE_RETURN_IF_ERROR(ToStatus(device.Allocate(sizes)));
  for (size_t i = 0; i < sizes.size(); ++i)
    HONE_RETURN_IF_ERROR(ToStatus(device.Write(i, Guarded(program, i, args).data(), sizes[i])));
  for (const Launch& launch : program.launches) {
    const int64_t shared = IsSharedGivenAtLaunch(dialect, launch.shared_bytes) ? launch.shared_bytes : 0;
    HONE_RETURN_IF_ERROR(ToStatus(device.Start({launch.kernel, launch.grid, launch.block, launch.buffers, shared})));
  }
  HONE_RETURN_IF_ERROR(ToStatus(device.Finish()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<char> bytes(static_cast<size_t>(sizes[i]));
    HONE_RETURN_IF_ERROR(ToStatus(device.Read(i, bytes.data(), sizes[i])));
    if (std::any_of(bytes.end() - kGuardBytes, bytes.end(), [](char c) { return c != kGuard; }))
      return absl::InternalError("a kernel wrote past the end of " + program.buffers[i].buffer.name());
    if (i < program.params) std::copy(bytes.begin(), bytes.end() - kGuardBytes, args[i].data.begin());
  }
  return absl::OkStatus();
}

hone::Device* OpenClDeviceOfTests(std::string* why) {
  static RuntimeResult<std::unique_ptr<hone::Device>> device =
      OpenClDevice::Open(static_cast<size_t>(FromEnvironment("HONE_OPENCL_DEVICE", 0)));
  if (!device.ok() && why != nullptr) *why = device.error().message();
  return device.ok() ? device->get() : nullptr;
}

absl::Status RunOnOpenCl(Device& device, const PrimFunc& scheduled, std::vector<NdArray>& args) {
  HONE_ASSIGN_OR_RETURN(const DeviceProgram program, LowerToDevice(scheduled));
  HONE_ASSIGN_OR_RETURN(const std::string source, PrintKernels(program, OpenClC(), {}));
  return RunCode(device, program, OpenClC(), source, args);
}

const std::set<std::string>& CudaFeatures() {
  static const auto& features = *new std::set<std::string>(FeaturesOf(ParseGpuTarget("cuda:sm_80").value()));
  return features;
}

absl::Status RunOnCuda(Device& device, const PrimFunc& scheduled, std::vector<NdArray>& args) {
  return RunOnCuda(device, scheduled, args, CudaFeatures());
}

absl::Status RunOnCuda(Device& device, const PrimFunc& scheduled, std::vector<NdArray>& args,
                       const std::set<std::string>& features) {
  HONE_ASSIGN_OR_RETURN(const DeviceProgram program, LowerToDevice(scheduled));
  HONE_ASSIGN_OR_RETURN(const std::string source, PrintKernels(program, CudaCpp(), features));
  HONE_ASSIGN_OR_RETURN(const Nvrtc* const nvrtc, Nvrtc::Load());
  HONE_ASSIGN_OR_RETURN(const CudaImage image, nvrtc->Compile(source, device.facts().architecture));
  return RunCode(device, program, CudaCpp(), image.cubin, args);
}

}  // namespace hone::testing
