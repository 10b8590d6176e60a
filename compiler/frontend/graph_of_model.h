// A model as plain structs (onnx_model.h) as a graph.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/frontend/onnx_model.h"
#include "compiler/graph/graph.h"

namespace hone {

// `last`: the model is not imported again, so that its initializers are taken, and freed when nothing reads them.
// `problems`: what was found wrong with the model so far. InvalidArgument lists them and what is found here.
absl::StatusOr<Graph> GraphOfModel(OnnxModel& model, bool last, std::vector<std::string> problems,
                                   const ImportOptions& options);

// The options for one of several sizes at which a model is imported; none: for the only ones.
ImportOptions AtSizes(const ImportOptions& options, const std::map<std::string, int64_t>& sizes);

// The status as one that IsImportError knows.
absl::Status AsImportError(absl::Status status);

}  // namespace hone
