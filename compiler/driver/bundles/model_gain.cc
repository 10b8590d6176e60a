#include "compiler/driver/bundles/model_gain.h"

#include <map>

#include "absl/strings/numbers.h"
#include "compiler/driver/bundles/kernel_times.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/canonical.h"

namespace hone {
namespace {

constexpr int kRounds = 6;  // for kernels: what decides between two that are nearly equal need not be sure

// A bundle of the model, and what its kernels were made of.
struct Built {
  std::string path;
  LockFile made;
};

// The kernels that records made, and otherwise than by default, each with what CompileModel is to take in its place
// when `default_is_faster`.
v1::KeepChoicesRequest Choices(const Model& model, const Built& before, const Built& after,
                               const std::function<bool(const LockedKernel&)>& default_is_faster) {
  v1::KeepChoicesRequest request;
  request.set_model_hash(model.hash);
  for (size_t i = 0; i < after.made.kernels.size(); ++i) {
    const LockedKernel& tuned = after.made.kernels[i];
    const LockedKernel& untuned = before.made.kernels[i];
    uint64_t record = 0;
    if (tuned.object_digest == untuned.object_digest || !absl::SimpleAtoi(tuned.record, &record)) continue;
    v1::KernelChoice& choice = *request.add_choices();
    choice.set_record(record);
    if (default_is_faster(tuned)) choice.set_faster_default(untuned.object_digest);
  }
  return request;
}

int CountDefaults(const v1::KeepChoicesRequest& request) {
  int count = 0;
  for (const v1::KernelChoice& choice : request.choices()) count += !choice.faster_default().empty();
  return count;
}

}  // namespace

absl::StatusOr<ModelGain> MeasureGain(const Model& model, const ResolvedSettings& settings,
                                      const ServiceOptions& records, const GainOptions& options) {
  Built before{options.folder + "/before.hone", {}}, after{options.folder + "/after.hone", {}};
  CompareOptions compare;
  compare.threads = settings.threads;
  compare.phase = options.phase;
  CompareOptions of_kernels = compare;
  of_kernels.rounds = kRounds;

  const auto build_after = [&] { return CompileModel(model, settings, &records, after.path, &after.made).status(); };
  HONE_RETURN_IF_ERROR(options.phase("compiling the model as it was, with default schedules"));
  HONE_RETURN_IF_ERROR(CompileModel(model, settings, nullptr, before.path, &before.made).status());
  HONE_RETURN_IF_ERROR(options.phase("compiling the model with what was found"));
  HONE_RETURN_IF_ERROR(build_after());

  ModelGain gain;
  if (!Choices(model, before, after, [](const LockedKernel&) { return true; }).choices().empty()) {
    HONE_ASSIGN_OR_RETURN(const auto speed_ups, KernelSpeedUps(before.path, after.path, of_kernels));
    const v1::KeepChoicesRequest choices = Choices(model, before, after, [&](const LockedKernel& kernel) {
      const auto found = speed_ups.find(KernelSymbol(kernel.workload));
      return found != speed_ups.end() && found->second < 1;
    });
    HONE_RETURN_IF_ERROR(options.keep(choices));
    gain.faster_defaults = CountDefaults(choices);
    if (gain.faster_defaults > 0) {
      HONE_RETURN_IF_ERROR(options.phase("compiling the model with what is faster in it"));
      HONE_RETURN_IF_ERROR(build_after());
    }
  }
  HONE_ASSIGN_OR_RETURN(gain.speed_up, CompareBundles(before.path, after.path, compare));
  if (!gain.speed_up.changed() || gain.speed_up.ratio >= 1) return gain;
  // Faster one by one, slower together: nothing was gained, so nothing changes.
  const v1::KeepChoicesRequest choices = Choices(model, before, after, [](const LockedKernel&) { return true; });
  HONE_RETURN_IF_ERROR(options.keep(choices));
  gain.faster_defaults += CountDefaults(choices);
  HONE_RETURN_IF_ERROR(build_after());
  HONE_ASSIGN_OR_RETURN(gain.speed_up, CompareBundles(before.path, after.path, compare));
  return gain;
}

}  // namespace hone
