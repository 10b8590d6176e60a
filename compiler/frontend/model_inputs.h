// The inputs of a model: their shapes, where the model leaves them open, and their values, where these are fixed.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/frontend/onnx_import.h"
#include "compiler/frontend/onnx_model.h"
#include "compiler/graph/operators/sequences.h"

namespace hone {

// Adds the inputs of a model to a graph as the options say. What cannot be is added to `problems`, a line each.
class ModelInputs {
 public:
  ModelInputs(const OnnxModel& model, const ImportOptions& options, Graph& graph, Sequences& sequences,
              std::vector<std::string>& problems)
      : model_(model), options_(options), graph_(graph), sequences_(sequences), problems_(problems) {}

  // The value the model's nodes read: of the graph, or of `sequences`. nullopt when there is a problem.
  std::optional<int> Add(const OnnxInput& input);
  // Names in the options that no input or dimension has are problems. After the last input.
  void CheckOptions();

 private:
  std::optional<std::vector<int64_t>> ShapeOf(const OnnxInput& input);
  int64_t ChosenSize(const OnnxInput& input, size_t d) const;
  std::optional<int> AddSequence(const OnnxInput& input);
  std::optional<int> AddTensor(const OnnxInput& input, const std::string& name, const std::vector<int64_t>& shape);
  std::optional<NdArray> FixedValue(const std::string& name, const TensorType& type,
                                    const std::vector<double>& numbers);
  bool Fits(const OnnxInput& input, const std::vector<int64_t>& shape) const;

  const OnnxModel& model_;
  const ImportOptions& options_;
  Graph& graph_;
  Sequences& sequences_;
  std::vector<std::string>& problems_;
  std::set<std::string> symbols_;  // names of open dimensions
  std::set<std::string> names_;    // of inputs of the graph
};

}  // namespace hone
