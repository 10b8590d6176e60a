// A node of an ONNX model as a plain struct.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/array/ndarray.h"

namespace hone {

struct OnnxGraph;

using OnnxAttribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
                 std::shared_ptr<const NdArray>, std::shared_ptr<const OnnxGraph>>;

struct OnnxNode {
  std::string name;                          // made up from the operator and its place where the model has none
  std::string op, domain;                    // domain "" is ONNX's own
  std::string overload;                      // which of the model's functions of this name
  std::vector<std::string> inputs, outputs;  // "" for one that is left out
  std::map<std::string, OnnxAttribute> attributes;
  std::map<std::string, std::string> references;  // inside a function: attributes that have the value of one of its own
};

// ONNX's number for an element type; nullopt for strings, complex numbers and what is unknown.
std::optional<DType> OnnxDType(int64_t number);
std::string OnnxDTypeName(int64_t number);  // "string", "complex64", "type 99"

}  // namespace hone
