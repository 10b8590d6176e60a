// What tuning gained for a model as a whole. Kernels are raced alone, and in the model each meets other neighbours and
// other caches: so each is held against its default schedule once more where it will run, the faster of the two stays,
// and only then is the model timed as it was and as it is now. A tuned model is not slower than an untuned one.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/driver/bundles/compare_bundles.h"
#include "compiler/driver/models/model.h"
#include "hone/v1/tune.pb.h"

namespace hone {

struct GainOptions {
  std::string folder;  // for the bundles
  // Told what is done now; a status that is not OK ends the work with it.
  std::function<absl::Status(const std::string&)> phase;
  // Keeps, beside the records, which schedules proved faster in the model; CompileModel goes by that from then on.
  std::function<absl::Status(const v1::KeepChoicesRequest&)> keep;
};

struct ModelGain {
  SpeedUp speed_up;
  int faster_defaults = 0;  // kernels whose record was slower in the model than the default schedule
};

absl::StatusOr<ModelGain> MeasureGain(const Model& model, const ResolvedSettings& settings,
                                      const ServiceOptions& records, const GainOptions& options);

}  // namespace hone
