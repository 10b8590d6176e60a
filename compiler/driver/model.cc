#include "compiler/driver/model.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/compile.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/machine_facts.h"
#include "compiler/driver/sandboxed_prepare.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/planner.h"
#include "compiler/package/bundle_writer.h"
#include "compiler/schedule/choose_algorithm.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/file.h"
#include "compiler/support/parallel_for.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/default_schedule.h"

namespace hone {
namespace {

// Sources of kernels, as the manifest has them.
constexpr char kRecord[] = "record", kStaleRecord[] = "stale record", kNearRecord[] = "near record",
               kDefault[] = "default";

absl::StatusOr<PackagedKernel> CompileTrace(const Trace& trace, const CanonicalWorkload& workload,
                                            const ResolvedSettings& settings) {
  if (NumericLevelOf(trace) > settings.numeric) {
    return absl::InvalidArgumentError("the trace chooses an algorithm that numeric level strict does not allow");
  }
  HONE_ASSIGN_OR_RETURN(const Schedule schedule, Replay(trace, workload.func));
  CompileOptions options;
  options.symbol = KernelSymbol(workload.hash);
  options.numeric = settings.numeric;
  options.threads = settings.threads;
  PackagedKernel packaged;
  packaged.program = schedule.Program();
  HONE_ASSIGN_OR_RETURN(packaged.kernel, CompileKernel(*packaged.program, settings.target, options));
  return packaged;
}

absl::StatusOr<PackagedKernel> FromRecord(const v1::BestAnswer& answer, const CanonicalWorkload& workload,
                                          const ResolvedSettings& settings) {
  const v1::Record& record = answer.record();
  HONE_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(record.trace()));
  HONE_ASSIGN_OR_RETURN(PackagedKernel packaged, CompileTrace(trace, workload, settings));
  const bool same_code = Sha256(packaged.kernel.object) == record.object_digest();
  packaged.provenance.source = !answer.exact() ? kNearRecord : same_code ? kRecord : kStaleRecord;
  packaged.provenance.record = std::to_string(record.id());
  if (packaged.provenance.source != kStaleRecord) packaged.provenance.measured_us = record.median_us();
  return packaged;
}

absl::StatusOr<PackagedKernel> ByDefault(const CanonicalWorkload& workload, const ResolvedSettings& settings) {
  HONE_ASSIGN_OR_RETURN(const Trace trace, DefaultTrace(workload.func, settings.space()));
  HONE_ASSIGN_OR_RETURN(PackagedKernel packaged, CompileTrace(trace, workload, settings));
  packaged.provenance.source = kDefault;
  return packaged;
}

}  // namespace

void BuildSettings::AddTo(CLI::App& command) {
  command.add_option("--target", target_text, "what to build for")->capture_default_str();
  command.add_option("--threads", threads, "threads a kernel may use (default: all cores of the target)");
  command
      .add_option("--numeric", numeric_text,
                  "strict: reordering only; default: also functions of a few ulp, and Winograd")
      ->check(CLI::IsMember({"strict", "default"}))
      ->capture_default_str();
  command
      .add_option("--machine", machine_text,
                  "what untuned kernels are chosen by: measured (on this machine, once), usual (values of the target's "
                  "core) or facts such as ghz=3.5,l2=48")
      ->capture_default_str();
}

absl::StatusOr<ResolvedSettings> Resolve(const BuildSettings& settings) {
  ResolvedSettings resolved;
  HONE_ASSIGN_OR_RETURN(resolved.target, ParseTarget(settings.target_text));
  resolved.threads = settings.threads > 0 ? settings.threads : resolved.target.cores;
  resolved.numeric = settings.numeric_text == "strict" ? NumericLevel::kStrict : NumericLevel::kDefault;
  HONE_ASSIGN_OR_RETURN(const MachineFacts facts, FindMachineFacts(resolved.target, settings.machine_text));
  resolved.machine = facts.machine;
  return resolved;
}

absl::StatusOr<Model> LoadModel(const std::string& path) {
  absl::StatusOr<Graph> graph = ImportOnnx(path);
  if (!graph.ok()) return WithExitCode(ExitCode::kImport, graph.status());
  Model model;
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  model.hash = Sha256(bytes);
  absl::StatusOr<Plan> plan = MakePlan(*std::move(graph));
  if (!plan.ok()) return WithExitCode(ExitCode::kImport, Annotate(plan.status(), path));
  model.plan = *std::move(plan);
  model.plan.model_name = std::filesystem::path(path).stem().string();
  for (const PlanTask& task : model.plan.tasks) model.workloads.push_back(Canonicalize(task.func));
  return model;
}

absl::StatusOr<CompileSummary> CompileModel(const Model& model, const ResolvedSettings& settings,
                                            const ServiceOptions* records, const std::string& output) {
  std::vector<std::optional<v1::BestAnswer>> best(model.workloads.size());
  if (records != nullptr) {
    std::vector<v1::BestKey> keys;
    for (const CanonicalWorkload& workload : model.workloads) {
      v1::BestKey key;
      key.set_workload_hash(workload.hash);
      key.set_device_class(DeviceClass(settings.target));
      key.set_threads(settings.threads);
      key.set_numeric(settings.wire_numeric());
      keys.push_back(std::move(key));
    }
    HONE_ASSIGN_OR_RETURN(best, FindBest(*records, keys));
  }
  std::vector<absl::StatusOr<PackagedKernel>> made(model.workloads.size(), absl::UnknownError("not compiled"));
  const int cores = HostTarget().cores;
  ParallelFor(made.size(), cores, [&](size_t i) {
    const CanonicalWorkload& workload = model.workloads[i];
    if (best[i].has_value()) made[i] = FromRecord(*best[i], workload, settings);
    if (!made[i].ok()) made[i] = ByDefault(workload, settings);
  });
  CompileSummary summary;
  std::vector<PackagedKernel> kernels;
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i].ok()) {
      return WithExitCode(ExitCode::kNoSchedule,
                          Annotate(made[i].status(), absl::StrCat("no schedule for ", model.plan.tasks[i].name)));
    }
    kernels.push_back(*std::move(made[i]));
    const std::string& source = kernels.back().provenance.source;
    ++(source == kRecord        ? summary.from_records
       : source == kStaleRecord ? summary.from_stale_records
       : source == kNearRecord  ? summary.from_near_records
                                : summary.from_defaults);
  }
  BundleOptions options;
  options.target = settings.target;
  options.numeric = settings.numeric;
  options.threads = settings.threads;
  options.pack_threads = cores;
  options.run_prepare = PrepareInSandbox;
  HONE_RETURN_IF_ERROR(WriteBundle(model.plan, kernels, options, output));
  return summary;
}

}  // namespace hone
