// Values of operators whose inputs are known: constant folding, and the reference for tests.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone {

// The operator's own function of these input types, unfused: params are the inputs, then the outputs. The inputs have
// passed the operator's inference, which gave `outputs`.
PrimFunc OpFunction(std::string_view op, const Attrs& attrs, std::span<const TensorType> inputs,
                    std::span<const TensorType> outputs);

// Runs the operator on constants: by its own way (OpInfo::evaluation) or by interpreting OpFunction.
absl::StatusOr<std::vector<NdArray>> EvaluateOp(std::string_view op, const Attrs& attrs,
                                                std::span<const std::shared_ptr<const NdArray>> inputs);

// What folding costs, in interpreted elements; nullopt when one operator alone would take seconds or a gigabyte.
std::optional<int64_t> EvaluationCost(std::string_view op, const Attrs& attrs, std::span<const TensorType> inputs,
                                      std::span<const TensorType> outputs);

// Graph::AddNode, except that a node whose inputs are all constants, and whose cost the graph's budget
// covers, is evaluated at once: its outputs are constants then.
absl::StatusOr<std::vector<int>> AddFolded(Graph& graph, std::string_view op, std::string name, std::vector<int> inputs,
                                           Attrs attrs = {});

}  // namespace hone
