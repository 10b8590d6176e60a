// A model's file as graphs: an ONNX model, or, with a name that ends in ".py", a module of the text dialect.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/graph.h"

namespace hone {

// As ImportOnnxAtSizes: at the sizes that the options say, or at several.
absl::StatusOr<Graph> ImportModel(const std::string& path, const ImportOptions& options = {});
absl::Status ImportModelAtSizes(const std::string& path, const ImportOptions& options,
                                std::span<const std::map<std::string, int64_t>> sizes,
                                const std::function<absl::Status(Graph)>& take);

}  // namespace hone
