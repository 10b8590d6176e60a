// A module of the text dialect (compiler/ir/module.h) as a model: what R.* calls say becomes nodes, which are imported
// as those of an ONNX file are. Operators of the dialect are in the domain "R", those of the graph itself
// (R.hone.dense) in "R.hone"; a call of another graph function of the module is a call of a function of the model.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/frontend/onnx_model.h"
#include "compiler/ir/module.h"

namespace hone {

// The graph function that the options name. Sizes are those that the options choose, 1 where they say nothing of the
// first dimension of an input. What cannot be said as nodes is added to `problems`, a line each. InvalidArgument when
// there is no such function.
absl::StatusOr<OnnxModel> ModelOfModule(const IrModule& module, const ImportOptions& options,
                                        std::vector<std::string>& problems);

}  // namespace hone
