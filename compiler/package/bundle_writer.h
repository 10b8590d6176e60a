// From a plan and its kernels to model.hone, the bundle that deploy/runtime/bundle/bundle.h describes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/codegen/compile.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/ir/numeric.h"
#include "compiler/schedule/program.h"
#include "compiler/target/gpu_target.h"
#include "compiler/target/target.h"
#include "deploy/runtime/bundle/bundle.h"

namespace hone {

// Where a kernel came from; kept in the manifest.
struct Provenance {
  std::string source;         // "record", "stale record", "near record", "faster default", "default", "plain"
  std::string record;         // id of the tuning record, "" when there is none
  double measured_us = 0;     // 0: not measured
  std::string object_digest;  // SHA-256 of the object, hex; filled in when empty
};

// Of a plan with symbolic sizes: at which a task runs by a kernel other than its own.
struct KernelCase {
  int task = 0;
  std::vector<int64_t> most;  // of each size of the plan
};

struct PackagedKernel {
  CompiledKernel kernel;
  Provenance provenance;
  // The program the kernel was made from. Needed only for a target whose code this machine cannot run: its constants
  // are then packed by code made for this machine.
  std::optional<ScheduledProgram> program;
  std::optional<KernelCase> only_for = {};
};

// A kernel that packs constants.
struct PrepareKernel {
  std::string_view image;  // of code for this machine; holds prepared.symbol
  PreparedConstant prepared;
  KernelTensor original;
  int constants = 1;  // that it will pack at most
};
// One that is loaded, and packs one constant after the other.
class ConstantPacker {
 public:
  virtual ~ConstantPacker() = default;
  // The packed form of `value`, zero where the kernel writes none. Stays until the next call.
  virtual absl::StatusOr<std::string_view> Pack(std::span<const char> value) = 0;
};
// The image outlives the packer. Called from several threads at once.
using StartPacker = std::function<absl::StatusOr<std::unique_ptr<ConstantPacker>>(const PrepareKernel&)>;

struct BundleOptions {
  Target target;
  std::optional<GpuTarget> gpu;  // of a bundle for a device, in place of `target`
  NumericLevel numeric = NumericLevel::kDefault;
  int threads = 0;           // what the kernels were tuned for; 0: any
  int pack_threads = 1;      // constants packed at the same time
  StartPacker start_packer;  // needed where a kernel packs constants
  std::string digest;        // SHA-256 that the file must have; "": any
};

// Of a plan for a device: InvalidArgument where it calls a function of the program that runs it, which is the host's.
absl::Status CheckFitsDevice(const Plan& plan);

// Writes the bundle: one kernel for each task of the plan, in its order, then those that are only for some sizes, of
// which the first that fits counts. It links the objects (those for a device stay sources), has constant operands
// packed by `options.start_packer` (equal results are stored once) and places every intermediate. No code of a kernel
// runs in this process. Constants go into the file one by one, so that of their packed forms only
// `options.pack_threads` are in memory; of the plan's own, one that is packed is let go of when all of its packed forms
// are in the file. The file appears whole or not at all (AtomicFile). InvalidArgument when the
// kernels do not fit the plan, FailedPrecondition when constants cannot be packed here or the file is not what
// `options.digest` asks for; and the errors of CheckFitsDevice.
absl::Status WriteBundle(Plan plan, std::span<const PackagedKernel> kernels, const BundleOptions& options,
                         const std::string& path);

}  // namespace hone
