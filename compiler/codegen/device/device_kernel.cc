#include "compiler/codegen/device/device_kernel.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/cuda/cuda_cpp.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/codegen/opencl/opencl_c.h"
#include "compiler/ir/structural.h"
#include "compiler/lower/threads/device_program.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/bundle/aligned_buffer.h"
#include "deploy/runtime/devices/device.h"
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

// All that tells one language from another here.
struct Language {
  std::string_view name;
  const Dialect& (*dialect)();
  // What its driver takes, of the text.
  absl::StatusOr<std::string> (*object)(std::string text, const GpuTarget& target);
  // Of the compiler that makes it: its release, "" where the driver compiles; and what opens all files it needs.
  std::string (*release)();
  void (*prepare)();
};

absl::StatusOr<std::string> TextItself(std::string text, const GpuTarget&) { return text; }
std::string NoRelease() { return ""; }
void NothingToPrepare() {}

absl::StatusOr<std::string> Cubin(std::string text, const GpuTarget& target) {
  HONE_ASSIGN_OR_RETURN(const Nvrtc* const nvrtc, Nvrtc::Load());
  HONE_ASSIGN_OR_RETURN(CudaImage image, nvrtc->Compile(text, target.arch));
  return std::move(image.cubin);
}
std::string NvrtcRelease() {
  const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load();
  return nvrtc.ok() ? absl::StrCat("-nvrtc-", (*nvrtc)->version()) : "";
}

void PrepareNvrtc() {
  // Its first compilation opens further files.
  const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load();
  if (nvrtc.ok()) (*nvrtc)->Compile("extern \"C\" __global__ void nothing() {}\n", "sm_80").status().IgnoreError();
}

constexpr Language kLanguages[] = {
    {"opencl", &OpenClC, &TextItself, &NoRelease, &NothingToPrepare},
    {"cuda", &CudaCpp, &Cubin, &NvrtcRelease, &PrepareNvrtc},
};

const Language* FindLanguage(std::string_view name) {
  const auto* language = std::ranges::find(kLanguages, name, &Language::name);
  return language == std::end(kLanguages) ? nullptr : language;
}

const Language& LanguageOf(const GpuTarget& target) {
  const Language* const language = FindLanguage(target.language);
  HONE_CHECK(language != nullptr) << "a target of a language without code: " << target.text;
  return *language;
}

}  // namespace

absl::StatusOr<CompiledKernel> CompileDeviceKernel(const ScheduledProgram& program, const GpuTarget& target,
                                                   const std::string& symbol) {
  const Language& language = LanguageOf(target);
  if (!program.prepares.empty())
    return absl::FailedPreconditionError("a schedule for a device prepares constants, which nothing does there");
  PrimFunc scheduled = program.main;
  scheduled.name = symbol;  // its launches are named after it
  HONE_ASSIGN_OR_RETURN(const DeviceProgram lowered, LowerToDevice(scheduled, {.vector_bits = target.vector_bits,
                                                                               .shared_apart = target.shared_apart}));
  CompiledKernel kernel;
  kernel.set = DescribeSet(scheduled, symbol);
  kernel.program_hash = StructuralHash(scheduled);
  kernel.serial_loops = lowered.serial_loops;
  PlaceScratch(lowered, kernel.set);
  for (const Launch& launch : lowered.launches) {
    const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    HONE_RETURN_IF_ERROR(CheckBlock(target, launch.kernel, threads, launch.shared_bytes));
    kernel.set.launches.push_back(
        {launch.kernel, launch.grid, launch.block, std::vector<int>(launch.buffers.begin(), launch.buffers.end()),
         IsSharedGivenAtLaunch(language.dialect(), launch.shared_bytes) ? launch.shared_bytes : 0});
  }
  HONE_ASSIGN_OR_RETURN(std::string text, PrintKernels(lowered, language.dialect(), FeaturesOf(target)));
  HONE_ASSIGN_OR_RETURN(kernel.object, language.object(std::move(text), target));
  return kernel;
}

std::string DeviceGeneratorFingerprint(const GpuTarget& target) {
  return absl::StrCat("hone-device-", kDeviceGeneratorHash, LanguageOf(target).release());
}

void PrepareDeviceCompiler(std::string_view language) {
  if (const Language* const known = FindLanguage(language)) known->prepare();
}

}  // namespace hone
