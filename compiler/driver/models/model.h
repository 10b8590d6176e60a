// A model on its way to a bundle: imported, cut into tasks, each with a program from a record or by default.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/driver/models/import_flags.h"
#include "compiler/driver/models/lock_file.h"
#include "compiler/driver/service_options.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/ir/wire_numeric.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/target/gpu_target.h"
#include "compiler/target/target.h"
#include "compiler/text/canonical.h"
#include "tuner/space/generator.h"

namespace hone {

// What a kernel is built for; part of every key.
struct BuildSettings {
  std::string target_text = "cpu:native";
  int threads = 0;  // 0: the target's cores
  std::string numeric_text = "default";
  std::string machine_text = "measured";
  ImportFlags import;

  void AddTo(CLI::App& command);  // --target, --threads, --numeric, --machine, and those of `import`
};
struct ResolvedSettings {
  Target target;                 // of a device: the host's
  std::optional<GpuTarget> gpu;  // what kernels are for, in place of `target`
  int threads = 1;               // of a device: 1
  NumericLevel numeric = NumericLevel::kDefault;
  Machine machine;
  v1::NumericLevel wire_numeric() const { return ToWire(numeric); }
  SpaceOptions space() const { return {target, threads, numeric, machine}; }
  // Of a device nothing is planned by what the host's instructions are good at.
  PlanOptions plan() const {
    return {.joins_attention = !gpu, .features = gpu ? FeaturesOf(*gpu) : target.features, .numeric = numeric};
  }
  const std::string& target_text() const { return gpu ? gpu->text : target.text; }
  std::string device_class() const { return gpu ? DeviceClass(*gpu) : DeviceClass(target); }
  std::string generator() const;  // the fingerprint of what makes the code
};
// Says on standard error where the target gains nothing by the numeric level. A text that names a kind of devices and
// no fact of them ("opencl:generic") is the device of that kind on this machine, where there is one.
absl::StatusOr<ResolvedSettings> Resolve(const BuildSettings& settings);
// Those that the lock file was written with; nothing is measured.
absl::StatusOr<ResolvedSettings> ResolveLocked(const LockFile& lock);

struct Model {
  Plan plan;
  std::vector<CanonicalWorkload> workloads;  // one for each task
  std::string hash;                          // SHA-256 of the file
};
// What is tuned of a model: each of its tasks. Of a task with symbolic sizes, its program at a few of them.
struct TunedTask {
  size_t task = 0;
  std::vector<int64_t> sizes;  // those of the task; empty: it has none
  CanonicalWorkload workload;
  std::string name;
  double flop = 0, bytes = 0;  // as of PlanTask
};
std::vector<TunedTask> TunedTasks(const Model& model);

// Exit code 3 when it cannot be imported. What was assumed of it is said on standard error.
absl::StatusOr<Model> LoadModel(const std::string& path, const ImportOptions& options = {},
                                const PlanOptions& how = {});

// Of a bundle with symbolic sizes at some of them: the drafts of its kernels over those of the best schedules for these
// sizes alone. 1.05: it would take a twentieth more than a bundle for these.
struct RegretAtSizes {
  std::vector<int64_t> sizes;  // of the plan
  double regret = 1;
  std::vector<std::string> unknown = {};  // tasks of whose kernels there is no draft there, which are in neither
};

// How the kernels of a bundle were come by, for the user.
struct CompileSummary {
  int kernels = 0;             // of tasks, a kernel each:
  int from_records = 0;        // byte for byte the code that was measured: the record's time is the kernel's
  int from_stale_records = 0;  // the record's schedule, but other code than was measured: its time may not hold
  int from_near_records = 0, from_defaults = 0;
  int from_faster_defaults = 0;  // there is a record, but inside this model the default schedule was found to be faster
  int claimed = 0;               // of the records used: imported, and not measured by a worker of this database
  int kernels_by_size = 0;       // further kernels, each of one task at some sizes
  std::vector<RegretAtSizes> regrets = {};  // where sizes are symbolic
};

// The default schedule of a kernel. Fails where the space has no generator for it.
absl::StatusOr<Trace> DefaultTraceOf(const CanonicalWorkload& workload, const ResolvedSettings& settings);

// What is asked for the best record of each of the model's TunedTasks.
std::vector<v1::BestKey> BestKeysOf(const Model& model, const std::vector<TunedTask>& tasks,
                                    const ResolvedSettings& settings);
// SHA-256 of the code that this Hone makes of a schedule; "" where it makes none.
std::string CodeDigest(const std::string& trace, const CanonicalWorkload& workload, const ResolvedSettings& settings);

// Compiles and writes the bundle. `records` nullptr: defaults alone. Every kernel is generated here, on all cores, from
// its schedule; of what others compiled only the digest is looked at, to tell whether it is the same. A record whose
// trace no longer replays is passed over, and one that was found slower than the default schedule inside this model.
// `made`, where given, is filled with what makes the same bundle again. Constants are let go of as they are written, so
// that a caller who needs the model no more had better move it.
absl::StatusOr<CompileSummary> CompileModel(Model model, const ResolvedSettings& settings,
                                            const ServiceOptions* records, const std::string& output,
                                            LockFile* made = nullptr);

// Makes the bundle that the lock file is of, byte for byte, or none: FailedPrecondition names the kernels that are
// missing or come out otherwise, and why.
absl::StatusOr<CompileSummary> CompileLocked(Model model, const LockFile& lock, const ResolvedSettings& settings,
                                             const std::string& output);

}  // namespace hone
