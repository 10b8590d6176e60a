#include "compiler/driver/device_model.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/codegen/opencl/opencl_c.h"
#include "compiler/driver/exit_code.h"
#include "compiler/ir/structural.h"
#include "compiler/lower/device_program.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/parallel_for.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/target.h"
#include "deploy/runtime/aligned_buffer.h"
#include "tuner/space/gpu/default_gpu_schedule.h"

namespace hone {
namespace {

absl::Status CheckFits(const Launch& launch, const GpuTarget& target) {
  const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  if (threads <= target.threads && launch.shared_bytes <= target.shared) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(launch.kernel, " takes ", threads, " threads and ",
                                                    launch.shared_bytes, " bytes of shared memory a block; ",
                                                    target.text, " has ", target.threads, " and ", target.shared));
}

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
std::vector<BundleScratch> PlaceScratch(const DeviceProgram& program, int64_t* scratch_bytes) {
  std::vector<BundleScratch> areas;
  for (size_t i = program.params; i < program.buffers.size(); ++i) {
    areas.push_back({*scratch_bytes, program.buffers[i].bytes});
    *scratch_bytes += static_cast<int64_t>(AlignUp(static_cast<size_t>(program.buffers[i].bytes), kDeviceAlignment));
  }
  return areas;
}

}  // namespace

absl::StatusOr<PackagedKernel> MakeDeviceKernel(const CanonicalWorkload& workload, const GpuTarget& target) {
  HONE_ASSIGN_OR_RETURN(const GpuDefault made, DefaultGpuSchedule(workload.func, target));
  HONE_ASSIGN_OR_RETURN(const Schedule schedule, Replay(made.trace, workload.func));
  PrimFunc scheduled = schedule.Program().main;
  const std::string symbol = KernelSymbol(workload.hash);
  scheduled.name = symbol;  // its launches are named after it
  HONE_ASSIGN_OR_RETURN(const DeviceProgram program, LowerToDevice(scheduled));
  PackagedKernel packaged;
  packaged.kernel.set = DescribeSet(workload.func, symbol);
  packaged.kernel.program_hash = StructuralHash(scheduled);
  HONE_ASSIGN_OR_RETURN(packaged.kernel.object, PrintKernels(program, OpenClC()));
  packaged.scratch = PlaceScratch(program, &packaged.kernel.set.scratch_bytes);
  for (const Launch& launch : program.launches) {
    HONE_RETURN_IF_ERROR(CheckFits(launch, target));
    packaged.launches.push_back(
        {launch.kernel, launch.grid, launch.block, std::vector<int>(launch.buffers.begin(), launch.buffers.end())});
  }
  packaged.provenance.source = "default";
  return packaged;
}

absl::Status CompileForDevice(const Model& model, const GpuTarget& target, const std::string& output) {
  if (target.language != "opencl") {
    return absl::InvalidArgumentError(absl::StrCat("target ", target.language, ":", target.arch,
                                                   ": no runtime opens its devices yet; use opencl:generic, which "
                                                   "NVIDIA's drivers run as well"));
  }
  std::vector<absl::StatusOr<PackagedKernel>> all(model.workloads.size(), absl::UnknownError("not compiled"));
  ParallelFor(all.size(), HostTarget().cores, [&](size_t i) { all[i] = MakeDeviceKernel(model.workloads[i], target); });
  std::vector<PackagedKernel> kernels;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].ok()) {
      return WithExitCode(ExitCode::kNoSchedule,
                          Annotate(all[i].status(), absl::StrCat("no schedule for ", model.plan.tasks[i].name)));
    }
    kernels.push_back(*std::move(all[i]));
  }
  BundleOptions options;
  options.gpu = target;
  return WriteBundle(model.plan, kernels, options, output);
}

}  // namespace hone
