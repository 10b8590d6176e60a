#include "compiler/codegen/device/device_kernel.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/codegen/opencl/opencl_c.h"
#include "compiler/ir/structural.h"
#include "compiler/lower/device_program.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/aligned_buffer.h"
#include "deploy/runtime/device.h"
#include "device_generator_hash.h"

namespace hone {
namespace {

KernelSet DescribeSet(const PrimFunc& func, const std::string& symbol) {
  KernelSet set;
  set.symbol = symbol;
  set.num_outputs = func.num_outputs();
  for (const Buffer& param : func.params) {
    KernelTensor tensor{.dtype = ToText(param.type())};
    for (const Expr& extent : param.shape()) tensor.shape.push_back(*ConstantValue(extent));
    tensor.bytes = *param.NumElements() * param.type().bytes();
    set.params.push_back(std::move(tensor));
  }
  return set;
}

// What launches hand to one another, one after the other in the kernel's scratch.
void PlaceScratch(const DeviceProgram& program, KernelSet& set) {
  for (size_t i = program.params; i < program.buffers.size(); ++i) {
    set.areas.push_back({set.scratch_bytes, program.buffers[i].bytes});
    set.scratch_bytes +=
        static_cast<int64_t>(AlignUp(static_cast<size_t>(program.buffers[i].bytes), Device::kPartAlignment));
  }
}

}  // namespace

absl::StatusOr<CompiledKernel> CompileDeviceKernel(const ScheduledProgram& program, const GpuTarget& target,
                                                   const std::string& symbol) {
  if (target.language != "opencl") {
    return absl::FailedPreconditionError(
        absl::StrCat("no runtime opens devices of ", target.language, " yet; use opencl:generic"));
  }
  if (!program.prepares.empty())
    return absl::FailedPreconditionError("a schedule for a device prepares constants, which nothing does there");
  PrimFunc scheduled = program.main;
  scheduled.name = symbol;  // its launches are named after it
  HONE_ASSIGN_OR_RETURN(const DeviceProgram lowered, LowerToDevice(scheduled));
  CompiledKernel kernel;
  kernel.set = DescribeSet(scheduled, symbol);
  kernel.program_hash = StructuralHash(scheduled);
  HONE_ASSIGN_OR_RETURN(kernel.object, PrintKernels(lowered, OpenClC()));
  PlaceScratch(lowered, kernel.set);
  for (const Launch& launch : lowered.launches) {
    const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    HONE_RETURN_IF_ERROR(CheckBlock(target, launch.kernel, threads, launch.shared_bytes));
    kernel.set.launches.push_back(
        {launch.kernel, launch.grid, launch.block, std::vector<int>(launch.buffers.begin(), launch.buffers.end())});
  }
  return kernel;
}

std::string DeviceGeneratorFingerprint() { return absl::StrCat("hone-device-", kDeviceGeneratorHash); }

}  // namespace hone
