#include "compiler/driver/models/model.h"

#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/device/device_kernel.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/machine_facts.h"
#include "compiler/driver/models/graph_file.h"
#include "compiler/driver/models/sandboxed_prepare.h"
#include "compiler/driver/models/symbolic_model.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/plan/cold_operands.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/package/bundle_writer.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/parallel_for.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/gpu_target.h"
#include "tuner/service/client.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/gpu/gpu_generators.h"
#include "tuner/space/workload/workload_info.h"
#include "worker/probe/gpu_probe.h"

namespace hone {
namespace {

// Sources of kernels, as the manifest has them.
constexpr char kRecord[] = "record", kStaleRecord[] = "stale record", kNearRecord[] = "near record",
               kFasterDefault[] = "faster default", kDefault[] = "default", kPlain[] = "plain";

// A kernel, and the text of the schedule that it was made from.
struct Made {
  PackagedKernel packaged;
  std::string trace;
};

// `suffix`: of the kernel's symbol, where a workload has several.
absl::StatusOr<Made> CompileTrace(const Trace& trace, const CanonicalWorkload& workload,
                                  const ResolvedSettings& settings, const std::string& suffix = "") {
  if (NumericLevelOf(trace) > settings.numeric) {
    return absl::InvalidArgumentError("the trace chooses an algorithm that numeric level strict does not allow");
  }
  HONE_ASSIGN_OR_RETURN(const Schedule schedule, Replay(trace, workload.func));
  if (settings.gpu.has_value()) {
    Made made;
    HONE_ASSIGN_OR_RETURN(made.packaged.kernel,
                          CompileDeviceKernel(schedule.Program(), *settings.gpu, KernelSymbol(workload.hash)));
    made.trace = ToText(trace);
    return made;
  }
  CompileOptions options;
  options.symbol = KernelSymbol(workload.hash) + suffix;
  options.symbolic = !workload.func.dims.empty();
  options.numeric = settings.numeric;
  options.threads = settings.threads;
  Made made;
  made.packaged.program = schedule.Program();
  HONE_ASSIGN_OR_RETURN(made.packaged.kernel, CompileKernel(*made.packaged.program, settings.target, options));
  made.trace = ToText(trace);
  return made;
}

absl::StatusOr<Made> FromRecord(const v1::BestAnswer& answer, const CanonicalWorkload& workload,
                                const ResolvedSettings& settings) {
  const v1::Record& record = answer.record();
  HONE_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(record.trace()));
  HONE_ASSIGN_OR_RETURN(Made made, CompileTrace(trace, workload, settings));
  PackagedKernel& packaged = made.packaged;
  const bool same_code = Sha256(packaged.kernel.object) == record.object_digest();
  packaged.provenance.source = !answer.exact() ? kNearRecord : same_code ? kRecord : kStaleRecord;
  packaged.provenance.record = std::to_string(record.id());
  if (packaged.provenance.source != kStaleRecord) packaged.provenance.measured_us = record.median_us();
  return made;
}

absl::StatusOr<Made> ByDefault(const CanonicalWorkload& workload, const ResolvedSettings& settings) {
  HONE_ASSIGN_OR_RETURN(const Trace trace, DefaultTraceOf(workload, settings));
  HONE_ASSIGN_OR_RETURN(Made made, CompileTrace(trace, workload, settings));
  made.packaged.provenance.source = kDefault;
  return made;
}

// What an answer says is best: its record's schedule, or the default one where that was found faster inside the model
// and still is the same code.
absl::StatusOr<Made> FromAnswer(const v1::BestAnswer& answer, const CanonicalWorkload& workload,
                                const ResolvedSettings& settings) {
  if (!answer.faster_default().empty()) {
    absl::StatusOr<Made> made = ByDefault(workload, settings);
    if (made.ok() && Sha256(made->packaged.kernel.object) == answer.faster_default()) {
      made->packaged.provenance.source = kFasterDefault;
      return made;
    }
  }
  return FromRecord(answer, workload, settings);
}

absl::StatusOr<Made> FromLock(const LockedKernel& locked, const CanonicalWorkload& workload,
                              const ResolvedSettings& settings) {
  HONE_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(locked.trace));
  HONE_ASSIGN_OR_RETURN(Made made, CompileTrace(trace, workload, settings));
  if (Sha256(made.packaged.kernel.object) != locked.object_digest) {
    return absl::FailedPreconditionError("this Hone makes other code of its schedule");
  }
  made.packaged.provenance.source = locked.source;
  made.packaged.provenance.record = locked.record;
  made.packaged.provenance.measured_us = locked.measured_us;
  return made;
}

// Calls `make` for each task of the model, on all cores.
std::vector<absl::StatusOr<Made>> MakeAll(const Model& model, const std::function<absl::StatusOr<Made>(size_t)>& make) {
  std::vector<absl::StatusOr<Made>> all(model.workloads.size(), absl::UnknownError("not compiled"));
  ParallelFor(all.size(), HostTarget().cores, [&](size_t i) { all[i] = make(i); });
  return all;
}

void Count(const std::string& source, CompileSummary* summary) {
  ++summary->kernels;
  ++(source == kRecord          ? summary->from_records
     : source == kStaleRecord   ? summary->from_stale_records
     : source == kNearRecord    ? summary->from_near_records
     : source == kFasterDefault ? summary->from_faster_defaults
                                : summary->from_defaults);
}

absl::StatusOr<Made> FromAnswerOrDefault(const v1::BestAnswer& answer, const CanonicalWorkload& workload,
                                         const ResolvedSettings& settings) {
  absl::StatusOr<Made> made = FromAnswer(answer, workload, settings);
  return made.ok() ? std::move(made) : ByDefault(workload, settings);
}

// The best of one task at some of its sizes.
struct RecordAtSizes {
  std::vector<int64_t> sizes;
  const v1::BestAnswer* answer = nullptr;
};

// The kernels of a task of a model with symbolic sizes: for each bucket, its own last.
struct MadeForSizes {
  std::vector<Made> kernels;
  std::vector<SizeCost> costs;
};
absl::StatusOr<MadeForSizes> ForBuckets(const Model& model, size_t task, const std::vector<RecordAtSizes>& records,
                                        const ResolvedSettings& settings) {
  const CanonicalWorkload& workload = model.workloads[task];
  MadeForSizes all;
  if (workload.func.dims.empty()) {
    HONE_ASSIGN_OR_RETURN(Made made, records.empty() ? ByDefault(workload, settings)
                                                     : FromAnswerOrDefault(*records[0].answer, workload, settings));
    all.kernels.push_back(std::move(made));
    return all;
  }
  std::vector<MeasuredSchedule> measured;
  std::vector<std::string> ids;  // of their records
  for (const RecordAtSizes& record : records) {
    absl::StatusOr<Trace> trace = ParseTrace(record.answer->record().trace());
    if (!trace.ok() || !record.answer->faster_default().empty()) continue;
    measured.push_back({record.sizes, *std::move(trace)});
    ids.push_back(std::to_string(record.answer->record().id()));
  }
  const MakeKernel make = [&](const PrimFunc& func, const Trace& trace, int from) -> absl::Status {
    const CanonicalWorkload in_bucket{.func = func, .text = "", .hash = workload.hash};
    HONE_ASSIGN_OR_RETURN(Made made, CompileTrace(trace, in_bucket, settings, absl::StrCat("_s", all.kernels.size())));
    made.packaged.provenance.source = from == kPlainSchedule ? kPlain : from == kNotMeasured ? kDefault : kNearRecord;
    if (from >= 0) made.packaged.provenance.record = ids[static_cast<size_t>(from)];
    all.kernels.push_back(std::move(made));
    return absl::OkStatus();
  };
  HONE_ASSIGN_OR_RETURN(BucketsOfTask made, MakeBuckets(model.plan, model.plan.tasks[task], workload.func, measured,
                                                        settings.space(), make));
  for (size_t b = 0; b + 1 < made.buckets.size(); ++b)
    all.kernels[b].packaged.only_for = KernelCase{static_cast<int>(task), std::move(made.buckets[b].most)};
  all.costs = std::move(made.costs);
  return all;
}

// Costs of all tasks added up at some sizes.
std::vector<RegretAtSizes> RegretsOf(const Plan& plan, const std::vector<std::vector<SizeCost>>& costs) {
  std::vector<RegretAtSizes> regrets;
  for (const std::vector<int64_t>& sizes : SizesToReport(plan.sizes)) {
    RegretAtSizes& here = regrets.emplace_back();
    here.sizes = sizes;
    double used = 0, best = 0;
    for (size_t t = 0; t < costs.size(); ++t) {
      const PlanTask& task = plan.tasks[t];
      const auto own = std::ranges::find_if(costs[t], [&](const SizeCost& cost) {
        return std::ranges::all_of(
            task.sizes, [&](int s) { return cost.sizes[static_cast<size_t>(s)] == sizes[static_cast<size_t>(s)]; });
      });
      if (own == costs[t].end()) continue;
      if (!own->us.has_value()) {
        here.unknown.push_back(task.name);
        continue;
      }
      used += *own->us * task.weight;
      best += own->best_us * task.weight;
    }
    here.regret = best > 0 ? used / best : 1;
  }
  return regrets;
}

BundleOptions OptionsOf(const ResolvedSettings& settings) {
  BundleOptions options;
  options.target = settings.target;
  options.gpu = settings.gpu;
  options.numeric = settings.numeric;
  options.threads = settings.threads;
  options.pack_threads = HostTarget().cores;
  options.start_packer = StartSandboxedPacker;
  return options;
}

// Records are of workloads whose sizes are numbers: their schedules are taken to the sizes around.
absl::StatusOr<CompileSummary> CompileSymbolic(Model model, const ResolvedSettings& settings,
                                               const ServiceOptions* records, const std::string& output) {
  std::vector<std::optional<v1::BestAnswer>> best;
  std::vector<std::vector<RecordAtSizes>> of_task(model.workloads.size());
  if (records != nullptr) {
    const std::vector<TunedTask> tuned = TunedTasks(model);
    HONE_ASSIGN_OR_RETURN(best, FindBest(*records, BestKeysOf(model, tuned, settings)));
    for (size_t i = 0; i < tuned.size(); ++i) {
      if (best[i].has_value()) of_task[tuned[i].task].push_back({tuned[i].sizes, &*best[i]});
    }
  }
  std::vector<absl::StatusOr<MadeForSizes>> all(model.workloads.size(), absl::UnknownError("not compiled"));
  ParallelFor(all.size(), HostTarget().cores, [&](size_t i) { all[i] = ForBuckets(model, i, of_task[i], settings); });
  CompileSummary summary;
  std::vector<PackagedKernel> kernels, cases;
  std::vector<std::vector<SizeCost>> costs;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].ok()) {
      return WithExitCode(ExitCode::kNoSchedule,
                          Annotate(all[i].status(), absl::StrCat("no schedule for ", model.plan.tasks[i].name)));
    }
    costs.push_back(std::move(all[i]->costs));
    for (Made& made : all[i]->kernels) {
      if (!made.packaged.only_for.has_value()) Count(made.packaged.provenance.source, &summary);
      (made.packaged.only_for.has_value() ? cases : kernels).push_back(std::move(made.packaged));
    }
  }
  summary.kernels_by_size = static_cast<int>(cases.size());
  summary.regrets = RegretsOf(model.plan, costs);
  kernels.insert(kernels.end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
  HONE_RETURN_IF_ERROR(WriteBundle(std::move(model.plan), kernels, OptionsOf(settings), output));
  return summary;
}

// Operations of all blocks; 0 where they are not known.
double FlopOf(const PrimFunc& workload) {
  const absl::StatusOr<WorkloadInfo> info = AnalyzeWorkload(workload);
  double flop = 0;
  if (info.ok()) {
    for (const BlockInfo& block : info->blocks) flop += block.flop();
  }
  return flop;
}

void WarnOfNoBfloat16(NumericLevel numeric, const std::set<std::string>& features, const std::string& target) {
  if (numeric != NumericLevel::kBf16 || MultipliesBfloat16(features)) return;
  std::fprintf(stderr,
               "numeric level bf16: %s has no instruction that multiplies bfloat16 faster than float32, so products "
               "stay in float32, as with --numeric default\n",
               target.c_str());
}

absl::StatusOr<ResolvedSettings> ResolveDevice(const BuildSettings& settings) {
  ResolvedSettings resolved;
  resolved.target = HostTarget();
  resolved.machine = UsualMachine(resolved.target);
  HONE_ASSIGN_OR_RETURN(GpuTarget gpu, ParseGpuTarget(settings.target_text));
  resolved.numeric = ParseNumericLevel(settings.numeric_text).value_or(NumericLevel::kDefault);
  WarnOfNoBfloat16(resolved.numeric, FeaturesOf(gpu), gpu.text);
  if (settings.target_text.find(',') == std::string::npos) gpu = DeviceHere(gpu).value_or(gpu);
  resolved.gpu = std::move(gpu);
  return resolved;
}

}  // namespace

void BuildSettings::AddTo(CLI::App& command) {
  command.add_option("--target", target_text, "what to build for")->capture_default_str();
  command.add_option("--threads", threads, "threads a kernel may use (default: all cores of the target)");
  command
      .add_option("--numeric", numeric_text,
                  "strict: reordering only; default: also functions of a few ulp, and Winograd; bf16: also products of "
                  "operands rounded to bfloat16, summed in float32")
      ->check(CLI::IsMember(std::vector<std::string>(kNumericLevels.begin(), kNumericLevels.end())))
      ->capture_default_str();
  command
      .add_option("--machine", machine_text,
                  "what untuned kernels are chosen by: measured (on this machine, once), usual (values of the target's "
                  "core) or facts such as ghz=3.5,l2=48")
      ->capture_default_str();
  import.AddTo(command);
}

std::string ResolvedSettings::generator() const {
  return gpu ? DeviceGeneratorFingerprint(*gpu) : GeneratorFingerprint();
}

absl::StatusOr<ResolvedSettings> Resolve(const BuildSettings& settings) {
  if (NamesGpu(settings.target_text)) return ResolveDevice(settings);
  ResolvedSettings resolved;
  HONE_ASSIGN_OR_RETURN(resolved.target, ParseTarget(settings.target_text));
  resolved.threads = settings.threads > 0 ? settings.threads : resolved.target.cores;
  resolved.numeric = ParseNumericLevel(settings.numeric_text).value_or(NumericLevel::kDefault);
  WarnOfNoBfloat16(resolved.numeric, resolved.target.features, resolved.target.text);
  HONE_ASSIGN_OR_RETURN(const MachineFacts facts, FindMachineFacts(resolved.target, settings.machine_text));
  resolved.machine = facts.machine;
  return resolved;
}

absl::StatusOr<ResolvedSettings> ResolveLocked(const LockFile& lock) {
  ResolvedSettings settings;
  if (NamesGpu(lock.target)) {
    HONE_ASSIGN_OR_RETURN(settings.gpu, ParseGpuTarget(lock.target));
    settings.target = HostTarget();
  } else {
    HONE_ASSIGN_OR_RETURN(settings.target, ParseTarget(lock.target));
  }
  settings.threads = lock.threads;
  settings.numeric = ParseNumericLevel(lock.numeric).value_or(NumericLevel::kDefault);
  return settings;
}

absl::StatusOr<Model> LoadModel(const std::string& path, const ImportOptions& options, const PlanOptions& how) {
  Model model;
  if (options.ranges.empty()) {
    HONE_ASSIGN_OR_RETURN(Graph graph, LoadGraph(path, options));
    model.hash = graph.file_digest;
    absl::StatusOr<Plan> plan = MakePlan(std::move(graph), how);
    if (!plan.ok()) return WithExitCode(ExitCode::kImport, Annotate(plan.status(), path));
    model.plan = *std::move(plan);
  } else {
    HONE_ASSIGN_OR_RETURN(SymbolicPlan symbolic, PlanForRanges(path, options, how));
    model.plan = std::move(symbolic.plan);
    model.hash = std::move(symbolic.hash);
  }
  MarkColdOperands(model.plan);
  model.plan.model_name = std::filesystem::path(path).stem().string();
  for (const PlanTask& task : model.plan.tasks) model.workloads.push_back(Canonicalize(task.func));
  return model;
}

absl::StatusOr<Trace> DefaultTraceOf(const CanonicalWorkload& workload, const ResolvedSettings& settings) {
  if (!settings.gpu.has_value()) return DefaultTrace(workload.func, settings.space());
  HONE_ASSIGN_OR_RETURN(const auto generators, GpuGenerators(workload.func, *settings.gpu));
  return DefaultTrace(generators);
}

std::vector<TunedTask> TunedTasks(const Model& model) {
  std::vector<TunedTask> tuned;
  for (size_t t = 0; t < model.workloads.size(); ++t) {
    const PlanTask& task = model.plan.tasks[t];
    if (task.sizes.empty()) {
      tuned.push_back({t, {}, model.workloads[t], task.name, task.flop, task.bytes});
      continue;
    }
    std::vector<PlanSize> own;
    for (const int s : task.sizes) own.push_back(model.plan.sizes[static_cast<size_t>(s)]);
    const std::vector<std::vector<int64_t>> points = SizesToReport(own);
    const double greatest = FlopOf(WithSizes(model.workloads[t].func, points.back()));
    for (const std::vector<int64_t>& point : points) {
      TunedTask& here = tuned.emplace_back();
      here = {t, point, Canonicalize(WithSizes(model.workloads[t].func, point)), task.name};
      for (size_t s = 0; s < own.size(); ++s) absl::StrAppend(&here.name, "_", own[s].name, point[s]);
      here.flop = greatest > 0 ? task.flop * FlopOf(here.workload.func) / greatest : 0;
      for (const Buffer& param : here.workload.func.params)
        here.bytes += static_cast<double>(param.NumElements().value_or(0) * param.type().bytes());
    }
  }
  return tuned;
}

std::vector<v1::BestKey> BestKeysOf(const Model& model, const std::vector<TunedTask>& tasks,
                                    const ResolvedSettings& settings) {
  std::vector<v1::BestKey> keys;
  for (const TunedTask& task : tasks) {
    v1::BestKey key;
    key.set_workload_hash(task.workload.hash);
    key.set_device_class(settings.device_class());
    key.set_threads(settings.threads);
    key.set_numeric(settings.wire_numeric());
    key.set_model_hash(model.hash);
    keys.push_back(std::move(key));
  }
  return keys;
}

std::string CodeDigest(const std::string& trace_text, const CanonicalWorkload& workload,
                       const ResolvedSettings& settings) {
  const absl::StatusOr<Trace> trace = ParseTrace(trace_text);
  if (!trace.ok()) return "";
  const absl::StatusOr<Made> made = CompileTrace(*trace, workload, settings);
  return made.ok() ? Sha256(made->packaged.kernel.object) : "";
}

absl::StatusOr<CompileSummary> CompileModel(Model model, const ResolvedSettings& settings,
                                            const ServiceOptions* records, const std::string& output, LockFile* made) {
  if (!model.plan.sizes.empty()) return CompileSymbolic(std::move(model), settings, records, output);
  std::vector<std::optional<v1::BestAnswer>> best(model.workloads.size());
  if (records != nullptr) {
    HONE_ASSIGN_OR_RETURN(best, FindBest(*records, BestKeysOf(model, TunedTasks(model), settings)));
  }
  std::vector<absl::StatusOr<Made>> all = MakeAll(model, [&](size_t i) {
    const CanonicalWorkload& workload = model.workloads[i];
    return best[i].has_value() ? FromAnswerOrDefault(*best[i], workload, settings) : ByDefault(workload, settings);
  });
  CompileSummary summary;
  std::vector<PackagedKernel> kernels;
  std::vector<LockedKernel> locked;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string& name = model.plan.tasks[i].name;
    if (!all[i].ok()) {
      return WithExitCode(ExitCode::kNoSchedule, Annotate(all[i].status(), absl::StrCat("no schedule for ", name)));
    }
    kernels.push_back(std::move(all[i]->packaged));
    const Provenance& provenance = kernels.back().provenance;
    summary.claimed += !provenance.record.empty() && best[i]->record().origin() == "imported";
    Count(provenance.source, &summary);
    locked.push_back({model.workloads[i].hash, name, provenance.source, provenance.record, provenance.measured_us,
                      std::move(all[i]->trace), Sha256(kernels.back().kernel.object)});
  }
  const std::string name = model.plan.model_name;
  HONE_RETURN_IF_ERROR(WriteBundle(std::move(model.plan), kernels, OptionsOf(settings), output));
  if (made != nullptr) {
    *made = {.model_name = name,
             .model_hash = model.hash,
             .target = settings.target_text(),
             .threads = settings.threads,
             .numeric = std::string(ToText(settings.numeric)),
             .generator = settings.generator(),
             .kernels = std::move(locked)};
    HONE_ASSIGN_OR_RETURN(made->bundle_digest, Sha256OfFile(output));
  }
  return summary;
}

absl::StatusOr<CompileSummary> CompileLocked(Model model, const LockFile& lock, const ResolvedSettings& settings,
                                             const std::string& output) {
  if (model.hash != lock.model_hash) {
    return absl::FailedPreconditionError(
        absl::StrCat("the lock file is of another model (", lock.model_name, ", SHA-256 ", ToHex(lock.model_hash),
                     "), this one has ", ToHex(model.hash), "; take that file, or write a new lock file with --lock"));
  }
  std::map<std::string, const LockedKernel*> by_workload;
  for (const LockedKernel& kernel : lock.kernels) by_workload[kernel.workload] = &kernel;
  std::vector<absl::StatusOr<Made>> all = MakeAll(model, [&](size_t i) -> absl::StatusOr<Made> {
    const auto found = by_workload.find(model.workloads[i].hash);
    if (found == by_workload.end()) return absl::NotFoundError("it is not in the lock file");
    return FromLock(*found->second, model.workloads[i], settings);
  });
  CompileSummary summary;
  std::vector<PackagedKernel> kernels;
  std::vector<std::string> missing;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].ok()) {
      missing.push_back(absl::StrCat(model.plan.tasks[i].name, ": ", all[i].status().message()));
      continue;
    }
    kernels.push_back(std::move(all[i]->packaged));
    Count(kernels.back().provenance.source, &summary);
  }
  const std::string remedy =
      lock.generator == settings.generator()
          ? "write a new lock file with --lock"
          : absl::StrCat("the lock file was written with generator ", lock.generator, ", this is ",
                         settings.generator(), "; use that release, or write a new lock file with --lock");
  if (!missing.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        missing.size(), " of ", all.size(), " kernels are not those of the lock file: ", absl::StrJoin(missing, "; "),
        ". To go on: ", remedy));
  }
  model.plan.model_name = lock.model_name;
  BundleOptions options = OptionsOf(settings);
  options.digest = lock.bundle_digest;
  const absl::Status written = WriteBundle(std::move(model.plan), kernels, options, output);
  if (absl::IsFailedPrecondition(written)) {
    return absl::FailedPreconditionError(
        absl::StrCat("every kernel is that of the lock file, but the bundle around them is not: ", written.message(),
                     ". To go on: ", remedy));
  }
  HONE_RETURN_IF_ERROR(written);
  return summary;
}

}  // namespace hone
