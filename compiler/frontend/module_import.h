// Modules of the text dialect (compiler/text/README.md, "Graph functions") as graphs.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/module.h"

namespace hone {

// The graph function "main", or the only one there is. Failures as of ImportOnnxAtSizes; a module that breaks a rule of
// the verifier, or has a tensor function that is not proven to stay inside its buffers, is refused.
absl::StatusOr<Graph> ImportModule(const IrModule& module, const ImportOptions& options = {});

// The same of a file, at several sizes, as ImportOnnxAtSizes.
absl::Status ImportModuleAtSizes(const std::string& path, const ImportOptions& options,
                                 std::span<const std::map<std::string, int64_t>> sizes,
                                 const std::function<absl::Status(Graph)>& take);

}  // namespace hone
