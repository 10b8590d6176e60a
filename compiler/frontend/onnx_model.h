// An ONNX model as plain structs: what is left of the file once its messages are decoded and its tensors are loaded.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/interp/ndarray.h"

namespace hone {

struct OnnxGraph;

using OnnxAttribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
                 std::shared_ptr<const NdArray>, std::shared_ptr<const OnnxGraph>>;

struct OnnxNode {
  std::string name;                          // made up from the operator and its place where the model has none
  std::string op, domain;                    // domain "" is ONNX's own
  std::vector<std::string> inputs, outputs;  // "" for one that is left out
  std::map<std::string, OnnxAttribute> attributes;
};

struct OnnxDim {
  int64_t size = -1;  // -1: symbolic or unknown
  std::string symbol;
};
struct OnnxInput {
  std::string name;
  DType dtype;
  bool has_shape = false;
  std::vector<OnnxDim> dims;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxInput> inputs;  // those without an initial value
  std::vector<std::string> outputs;
  std::map<std::string, std::shared_ptr<const NdArray>> initializers;
  std::vector<OnnxNode> nodes;  // in the file's order
};

struct OnnxModel {
  std::map<std::string, int64_t> opsets;  // version by domain
  std::string producer;
  std::map<std::string, std::string> metadata;
  OnnxGraph graph;
};

// Decodes the bytes of a file. InvalidArgument when they are not an ONNX model or are cut off; malformed parts (an
// initializer whose data does not fill its shape, an attribute without a value) are added to `problems`, a line each.
absl::StatusOr<OnnxModel> DecodeOnnx(std::string_view bytes, const std::string& folder,
                                     std::vector<std::string>& problems);

// ONNX's number for an element type; nullopt for strings, complex numbers and what is unknown.
std::optional<DType> OnnxDType(int64_t number);
std::string OnnxDTypeName(int64_t number);  // "string", "complex64", "type 99"

}  // namespace hone
