#include "compiler/driver/model.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/compile.h"
#include "compiler/driver/exit_code.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/planner.h"
#include "compiler/package/bundle_writer.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/file.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/default_schedule.h"

namespace hone {
namespace {

absl::StatusOr<PackagedKernel> CompileTrace(const Trace& trace, const CanonicalWorkload& workload,
                                            const ResolvedSettings& settings) {
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

// The very bytes that were measured, when this generator would make the same again.
std::optional<PackagedKernel> StoredKernel(const v1::Record& record) {
  if (record.object().empty() || record.generator() != GeneratorFingerprint()) return std::nullopt;
  if (Sha256(record.object()) != record.object_digest()) return std::nullopt;
  PackagedKernel packaged;
  std::string error;
  if (!Parse(record.kernel_set(), &packaged.kernel.set, &error)) return std::nullopt;
  packaged.kernel.object = record.object();
  return packaged;
}

std::optional<PackagedKernel> FromRecord(const v1::BestAnswer& answer, const CanonicalWorkload& workload,
                                         const ResolvedSettings& settings, CompileSummary* summary) {
  const v1::Record& record = answer.record();
  std::optional<PackagedKernel> packaged;
  if (answer.exact()) packaged = StoredKernel(record);
  if (packaged.has_value()) {
    ++summary->stored_objects;
  } else {
    const absl::StatusOr<Trace> trace = ParseTrace(record.trace());
    if (!trace.ok()) return std::nullopt;
    absl::StatusOr<PackagedKernel> compiled = CompileTrace(*trace, workload, settings);
    if (!compiled.ok()) return std::nullopt;
    packaged = *std::move(compiled);
  }
  packaged->provenance.source = answer.exact() ? "record" : "near record";
  packaged->provenance.record = std::to_string(record.id());
  packaged->provenance.measured_us = record.median_us();
  ++(answer.exact() ? summary->from_records : summary->from_near_records);
  return packaged;
}

absl::StatusOr<PackagedKernel> ByDefault(const CanonicalWorkload& workload, const ResolvedSettings& settings,
                                         CompileSummary* summary) {
  HONE_ASSIGN_OR_RETURN(const Trace trace, DefaultTrace(workload.func, settings.space()));
  HONE_ASSIGN_OR_RETURN(PackagedKernel packaged, CompileTrace(trace, workload, settings));
  packaged.provenance.source = "default";
  ++summary->from_defaults;
  return packaged;
}

}  // namespace

void BuildSettings::AddTo(CLI::App& command) {
  command.add_option("--target", target_text, "what to build for")->capture_default_str();
  command.add_option("--threads", threads, "threads a kernel may use (default: all cores of the target)")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--numeric", numeric_text,
                  "strict: reordering only; default: also functions of a few ulp, and Winograd")
      ->check(CLI::IsMember({"strict", "default"}))
      ->capture_default_str();
}

absl::StatusOr<ResolvedSettings> Resolve(const BuildSettings& settings) {
  ResolvedSettings resolved;
  HONE_ASSIGN_OR_RETURN(resolved.target, ParseTarget(settings.target_text));
  resolved.threads = settings.threads > 0 ? settings.threads : resolved.target.cores;
  resolved.numeric = settings.numeric_text == "strict" ? NumericLevel::kStrict : NumericLevel::kDefault;
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
  CompileSummary summary;
  std::vector<PackagedKernel> kernels;
  for (size_t i = 0; i < model.workloads.size(); ++i) {
    std::optional<PackagedKernel> packaged;
    if (best[i].has_value()) packaged = FromRecord(*best[i], model.workloads[i], settings, &summary);
    if (!packaged.has_value()) {
      absl::StatusOr<PackagedKernel> by_default = ByDefault(model.workloads[i], settings, &summary);
      if (!by_default.ok()) {
        return WithExitCode(ExitCode::kNoSchedule,
                            Annotate(by_default.status(), absl::StrCat("no schedule for ", model.plan.tasks[i].name)));
      }
      packaged = *std::move(by_default);
    }
    kernels.push_back(*std::move(packaged));
  }
  BundleOptions options;
  options.target = settings.target;
  options.numeric = settings.numeric;
  options.threads = settings.threads;
  options.pack_threads = settings.threads;
  HONE_RETURN_IF_ERROR(WriteBundle(model.plan, kernels, options, output));
  return summary;
}

}  // namespace hone
