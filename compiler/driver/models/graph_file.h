// Graphs of models and of modules of the text dialect, from files and to files.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/module.h"

namespace hone {

// Exit code 3 when it cannot be imported. What was assumed of it is said on standard error.
absl::StatusOr<Graph> LoadGraph(const std::string& path, const ImportOptions& options = {});

// The constants of a module as files of a folder: NUMBER.npy of those outside of the text, NAME.npy of a parameter that
// is one. Each is read once, however often it is asked for. For ImportOptions::constants.
decltype(ImportOptions::constants) ConstantsIn(const std::string& folder);
// The graph of a module at hand, with its constants in the folder; "": there are none.
absl::StatusOr<Graph> GraphFromModule(const IrModule& module, const std::string& constants);
// Writes 0.npy, 1.npy, ... and the folder where it is not there.
absl::Status WriteConstants(const std::string& folder, std::span<const std::shared_ptr<const NdArray>> constants);

}  // namespace hone
